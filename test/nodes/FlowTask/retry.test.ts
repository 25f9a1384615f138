import { NODE_NAME, repeated, type HarnessRun } from '../harness';
import { RETRY, sharedStage } from '../harness/stage';
import { openStage, prompts, text } from './flowTask.fixture';

/* Whatever fails at whatever point, n8n runs the node again and no task is created twice. */

const stage = sharedStage(openStage, { taskMs: 20, runners: 8 });

const ITEMS = 5;
const OPTIONS = { limits: { progressChannel: 'polling' } };

function idsOf(run: HarnessRun): string[] {
	return run.items().map(({ json }) => text(json.taskId));
}

function expectEachTaskOnce(run: HarnessRun): void {
	expect(run.status).toBe('success');
	const ids = idsOf(run);
	expect(new Set(ids).size).toBe(ITEMS);
	const books = stage.platform.books();
	expect(books.tasksMade).toBe(ITEMS);
	expect(books.duplicates).toBe(0);
	expect(new Set(books.tasks.map(({ taskId }) => taskId))).toEqual(new Set(ids));
	expect(run.items().every(({ binary }) => binary?.data)).toBe(true);
}

describe.each(['submit', 'info', 'file'] as const)(
	'each task is created once if %s is refused after k requests',
	(on) => {
		const fault = on === 'file' ? ({ kind: 'expiredLink' } as const) : ({ kind: 'code', code: 401 } as const);

		test.each(on === 'info' ? [0] : [0, 2, ITEMS - 1])('k = %d, Retry On Fail', async (skip) => {
			stage.platform.faults.add({ on, ...fault, skip, times: on === 'file' ? 2 : 1 });
			const run = await stage.run(prompts(ITEMS), OPTIONS, RETRY);
			expectEachTaskOnce(run);
		});

		test.each(on === 'info' ? [0] : [0, 2, ITEMS - 1])('k = %d, Retry Execution', async (skip) => {
			const rule = stage.platform.faults.add({ on, ...fault, skip });
			const failed = await stage.run(prompts(ITEMS), OPTIONS);
			expect(failed.status).toBe('error');
			rule.remove();
			expectEachTaskOnce(await stage.harness.retry(failed));
		});
	},
);

test('a prompt with {{ $now }} differs in each try, but continues the same task', async () => {
	stage.platform.faults.add({ on: 'file', kind: 'expiredLink', times: 2 });
	const overrideFields = {
		override: [
			{
				nodeId: '6',
				parameter: 'text',
				value: '={{ $json.prompt }} {{ $now.toMillis() }}',
				valueType: 'string',
			},
		],
	};
	const settings = { retryOnFail: true, maxTries: 4, waitBetweenTries: 20 };
	const run = await stage.run(
		prompts(ITEMS),
		{ ...OPTIONS, overrideFields, seedMode: 'random', seedTargets: '3.seed' },
		settings,
	);
	expectEachTaskOnce(run);
	// The seed that is output is the one sent first, although each try would draw a new one.
	const sent = new Map(
		stage.platform
			.books()
			.tasks.map(({ taskId, prompt }) => [
				taskId,
				(prompt as { '3': { inputs: { seed: number } } })['3'].inputs.seed,
			]),
	);
	for (const { json } of run.items()) expect(json.seed).toBe(sent.get(text(json.taskId)));
});

test.each([
	['continueErrorOutput', 'picture 0"', 3],
	['continueRegularOutput', 'picture 0"', 3],
	['continueErrorOutput', 'picture 1"', 1],
	['continueRegularOutput', 'picture 1"', 1],
] as const)(
	'with Retry On Fail and %s, as in n8n, the item %s is tried %d time(s)',
	async (onError, match, tries) => {
		stage.platform.faults.add({ on: 'submit', kind: 'code', msg: 'no', match });
		const settings = { onError, retryOnFail: true, maxTries: 3, waitBetweenTries: 1 };
		const run = await stage.run(prompts(2), OPTIONS, settings);
		expect(run.status).toBe('success');
		expect(stage.platform.books().requests.submit).toBe(1 + tries);
		expect(stage.platform.books().tasksMade).toBe(1);
	},
);

test('a retry repeats a submit without an answer only if the user chooses so', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'resetAfter', times: 1 });
	const run = await stage.run(prompts(ITEMS), OPTIONS, RETRY);
	expect(run.error?.message).toContain('A task may have been created for this item in an earlier try');
	expect(stage.platform.books().duplicates).toBe(0);
	expect(stage.platform.books().tasksMade).toBeLessThanOrEqual(ITEMS);

	const once = await stage.harness.retry(run, stage.workflow(OPTIONS));
	expect(once.error?.message).toContain('A task may have been created');
	const limits = { ...OPTIONS.limits, onUnknownOutcome: 'sendAgain' };
	const chosen = await stage.harness.retry(run, stage.workflow({ limits }));
	expect(chosen.items()).toHaveLength(ITEMS);
	expect(stage.platform.books().duplicates).toBe(1);
});

test('a retry that may not submit again says what the earlier try may have made', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'resetAfter', times: 1 });
	const limits = { maxTasksPerDay: 1, onUnknownOutcome: 'sendAgain' };
	const run = await stage.run(prompts(1), { limits });
	const again = await stage.harness.retry(run, stage.workflow({ limits }));
	expect(again.error?.message).toMatch(
		/^A task may have been created for this item in an earlier try, but its ID is unknown\. This try made none: 'Limit per Day' allows 1 task a day/,
	);
	expect(again.error?.description).toMatch(
		/^Look for the task in the platform's console before you run this item again\. Nothing was sent for this item\. Raise 'Limit per Day'/,
	);
	expect(stage.platform.books().requests.submit).toBe(1);
});

test('a retry with a longer timeout continues the existing tasks', async () => {
	stage.platform.faults.add({ on: 'info', kind: 'noProgress' });
	const late = await stage.run(prompts(ITEMS), { ...OPTIONS, options: { timeoutMinutes: 0.02 } });
	expect(late.error?.message).toContain('was not done within the timeout');
	stage.platform.faults.clear();
	expectEachTaskOnce(await stage.harness.retry(late, stage.workflow(OPTIONS)));
});

test('an option that changes nothing of the request, or has its default value, does not count as an edit', async () => {
	const rule = stage.platform.faults.add({ on: 'file', kind: 'expiredLink' });
	const asHosted = { ...OPTIONS, overrideFields: undefined, seedMode: undefined };
	const failed = await stage.run(prompts(2), asHosted);
	rule.remove();
	const more = { onTimeout: 'returnStatus', variants: 1, seedMode: 'random', prompt: '{}' };
	const run = await stage.harness.retry(failed, stage.workflow({ ...asHosted, ...more }));
	expect(run.status).toBe('success');
	expect(stage.platform.books().tasksMade).toBe(2);
});

test('a retry with an edited workflow submits new tasks and says so', async () => {
	const rule = stage.platform.faults.add({ on: 'file', kind: 'expiredLink' });
	const failed = await stage.run(prompts(2), OPTIONS);
	rule.remove();
	const edited = stage.workflow({ ...OPTIONS, seedMode: 'fixed', seed: 7, seedTargets: '3.seed' });
	const run = await stage.harness.retry(failed, edited);
	expect(run.status).toBe('success');
	expect(run.hints().join()).toContain('has changed since an earlier try');
});

test('a loop creates new tasks for the same items', async () => {
	const workflow = repeated(stage.workflow(OPTIONS), { prompt: 'picture 0' });
	const run = await stage.runWorkflow(workflow, prompts(1));
	expect(run.error).toBeUndefined();
	expect(run.runs(NODE_NAME)).toHaveLength(3);
	expect(stage.platform.books().tasksMade).toBe(3);
});
