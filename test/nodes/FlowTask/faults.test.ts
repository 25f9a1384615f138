import { stopwatch, type HarnessRun } from '../harness';
import { sharedStage } from '../harness/stage';
import { CONTINUE, openStage, prompts, text } from './flowTask.fixture';

describe('a campaign of faults', () => {
	const stage = sharedStage(openStage, { runners: 16, taskMs: 100, seed: 7 });

	test('with 10 % of all requests failing, none of 300 tasks is duplicated or lost, and unclear ones are reported', async () => {
		stage.platform.faults.campaign({ rate: 0.1, seed: 7 });
		const run = await stage.run(prompts(300), {}, CONTINUE);
		expect(run.status).toBe('success');
		const done = run.items();
		const failed = run.items(1);
		expect(done.length + failed.length).toBe(300);

		const books = stage.platform.books();
		expect(books.faults['429']).toBeGreaterThan(0);
		expect(books.faults.resetAfter).toBeGreaterThan(0);
		expect(books.duplicates).toBe(0);
		const said = JSON.stringify(run.stored.data.resultData);
		const lost = books.tasks.filter((task) => task.answer === 'whole' && !said.includes(task.taskId));
		expect(lost).toEqual([]);
		const unclear = failed.filter(({ json }) => text(json.error).startsWith('A task may have been created'));
		expect(unclear).toHaveLength(books.unclearSubmits);
		expect(unclear.length).toBeGreaterThanOrEqual(books.undeliveredSubmits);
		// Everything else succeeded, except perhaps a file whose four tries all failed, which happens to one in ten thousand.
		const others = failed.filter((item) => !unclear.includes(item)).map(({ json }) => json);
		expect(others.filter(({ error }) => !text(error).includes('could not be downloaded'))).toEqual([]);
		expect(others.length).toBeLessThanOrEqual(1);
		for (const item of done) expect((await run.binary(item, 'data')).byteLength).toBeGreaterThan(100);
	}, 300_000);
});

describe('a task info nested thousands of levels deep', () => {
	const stage = sharedStage(openStage, { taskMs: 100 });
	const submit = async (count: number): Promise<string[]> => {
		const submitted = await stage.run(prompts(count), { operation: 'submit' });
		return submitted.items().map(({ json }) => text(json.taskId));
	};
	const wait = async (ids: string[], settings: object): Promise<HarnessRun> =>
		await stage.run(
			ids.map((taskId) => ({ json: { taskId } })),
			{ operation: 'wait', ...settings },
			CONTINUE,
		);
	const POLLING = { progressChannel: 'polling', timeoutMinutes: 0.1 };

	test.each(['polling', 'websocket'])(
		'ends its item at the timeout, with the task ID in the error (%s)',
		async (progressChannel) => {
			const items = prompts(3);
			stage.platform.faults.add({ on: 'info', kind: 'deepInfo' });
			const watch = stopwatch();
			const run = await stage.run(items, { options: { ...POLLING }, limits: { progressChannel } }, CONTINUE);
			expect(watch.stop()).toBeLessThan(25_000);
			const ids = stage.platform.books().tasks.map(({ taskId }) => taskId);
			const failed = run.items(1);
			expect(failed).toHaveLength(3);
			for (const { json } of failed) {
				const { taskId } = json.details as { taskId: string };
				expect(ids).toContain(taskId);
				expect(text(json.error)).toContain(taskId);
				expect(text(json.error)).toContain('could not be read');
			}
		},
	);

	test('does not prevent other tasks of the batch from returning their files', async () => {
		const ids = await submit(12);
		const bad = ids[7] ?? '';
		stage.platform.faults.add({ on: 'info', kind: 'deepInfo', match: bad });
		const run = await wait(ids, { options: { ...POLLING, timeoutMinutes: 0.25 } });
		expect(run.items()).toHaveLength(11);
		expect(run.jsons(1).map(({ details }) => details)).toMatchObject([{ taskId: bad }]);
	});

	test('is refused by Get only for that task', async () => {
		const ids = await submit(5);
		const bad = ids[2] ?? '';
		stage.platform.faults.add({ on: 'info', kind: 'deepInfo', match: bad });
		const run = await wait(ids, { operation: 'get' });
		expect(run.items()).toHaveLength(4);
		expect(run.jsons(1)[0]?.error).toContain(`The state of task ${bad} cannot be read`);
	});
});

describe('one fault at a time', () => {
	const stage = sharedStage(openStage, { taskMs: 100 });

	test('a refusal with the platform’s own envelope counts as clear', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'code', times: 1 });
		const run = await stage.run(prompts(1));
		expect(run.error?.message).toContain('The platform refused the request to submit the task');
		expect(run.error?.message).not.toContain('may have been created');
		expect(stage.platform.books().requests.submit).toBe(1);
	});

	test('a base URL with a path is reported as such', async () => {
		const account = { baseUrl: `${stage.platform.apiUrl}/api` };
		const run = await stage.run(prompts(1), {}, { account });
		expect(run.error?.message).toBe(
			'The API was not found at the base URL, so the node could not submit the task',
		);
		expect(run.error?.description).toContain('without a path such as "/api"');
		expect(run.error?.description).not.toContain('workflow ID');
	});

	test.each([
		['missingIds', { times: 3 }],
		['numbersAsStrings', {}],
		['filesNull', { times: 1 }],
		['unknownStatus', { times: 2 }],
		['truncatedJson', { times: 3 }],
		['html200', { times: 2 }],
		['5xx', { times: 3 }],
		['resetBefore', { times: 2 }],
		['slowBody', { ms: 300 }],
	] as const)('tasks succeed despite task info with %s %j', async (kind, more) => {
		stage.platform.faults.add({ on: 'info', kind, ...more });
		const run = await stage.run(prompts(3), { limits: { progressChannel: 'polling' } });
		expect(run.error).toBeUndefined();
		expect(run.jsons().map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded']);
	});

	test.each([
		['socketRefuse', {}],
		['socketSilent', {}],
		['socketGarbage', {}],
		['socketDrop', { after: 1 }],
		['hang', {}],
	] as const)('a socket with %s never stalls or fails a task', async (kind, more) => {
		stage.platform.faults.add({ on: 'socket', kind, ...more });
		const run = await stage.run(prompts(2));
		expect(run.items()).toHaveLength(2);
		expect(stage.platform.books().tasksMade).toBe(2);
	});

	test('a late task is returned as an item if that is chosen', async () => {
		stage.platform.faults.add({ on: 'submit', kind: 'stuckTask', match: 'picture 1' });
		const options = { timeoutMinutes: 0.05, onTimeout: 'returnStatus' };
		const run = await stage.run(prompts(2), { options });
		expect(run.jsons().map(({ status }) => status)).toEqual(['succeeded', 'timedOut']);
		expect(run.hints()[0]).toBe('1 done, 1 still running.');
	});

	test('an ID whose state the platform refuses to report does not affect other tasks', async () => {
		const submitted = await stage.run(prompts(3), { operation: 'submit' });
		const ids = submitted.items().map(({ json }) => text(json.taskId));
		const items = [...ids, 'bad-id'].map((taskId) => ({ json: { taskId } }));
		const msg = 'task not found: bad-id';
		stage.platform.faults.add({ on: 'info', kind: 'code', code: 10_004, msg, match: 'bad-id' });
		const got = await stage.run(items, { operation: 'get' }, CONTINUE);
		expect(got.jsons().map(({ taskId }) => taskId)).toEqual(ids);
		expect(got.jsons(1).map(({ error }) => error)).toEqual([
			`The state of task bad-id cannot be read. The platform refused the request to read the state of the tasks: ${msg}`,
		]);
	});

	test('the error for a key whose task the platform has forgotten says what to do', async () => {
		const keyed = { limits: { idempotencyKey: 'order-1' } };
		expect((await stage.run(prompts(1), keyed)).items()).toHaveLength(1);
		stage.platform.faults.add({ on: 'info', kind: 'missingIds', after: 1 });
		const again = await stage.run(prompts(1), keyed);
		expect(again.error?.message).toContain('The platform does not know task');
		expect(again.error?.description).toContain("delete the key's rows in the Data Table flow_task_ledger");
		expect(stage.platform.books().tasksMade).toBe(1);
	}, 60_000);
});
