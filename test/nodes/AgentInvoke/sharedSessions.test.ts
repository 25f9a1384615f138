// Tests how simultaneous executions share sessions, according to the platform's books. They run in one n8n process
// here; several processes are tested in test/unit/AgentInvoke and test/e2e.
import { until } from '../../until';
import { type HarnessRun, type ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { openAgentStage } from './agent.fixture';

const TABLE = 'flow_agent_sessions';
const MAPPED = { sessionMode: 'mapped', sessionKey: '={{ $json.key }}' };

const stage = sharedStage(openAgentStage);

const said = (key: string, say = 'hi'): ItemInput => ({ json: { key, say } });

interface Session {
	readonly key: string;
	readonly id: string;
	readonly source: string;
}

function sessionOf(run: HarnessRun, output = 0): Session {
	expect(run.error).toBeUndefined();
	return run.jsons(output)[0]?.session as unknown as Session;
}

/** Operations on rows, except for the removal of expired ones and the search for the table. */
const operations = (): string[] =>
	stage.tables.operations.flatMap((one) => /^(get|insert|update)/.exec(one)?.[1] ?? []);

test('100 simultaneous executions with 20 keys open 20 sessions, and each message is a turn in the session of its key', async () => {
	await stage.run([said('makes the table')], MAPPED);
	stage.platform.resetBooks();
	stage.tables.operations.length = 0;
	const calls = Array.from({ length: 100 }, (_, i) => said(`key ${i % 20}`, `key ${i % 20} says ${i}`));
	const runs = await Promise.all(calls.map(async (call) => await stage.run([call], MAPPED)));
	const { sessions, invocations, agentRefusals } = stage.platform.books();
	expect([sessions.length, invocations.length, agentRefusals]).toEqual([20, 100, {}]);
	const idOf = new Map(runs.map((run) => [sessionOf(run).key, sessionOf(run).id]));
	for (const [key, id] of idOf) {
		const session = sessions.find(({ sessionId }) => sessionId === id);
		expect(session?.messages).toHaveLength(5);
		expect(session?.messages.every((message) => message.startsWith(`${key} says `))).toBe(true);
	}
	expect(runs.filter((run) => sessionOf(run).source === 'new')).toHaveLength(20);
	// The first row is that of the run that made the table.
	expect(stage.tables.rows(TABLE).filter(({ sessionId }) => sessionId)).toHaveLength(21);
	// 20 runs read, claim, confirm and write; 80 read, read again once it is their turn, and write.
	expect(operations().length).toBeLessThanOrEqual(20 * 4 + 80 * 3);
});

test.each(['arrival', 'strict'])(
	'messages are sent in the order in which their executions began, however long table reads take (%s)',
	async (turnOrder) => {
		await stage.run([said('makes the table')], MAPPED);
		const before = stage.platform.books().sessions.length;
		let reads = 0;
		stage.tables.before = async () => {
			// The first reads take the longest.
			await new Promise((resolve) => setTimeout(resolve, Math.max(0, 300 - 20 * reads++)));
		};
		const runs: Array<Promise<HarnessRun>> = [];
		for (let i = 0; i < 25; i++) {
			runs.push(stage.run([said(`k${i % 5}`, `message ${i}`)], { ...MAPPED, options: { turnOrder } }));
			await new Promise((resolve) => setTimeout(resolve, 10));
		}
		for (const run of await Promise.all(runs)) expect(run.error).toBeUndefined();
		const heard = stage.platform
			.books()
			.sessions.slice(before)
			.map(({ messages }) => messages.map((message) => Number(message.slice(8))));
		expect(heard).toHaveLength(5);
		for (const numbers of heard) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
		expect(heard.flat()).toHaveLength(25);
	},
	30_000,
);

test('messages to a session given by ID are sent in the order in which their executions began', async () => {
	const { id } = sessionOf(await stage.run([said('k')], { sessionMode: 'new' }));
	const explicit = { sessionMode: 'explicit', sessionId: id };
	const runs: Array<Promise<HarnessRun>> = [];
	for (let i = 0; i < 5; i++) {
		runs.push(stage.run([said('k', `message ${i} [takes: ${100 - 20 * i}]`)], explicit));
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
	for (const run of await Promise.all(runs)) expect(run.error).toBeUndefined();
	const { sessions, agentRefusals } = stage.platform.books();
	expect(agentRefusals).toEqual({});
	expect(sessions[0]?.messages.slice(1).map((message) => message.slice(0, 9))).toEqual(
		[0, 1, 2, 3, 4].map((i) => `message ${i}`),
	);
});

test('two executions that use the same keys in opposite order both end', async () => {
	const keys = ['a', 'b', 'c'];
	const items = keys.map((key) => said(key, `${key} [takes: 50]`));
	const options = { concurrency: 1 };
	const there = stage.run(items, { ...MAPPED, options });
	const back = stage.run(items.toReversed(), { ...MAPPED, options });
	for (const run of [await there, await back]) expect(run.error).toBeUndefined();
	expect(stage.platform.books().sessions.map(({ turns }) => turns)).toEqual([2, 2, 2]);
});

test('a run that was taken for dead while it opened a session reports that, and keeps the other session in the table', async () => {
	const options = { timeoutSeconds: 300 };
	await stage.run([said('makes the table')], MAPPED);
	stage.tables.before = (operation) => {
		if (operation.startsWith('update')) throw new Error('SQLITE_BUSY: database is locked');
	};
	const slow = stage.run([said('k', '[hold]')], { ...MAPPED, options });
	await until(() => stage.platform.agent.held === 1);
	stage.tables.edit(TABLE, (row) =>
		row.sessionKey === 'k' ? { ...row, holder: 'of another worker', sessionId: 'other' } : row,
	);
	stage.tables.before = () => undefined;
	stage.platform.agent.release();
	const run = await slow;
	expect(sessionOf(run).id).not.toBe('other');
	expect(run.jsons()[0]?.hint).toMatch(/^The session of this answer is not kept for its key/);
	const kept = stage.tables.rows(TABLE).filter(({ sessionKey }) => sessionKey === 'k');
	expect(kept.map(({ sessionId }) => sessionId)).toEqual(['other']);
});

test('a run whose row was removed meanwhile reports that', async () => {
	const slow = stage.run([said('k', '[hold]')], MAPPED);
	await until(() => stage.platform.agent.held === 1);
	stage.tables.edit(TABLE, () => undefined);
	stage.platform.agent.release();
	const run = await slow;
	expect(run.jsons()[0]?.hint).toMatch(/removed or changed while the agent answered\.$/);
	expect(stage.tables.rows(TABLE)).toEqual([]);
});

test('if the agent refuses the first message of a key, the next one opens the session', async () => {
	const run = await stage.run([said('k', '[refuse: later]')], { ...MAPPED, options: { retries: 0 } });
	expect(run.status).toBe('error');
	expect(stage.tables.rows(TABLE)).toEqual([]);
	expect(sessionOf(await stage.run([said('k')], MAPPED)).source).toBe('new');
});

describe('Resume', () => {
	const resume = (id: string, interruptId: string) => ({
		...{ operation: 'resume', resumeSessionId: id, interruptId, result: 'yes' },
	});

	test.each(['mapped', 'new'])(
		'keeps the mapping of its session alive, if there is one (%s)',
		async (sessionMode) => {
			const options = { sessionTtlHours: 2 };
			const first = await stage.run([said('k', '[question: sure?]')], { ...MAPPED, sessionMode, options });
			const { id } = sessionOf(first, 1);
			const { interrupt } = first.jsons(1)[0]! as { interrupt: { id: string } };
			const hourAgo = Date.now() - 3_600_000;
			if (sessionMode === 'mapped') {
				stage.tables.edit(TABLE, (row) => ({
					...row,
					lastUsedAt: new Date(hourAgo).toISOString(),
					expiresAtMs: hourAgo + 7_200_000,
				}));
			}
			stage.tables.operations.length = 0;
			const run = await stage.run([said('k')], resume(id, interrupt.id));
			expect(run.error).toBeUndefined();
			if (sessionMode === 'new') {
				expect(operations()).toEqual([]);
				return;
			}
			expect(operations()).toEqual(['get', 'update']);
			const [row] = stage.tables.rows(TABLE);
			expect(row).toMatchObject({ sessionId: id, lastExecutionId: run.executionId });
			expect(Number(row?.expiresAtMs)).toBeGreaterThan(Date.now() + 7_100_000);
			expect(Date.parse(String(row?.lastUsedAt))).toBeGreaterThan(Date.now() - 60_000);
		},
	);
});
