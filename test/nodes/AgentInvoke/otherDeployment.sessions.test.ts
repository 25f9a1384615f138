import { harnessWorkflowId } from '../harness/dataTables';
import { NODE_NAME, type HarnessRun, type ItemInput } from '../harness';
import { sayings } from '../harness/stage';
import { accountOf, ONE_MAKE, openOtherStage, UNHURRIED, type OtherStage } from './otherDeployment.fixture';

/* Who talks to whom, in which order and how often: by the books of a server that is not ours. */

const SESSIONS = 'flow_agent_sessions';
const TURNS = 'flow_agent_turns';
const MAPPED = { sessionMode: 'mapped', sessionKey: '={{ $json.key }}' };

let stage: OtherStage;
beforeAll(async () => {
	stage = await openOtherStage();
});
afterAll(async () => {
	await stage.close();
});
beforeEach(() => {
	stage.reset();
});

const said = (key: string, say: string): ItemInput => ({ json: { key, say } });

function jsonOf(runs: readonly HarnessRun[]) {
	return runs.flatMap((run) => {
		expect(run.error).toBeUndefined();
		return run.output(NODE_NAME).map(({ json }) => json);
	});
}

const wait = async (ms: number): Promise<void> => {
	await new Promise((resolve) => setTimeout(resolve, ms));
};

describe.each(['arrival', 'strict'])('turn order %s', (turnOrder) => {
	const options = { ...UNHURRIED, timeoutSeconds: 600, turnOrder };

	test('100 executions at once with 20 keys: 20 sessions, no turn outside of them', async () => {
		stage.deployment.plan = () => ({ takesMs: 200 });
		const runs = await Promise.all(
			Array.from({ length: 100 }, async (_, n) => {
				return await stage.run([said(`k${n % 20}`, `${n % 20}/${n}`)], { ...MAPPED, options });
			}),
		);
		const answers = jsonOf(runs);
		expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
		const { sessions } = stage.deployment;
		expect(sessions).toHaveLength(20);
		for (const session of sessions) {
			expect(session.said).toHaveLength(5);
			expect(new Set(session.said.map((text) => text.split('/')[0])).size).toBe(1);
		}
		const { ran, LINE_TAKEN = 0, ...others } = stage.deployment.verdicts();
		expect([ran, others]).toEqual([100, {}]);
		expect(stage.deployment.overlaps.calls).toBe(LINE_TAKEN);
		if (turnOrder === 'strict') expect(LINE_TAKEN).toBe(0);
		expect(
			stage.tables
				.rows(SESSIONS)
				.map(({ sessionId }) => sessionId)
				.sort(),
		).toEqual(sessions.map(({ id }) => id).sort());
	});

	test('five messages a second apart to an agent that takes 4 s: one session, in the order they came', async () => {
		stage.deployment.plan = () => ({ takesMs: 4_000 });
		const runs: Array<Promise<HarnessRun>> = [];
		for (const n of [1, 2, 3, 4, 5]) {
			runs.push(stage.run([said('anna', `message ${n}`)], { ...MAPPED, options }));
			await wait(1_000);
		}
		jsonOf(await Promise.all(runs));
		expect(stage.deployment.sessions.map((session) => session.said)).toEqual([
			[1, 2, 3, 4, 5].map((n) => `message ${n}`),
		]);
	});

	test('one execution of 40 items with 4 keys keeps each key in order', async () => {
		stage.deployment.plan = () => ({ takesMs: 50 });
		const items = Array.from({ length: 40 }, (_, n) => said(`k${n % 4}`, String(n)));
		jsonOf([await stage.run(items, { ...MAPPED, options: { ...options, concurrency: 8 } })]);
		const { sessions, overlaps } = stage.deployment;
		expect(sessions).toHaveLength(4);
		for (const { said: order } of sessions) {
			expect(order).toEqual([...order].sort((a, b) => Number(a) - Number(b)));
		}
		expect(overlaps.calls).toBe(0);
	});
});

test('a first message that fails lets the next one begin, and both are told', async () => {
	stage.deployment.plan = (text) =>
		text === 'first' ? { takesMs: 500, refuses: { status: 422, code: 'NOT_TODAY' } } : {};
	const first = stage.run([said('k', 'first')], { ...MAPPED, options: UNHURRIED });
	await wait(100);
	const second = stage.run([said('k', 'second')], { ...MAPPED, options: UNHURRIED });
	const [refused, answered] = jsonOf(await Promise.all([first, second]));
	expect(refused?.error).toContain('not today');
	expect(answered?.answer).toBe('1: second');
	expect(stage.deployment.sessions).toHaveLength(1);
});

test('Resume keeps the mapping alive as Invoke does', async () => {
	stage.deployment.plan = () => ({ asks: [{ title: 'Sure?' }] });
	const asked = await stage.run([said('k', 'hi')], { ...MAPPED, options: UNHURRIED });
	const [before] = stage.tables.rows(SESSIONS);
	await wait(5_000);
	const interrupt = asked.output(NODE_NAME, 1)[0]!;
	jsonOf([await stage.run([{ json: interrupt.json }], { operation: 'resume', result: 'yes' })]);
	const [after] = stage.tables.rows(SESSIONS);
	expect(after).toMatchObject({ sessionId: before?.sessionId, turns: Number(before?.turns) + 1 });
	expect(String(after?.lastUsedAt) > String(before?.lastUsedAt)).toBe(true);
	expect(Number(after?.expiresAtMs)).toBeGreaterThan(Number(before?.expiresAtMs));
});

describe('what is on record', () => {
	test('Record Turns writes one row a turn, in one write', async () => {
		stage.deployment.plan = (text) => {
			if (text === 'ask') return { asks: [{ title: 'Sure?' }] };
			return text === 'no' ? { refuses: { status: 422, code: 'NOT_TODAY' } } : {};
		};
		const options = { ...UNHURRIED, recordTurns: true };
		const items = [said('a', 'one'), said('a', 'two'), said('b', 'ask'), said('c', 'no')];
		const run = await stage.run(items, { ...MAPPED, options });
		const rows = stage.tables.rows(TURNS).sort((x, y) => Number(x.item) - Number(y.item));
		const [a] = stage.deployment.sessions;
		const common = { executionId: run.executionId, workflowId: harnessWorkflowId(), node: NODE_NAME };
		expect(rows).toMatchObject([
			{ ...common, item: 0, sessionKey: 'a', sessionId: a?.id, outcome: 'answered', attempts: 1 },
			{ ...common, item: 1, sessionKey: 'a', sessionId: a?.id, outcome: 'answered' },
			{ ...common, item: 2, sessionKey: 'b', outcome: 'interrupted' },
			{ ...common, item: 3, sessionKey: 'c', outcome: 'refused' },
		]);
		expect(rows[0]).toMatchObject({
			kind: 'message',
			requestId: expect.stringMatching(/^trace-/),
			usage: expect.stringContaining('"tok_all"'),
			startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
			ms: expect.any(Number),
		});
		expect(JSON.stringify(rows)).not.toMatch(/"one"|1: one/);
		expect(stage.tables.operations.filter((one) => one === `insert ${TURNS}`)).toHaveLength(1);
	});

	test('without Record Turns there is no such table', async () => {
		await stage.run([said('a', 'one')], { ...MAPPED, options: UNHURRIED });
		expect(stage.tables.operations.filter((one) => one.includes(TURNS))).toEqual([]);
	});

	test.each([
		['key', [true, true, true, false, true]],
		['node', [true, true, true, false, false]],
	])('a budget of three turns per %s holds over executions', async (per, answered) => {
		const options = { ...UNHURRIED, budget: { limit: { per, unit: 'turns', most: 3 } } };
		const first = await stage.run([said('a', '1'), said('a', '2')], { ...MAPPED, options });
		const second = await stage.run([said('a', '3'), said('a', '4'), said('b', '5')], { ...MAPPED, options });
		const answers = jsonOf([first, second]);
		expect(answers.map(({ error }) => error === undefined)).toEqual(answered);
		expect(answers[3]?.error).toContain('Limit per Day');
		expect(stage.deployment.calls).toHaveLength(answered.filter(Boolean).length);
	});

	test('a budget of tokens counts the usage that the deployment tells', async () => {
		stage.deployment.plan = () => ({ says: 'a b c d' }); // 1 in, 4 out
		const options = { ...UNHURRIED, budget: { limit: { per: 'key', unit: 'tokens', most: 9 } } };
		const account = accountOf(ONE_MAKE, { answer: { usage: 'cost.tok_all' } });
		const ask = async () => await stage.run([said('a', 'x')], { ...MAPPED, options }, account);
		const answers = jsonOf([await ask(), await ask(), await ask()]);
		// 5 tokens, then 6 more: the turn that crosses the limit is the last one.
		expect(answers.map(({ error }) => error === undefined)).toEqual([true, true, false]);
		expect(stage.deployment.calls).toHaveLength(2);
	});

	test('Max Invocations counts repeats', async () => {
		stage.deployment.plan = () => ({ refuses: { status: 503, code: 'KITCHEN_FULL' } });
		const options = { ...UNHURRIED, retries: 5, maxInvocations: 2 };
		const [answer] = jsonOf([await stage.run(sayings('hi'), { options })]);
		expect(answer?.error).toEqual(expect.any(String));
		expect(stage.deployment.verdicts()).toEqual({ KITCHEN_FULL: 2 });
	});
});
