import { until } from '../../until';
import { NODE_NAME, type HarnessRun } from '../harness';
import { RETRY, sharedStage } from '../harness/stage';
import { harnessWorkflowId, noDataTables, type DataTableRow } from '../harness/dataTables';
import { MAPPED, messages, operationsOn, RECORDED, said, TABLE } from './turnTable.fixture';
import { CONTINUE, openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

const rows = (): DataTableRow[] => stage.tables.rows(TABLE);
const outcomes = (): unknown[] => rows().map(({ outcome }) => outcome);
const hints = (run: HarnessRun): string[] => run.hints();
const operations = (): string[] => operationsOn(stage.tables);

test('a row contains what an operator wants to know about a turn', async () => {
	const run = await stage.run([said('hello')], { ...MAPPED, options: RECORDED });
	const { session, trace, usage } = run.jsons()[0]! as Record<string, Record<string, unknown>>;
	const [row] = rows();
	expect(row).toMatchObject({
		...{ executionId: run.executionId, workflowId: harnessWorkflowId(), node: NODE_NAME, item: 1 },
		...{ sessionKey: 'anna', sessionId: session!.id, kind: 'message', outcome: 'answered', attempts: 1 },
		...{ requestId: trace!.requestId, tokens: usage!.total_tokens, mayHaveRun: true },
		day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as string,
	});
	expect(JSON.parse(String(row!.usage))).toEqual(usage);
	expect(row!.startedAt).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
	expect(JSON.stringify(rows())).not.toContain('hello');
	expect(JSON.stringify(rows())).not.toContain(stage.platform.agentToken);
});

test('no table is used without the option', async () => {
	await stage.run([said('hello')], { options: { recordTurns: false } });
	expect(stage.tables.operations).toEqual([]);
});

test('writes a row for every outcome in one write, even if items fail', async () => {
	const { faults } = stage.platform;
	faults.add({ on: 'invoke', kind: 'code', code: 40000, match: 'not allowed' });
	faults.add({ on: 'invoke', kind: 'resetAfter', match: 'cut off' });
	faults.add({ on: 'invoke', kind: 'code', code: 50300, match: 'once busy', times: 1 });
	const run = await stage.run(
		['one', '[question: which?]', '[fail: no fuel]', 'not allowed', 'cut off', 'once busy'].map((say) =>
			said(say),
		),
		{ options: RECORDED },
		CONTINUE,
	);
	expect(
		rows()
			.map(({ item, outcome, attempts, mayHaveRun }) => [item, outcome, attempts, mayHaveRun])
			.sort(),
	).toEqual([
		[1, 'answered', 1, true],
		[2, 'interrupted', 1, true],
		[3, 'failed', 1, true],
		[4, 'refused', 1, false],
		[5, 'unclear', 1, true],
		[6, 'answered', 2, true],
	]);
	expect(operations()).toEqual(['list', 'create', 'list', 'insert']);
	// The turns that may have run are those that the platform really ran.
	expect(stage.platform.books().invocations).toHaveLength(5);
	const interrupt = run.jsons(1)[0]!;
	await stage.run([{ json: interrupt }], { operation: 'resume', result: 'yes', options: RECORDED });
	expect(rows().at(-1)).toMatchObject({ kind: 'result', outcome: 'answered', sessionKey: '' });
	expect(operations().slice(4)).toEqual(['insert']);
});

test('a row says if a turn never arrived; a turn that was not sent has no row', async () => {
	const nowhere = { baseUrl: 'http://127.0.0.1:9' };
	await stage.run([said('hi')], { options: { ...RECORDED, retries: 0 } }, { account: nowhere });
	expect(rows()).toMatchObject([{ outcome: 'unreached', mayHaveRun: false, attempts: 1 }]);
	const failed = await stage.run([said('[fail: x]'), said('b'), said('c')], {
		options: { ...RECORDED, concurrency: 1 },
	});
	expect(failed.error?.message).toContain('The agent failed');
	expect(outcomes()).toEqual(['unreached', 'failed']);
});

test('a retry writes no second row for turns that were already answered', async () => {
	stage.platform.faults.add({ on: 'invoke', kind: 'code', code: 40000, match: 'second', times: 1 });
	const settings = { ...RETRY, maxTries: 2 };
	const parameters = { options: { ...RECORDED, concurrency: 1 } };
	const run = await stage.run([said('first'), said('second')], parameters, settings);
	expect(run.status).toBe('success');
	expect(rows().map(({ item, outcome }) => [item, outcome])).toEqual([
		[1, 'answered'],
		[2, 'refused'],
		[2, 'answered'],
	]);
	expect(stage.platform.books().invocations).toHaveLength(2);
	// Tokens count once per answer, although the second try outputs the first answer again.
	const spent = rows().reduce((sum, { tokens }) => sum + Number(tokens ?? 0), 0);
	const { inputTokens, outputTokens } = run.runs(NODE_NAME).at(-1)?.metadata?.tokenUsage ?? {};
	expect(Number(inputTokens) + Number(outputTokens)).toBe(spent);
	expect(spent).toBeGreaterThan(0);
});

test('a stopped execution loses no row', async () => {
	const live = await stage.start([said('done'), said('[hold]')], { options: RECORDED });
	await until(() => stage.platform.agent.held === 1 && stage.platform.books().invocations.length === 2);
	await until(() => stage.platform.books().invocations.some(({ answered }) => answered === 'yes'));
	await new Promise((resolve) => setTimeout(resolve, 50));
	live.cancel();
	await live.done;
	await until(() => rows().length === 2);
	stage.platform.agent.release();
	expect(rows().map(({ item, outcome, mayHaveRun }) => [item, outcome, mayHaveRun])).toEqual([
		[1, 'answered', true],
		[2, 'cancelled', true],
	]);
});

describe('an unusable table', () => {
	test.each([
		[
			'that is full',
			() => {
				stage.tables.before = (operation) => {
					if (operation.startsWith('insert') && operation.endsWith(TABLE))
						throw new Error('Data table size limit exceeded');
				};
			},
		],
	])('%s: outputs the answers, and a hint says what is missing', async (_, breakIt) => {
		breakIt();
		const run = await stage.run([said('a'), said('b')], { options: RECORDED });
		expect(messages(run)).toEqual(['answered', 'answered']);
		expect(hints(run)).toEqual([
			expect.stringContaining('could not be written to the Data Table flow_agent_turns'),
		]);
	});

	test('on an n8n without Data Tables leads to a hint', async () => {
		const run = await stage.run([said('a')], { options: RECORDED }, { executeWorkflow: noDataTables });
		expect(messages(run)).toEqual(['answered']);
		expect(hints(run)).toHaveLength(1);
	});
});
