import type { INodeExecutionData } from 'n8n-workflow';

import { sharedStage } from '../harness/stage';
import { noDataTables, type DataTableRow } from '../harness/dataTables';
import { toolOf } from '../harness';
import { MAPPED, messages, operationsOn, said, TABLE } from './turnTable.fixture';
import { CONTINUE, openAgentStage } from './agent.fixture';

const stage = sharedStage(openAgentStage);

const rows = (): DataTableRow[] => stage.tables.rows(TABLE);
const outcomes = (): unknown[] => rows().map(({ outcome }) => outcome);
const operations = (): string[] => operationsOn(stage.tables);

const withBudget = (limit: object, over: object = {}) => ({
	...MAPPED,
	limits: {
		requestsPerSecond: 0,
		budget: { limit: { per: 'key', unit: 'turns', most: 2, ...limit } },
		...over,
	},
});

describe('a daily limit', () => {
	test('per key applies to each key across executions, and nothing above it is sent', async () => {
		const items = [said('1'), said('2'), said('3'), said('1', 'ben')];
		const first = await stage.run(items, withBudget({}), CONTINUE);
		expect(messages(first)).toEqual([
			'answered',
			'answered',
			expect.stringContaining('\'Limit per Day\' allows 2 turns a day for the key "anna"; used so far: 2'),
			'answered',
		]);
		const over = first.jsons()[2]!;
		expect(over.message).toMatch(
			/Raise 'Limit per Day' under 'Cost and Speed', or run the item again from \d{4}-\d\d-\d\d on/,
		);
		expect(over.details).toMatchObject({ kind: 'notSubmitted', budget: { most: 2, used: 2 } });
		expect(stage.platform.books().requests.invoke).toBe(3);
		// The first turn has a row before it is sent, which then gets its end.
		expect(operations()).toEqual(['list', 'create', 'list', 'get', 'insert', 'insert,']);
		const second = await stage.run([said('4'), said('2', 'ben'), said('3', 'ben')], withBudget({}), CONTINUE);
		expect(messages(second).map((text) => text === 'answered')).toEqual([false, true, false]);
		expect(operations().slice(6)).toEqual(['get', 'insert', 'insert,']);
		expect(stage.platform.books().invocations).toHaveLength(4);
	});

	test('sends nothing of a run that stops at its first failure and exceeds it', async () => {
		const run = await stage.run([said('1'), said('2'), said('3')], withBudget({}));
		expect(run.error?.message).toContain("'Limit per Day' (2) leaves only 2 for today");
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test('per node counts all turns together, whatever their keys', async () => {
		const items = [said('1 [takes: 60]'), said('2'), said('3', 'ben'), said('4', 'carl')];
		const run = await stage.run(items, withBudget({ per: 'node' }), CONTINUE);
		const refused = messages(run).filter((text) => text !== 'answered');
		expect(refused).toEqual(Array(2).fill(expect.stringContaining('a day for this node; used so far: 2')));
		expect(stage.platform.books().invocations).toHaveLength(2);
	});

	test('in tokens counts the usage that the agent reports', async () => {
		await stage.run([said('[answer: one two three]')], withBudget({ unit: 'tokens', most: 3 }));
		expect(Number(rows()[0]!.tokens)).toBeGreaterThanOrEqual(3);
		const run = await stage.run([said('more')], withBudget({ unit: 'tokens', most: 3 }));
		expect(run.error?.message).toMatch(
			/'Limit per Day' allows 3 tokens a day for the key "anna"; used so far: \d+/,
		);
		expect(stage.platform.books().invocations).toHaveLength(1);
	});

	test('that refuses a turn in a retry says that the agent may have run in the earlier try', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'resetAfter', times: 1 });
		const parameters = withBudget({ most: 1 }, { retries: 0, onUnknownOutcome: 'sendAgain' });
		const run = await stage.run([said('hi')], parameters);
		const again = await stage.harness.retry(run, stage.workflow(parameters));
		expect(again.error?.message).toMatch(
			/^The agent may have run for this item in an earlier try\. This try did not ask it: 'Limit per Day' allows 1 turn a day/,
		);
		expect(stage.platform.books().requests.invoke).toBe(1);
	});

	test('counts turns that may have run, but not refused ones', async () => {
		stage.platform.faults.add({ on: 'invoke', kind: 'resetAfter', match: 'cut off' });
		const items = [said('[refuse: no]'), said('cut off'), said('[fail: x]'), said('late')];
		const run = await stage.run(items, withBudget({}, { concurrency: 1, retries: 0 }), CONTINUE);
		expect(messages(run)[3]).toContain("'Limit per Day'");
		expect(stage.platform.books().invocations).toHaveLength(2);
	});

	test('does not count a recorded answer, which is output even if the limit is reached', async () => {
		const options = { idempotencyKey: '={{ $json.say }}' };
		await stage.run([said('order 1'), said('order 2')], withBudget({}, options));
		const run = await stage.run([said('order 1'), said('order 3')], withBudget({}, options), CONTINUE);
		expect(run.jsons()[0]!).toMatchObject({ replayed: true });
		expect(messages(run)[1]).toContain("'Limit per Day'");
		expect(outcomes()).toEqual(['answered', 'answered', 'replayed']);
		// The idempotency key was released, because nothing was sent with it.
		const raised = await stage.run([said('order 3')], withBudget({ most: 3 }, options));
		expect(messages(raised)).toEqual(['answered']);
		expect(stage.platform.books().invocations).toHaveLength(3);
	});

	test('is not exceeded by concurrent executions together', async () => {
		const items = [said('[takes: 50]', 'one'), said('b', 'two')];
		const runs = await Promise.all(
			Array.from({ length: 60 }, async () => await stage.run(items, withBudget({ per: 'node', most: 20 }))),
		);
		expect(stage.platform.books().invocations).toHaveLength(20);
		expect(runs.filter(({ status }) => status === 'success').length).toBeLessThanOrEqual(10);
		const late = await stage.run([said('c')], withBudget({ per: 'node', most: 20 }));
		expect(late.error?.message).toContain('used so far: 20');
		expect(late.error?.description).toContain("Raise 'Limit per Day'");
	});

	test("counts an answer to an interrupt for its session's key, or for the session if it has none", async () => {
		const asked = said('[question: a?] [question: b?] [question: c?]');
		const resume = async (waiting: INodeExecutionData['json'], result: string) =>
			await stage.run([{ json: waiting }], { ...withBudget({}), operation: 'resume', result });
		const first = await stage.run([asked], withBudget({}));
		const second = await resume(first.jsons(1)[0]!, '1');
		expect(rows()).toMatchObject([{ kind: 'message' }, { kind: 'result', sessionKey: 'anna' }]);
		const over = await resume(second.jsons(1)[0]!, '2');
		expect(over.error?.message).toContain(
			'\'Limit per Day\' allows 2 turns a day for the key "anna"; used so far: 2',
		);
		const keyless = await stage.run([asked], { ...withBudget({}), sessionMode: 'new' });
		const third = await resume(keyless.jsons(1)[0]!, '1');
		const fourth = await resume(third.jsons(1)[0]!, '2');
		const last = await resume(fourth.jsons(1)[0]!, '3');
		expect(last.error?.message).toContain("'Limit per Day' allows 2 turns a day for the session \"ses_");
	});

	test.each([
		['no Data Tables', () => noDataTables],
		[
			'a table that cannot be read',
			() => {
				stage.tables.before = (operation) => {
					if (operation === `list ${TABLE}`) throw new Error('database is locked');
				};
				return stage.tables.executeWorkflow;
			},
		],
	])('makes the node send nothing if turns cannot be counted: %s', async (_, tables) => {
		const parameters = { ...withBudget({}), sessionMode: 'new' };
		const run = await stage.run([said('hi')], parameters, { executeWorkflow: tables() });
		expect(run.error?.message).toContain('The Data Table "flow_agent_turns"');
		expect(run.error?.description).toContain(
			"Nothing was sent, because the count for 'Limit per Day' is kept in Data Tables.",
		);
		const items = await stage.run([said('hi')], parameters, { executeWorkflow: tables(), ...CONTINUE });
		expect(messages(items)).toEqual([expect.stringContaining('The Data Table "flow_agent_turns"')]);
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test.each([0, 3])(
		'takes no turn that cannot be recorded, in a table that takes %d more writes',
		async (most) => {
			let inserts = 0;
			stage.tables.before = (operation) => {
				const isInsert = operation.startsWith('insert') && operation.endsWith(TABLE);
				if (isInsert && inserts++ >= most) throw new Error('Data table size limit exceeded');
			};
			const runs = await Promise.all(
				Array.from({ length: 20 }, async (_, index) => {
					return await stage.run([said('hi', `key ${index}`)], withBudget({ per: 'node', most: 5 }));
				}),
			);
			// Executions that claim at the same time share a write.
			const { invoke } = stage.platform.books().requests;
			expect(invoke).toBe(stage.tables.rows(TABLE).length);
			expect(invoke > 0).toBe(most > 0);
			const refused = runs.filter(({ status }) => status === 'error');
			expect(refused).toHaveLength(20 - invoke);
			const full = /^The Data Table "flow_agent_turns" is full/;
			expect(refused.some(({ error }) => full.test(error?.message ?? ''))).toBe(invoke < 5);
		},
	);

	test('counts no preview', async () => {
		await stage.run([said('hi')], { ...withBudget({}), options: { previewRequest: true } });
		expect(operations()).toEqual([]);
	});

	test.each([
		[{ budget: {} }, "'Limit per Day' is empty"],
		[{ budget: { limit: { per: 'key', unit: 'turns', most: 0 } } }, "'Most per Day' must be a number from 1"],
		[
			{ budget: { limit: { per: 'key', unit: 'turns', most: 'some' } } },
			"'Most per Day' must be a number from 1",
		],
		[
			{ budget: { limit: { per: 'day', unit: 'turns', most: 1 } } },
			'\'Limit per Day\' must count per "key" or "node"',
		],
		[{ budget: { limit: { per: 'key', unit: 'euros', most: 1 } } }, 'in "turns" or "tokens"'],
	])('with invalid settings is refused: %j', async (options, message) => {
		const run = await stage.run([said('hi')], { options });
		expect(run.error?.message).toContain(message);
		expect(stage.platform.books().requests.invoke).toBe(0);
	});

	test('without an entry is refused, and the error says what to add', async () => {
		const run = await stage.run([said('hi')], { options: { budget: {} } });
		expect(run.error?.description).toContain("Add a limit under 'Limit per Day'");
	});

	test('counts days in the time zone of the workflow', async () => {
		const statuses: string[] = [];
		// These zones are 25 hours apart, so never on the same day.
		for (const timezone of ['Pacific/Kiritimati', 'Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
			const run = await stage.run([said('hi')], withBudget({ most: 1 }), { settings: { timezone } });
			statuses.push(run.status);
		}
		expect(statuses).toEqual(['success', 'error', 'success']);
		const [east, west] = rows().map(({ day }) => String(day));
		expect(east! > west!).toBe(true);
	});
});

test('the limit applies to the node as a tool, and the AI agent is told when it is reached', async () => {
	const parameters = { operation: 'invoke', message: 'hi', ...withBudget({ most: 1 }), sessionKey: 'k' };
	const tool = { name: 'Helper', type: 'n8n-nodes-flowtask.agentInvokeTool', parameters };
	const ask = async () => await stage.runWorkflow(toolOf(tool));
	expect(JSON.stringify((await ask()).output('Agent'))).toContain('you said');
	expect(rows()).toMatchObject([{ node: 'Helper', outcome: 'answered', sessionKey: 'k' }]);
	const over = await ask();
	expect(
		JSON.stringify([over.error?.message, over.status === 'error' ? '' : over.output('Agent')]),
	).toContain('Limit per Day');
	expect(stage.platform.books().requests.invoke).toBe(1);
});
