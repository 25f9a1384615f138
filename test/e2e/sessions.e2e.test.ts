// Tests sessions of an agent that n8n remembers: with a hundred parallel calls, after a restart, and for odd keys.
// For PostgreSQL and workers, see queue.e2e.test.ts.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { askAgent, callsOfFewKeys, splitSessions, type AgentItem, type Ask } from './agentWorkflows';
import { dataTableRows, foundInDatabase, type Row } from './databases';
import { failureOf, type SavedWorkflow } from './runner';
import { serviceStage } from './stage';

const START_DEADLINE_MS = 300_000;
/** A hundred executions at once take 10 s on two slow cores, or a minute if other programs use the cores as well. */
const ROUND_DEADLINE_MS = 290_000;
const SERVICE = 'sessions';
const TABLE = 'flow_agent_sessions';
const CALLERS = 100;

const stage = serviceStage('flowtask-sessions-');
let service: SavedWorkflow;
/** How many errors n8n logged while many executions tried to create the same table. */
let complaintsAtStart = 0;

beforeAll(async () => {
	service = await publish(SERVICE);
});

async function publish(path: string, parameters?: Record<string, unknown>): Promise<SavedWorkflow> {
	const workflow = await stage.n8n.client.createWorkflow(askAgent(path, stage.agent, parameters));
	await stage.n8n.client.activate(workflow);
	return workflow;
}

async function ask(body: Ask, path = SERVICE): Promise<AgentItem> {
	const response = await stage.n8n.client.callWebhook(path, body, ROUND_DEADLINE_MS);
	const text = await response.text();
	const answer = JSON.parse(text) as AgentItem;
	if (!response.ok || typeof answer.session?.id !== 'string') {
		throw new Error(
			`no answer to ${JSON.stringify(body).slice(0, 100)}: ${text.slice(0, 300)}; ${await whyFailed()}`,
		);
	}
	return answer;
}

async function whyFailed(): Promise<string> {
	const executions = await stage.n8n.client.listExecutions(service);
	const failed = executions.find(({ status }) => status === 'error' || status === 'crashed');
	if (!failed) return 'no execution of the service failed';
	return failureOf(await stage.n8n.client.getExecution(failed.id)) ?? 'n8n gives no reason';
}

const rowsOf = async (): Promise<Row[]> => await dataTableRows(stage.n8n.client, TABLE);

const callers = Array.from({ length: CALLERS }, (_, index) => `customer ${index}`);
const first = new Map<string, string>();
/** The message of a caller in a round, which no other caller ever sends. */
const saying = (key: string, round: number): string => `${key} speaks in round ${round}`;

/** Lets all callers call at once; each one's own session must answer, with all of that caller's messages and no others. */
async function round(number: number): Promise<void> {
	const answers = await Promise.all(
		callers.map(async (key) => await ask({ key, say: `${saying(key, number)} [recall]` })),
	);
	for (const [index, { answer, session }] of answers.entries()) {
		const key = callers[index] ?? '';
		const before = Array.from({ length: number - 1 }, (_, past) => saying(key, past + 1));
		const said = answer.replaceAll(' [recall]', '').split(' | ');
		expect(said).toEqual(number === 1 ? ['There is nothing to recall.'] : before);
		expect(session).toEqual({
			key,
			id: first.get(key) ?? session.id,
			source: number === 1 ? 'new' : 'mapped',
		});
		first.set(key, session.id);
	}
	expect(new Set(first.values()).size).toBe(CALLERS);
	const { sessions, invocations, agentRefusals } = stage.platform.books();
	expect(sessions).toHaveLength(CALLERS);
	expect(sessions.every(({ turns }) => turns === number)).toBe(true);
	expect([invocations.length, agentRefusals]).toEqual([CALLERS * number, {}]);
}

test.each([1, 2, 3])(
	`round %i: each of ${CALLERS} parallel calls continues in its own session`,
	async (number) => {
		await round(number);
		// n8n refuses and logs all but the first attempt to create the table.
		if (number === 1) complaintsAtStart = stage.n8n.log.errors().length;
	},
	ROUND_DEADLINE_MS,
);

test('the Data Table has a row for each session, with its workflow, and its execution', async () => {
	const rows = await rowsOf();
	const byKey = new Map(rows.map((row) => [row.sessionKey, row]));
	expect([rows.length, byKey.size]).toEqual([CALLERS, CALLERS]);
	const executions = new Set(rows.map(({ lastExecutionId }) => lastExecutionId));
	expect(executions.size).toBe(CALLERS);
	for (const key of callers) {
		expect(byKey.get(key)).toMatchObject({
			sessionId: first.get(key),
			workflowId: service.id,
			lastExecutionId: expect.stringMatching(/^\d+$/),
		});
	}
});

test(
	'after n8n is stopped and started again, the fourth round continues in the same sessions',
	async () => {
		await stage.n8n.stop();
		expect(stage.n8n.log.errors().slice(complaintsAtStart)).toEqual([]);
		expect(stage.n8n.log.text()).not.toContain(stage.platform.agentToken);
		await stage.startAgain();
		complaintsAtStart = 0;
		await round(4);
	},
	START_DEADLINE_MS,
);

test(
	`${CALLERS} parallel calls with 20 keys use 20 sessions, and every call is a turn in the session of its key`,
	async () => {
		stage.platform.resetBooks();
		const calls = callsOfFewKeys(CALLERS, 20, 'opened at once');
		const answers = await Promise.all(calls.map(async (call) => await ask(call)));
		const { sessions, invocations, agentRefusals } = stage.platform.books();
		expect(splitSessions(calls, sessions)).toEqual([]);
		expect([sessions.length, invocations.length, agentRefusals]).toEqual([20, CALLERS, {}]);
		expect(answers.filter(({ session }) => session.source === 'new')).toHaveLength(20);
		const keys = new Set(calls.map(({ key }) => key));
		const rows = (await rowsOf()).filter(({ sessionKey }) => keys.has(String(sessionKey)));
		const ids = new Set(answers.map(({ session }) => session.id));
		expect([rows.length, ids]).toEqual([20, new Set(rows.map(({ sessionId }) => sessionId))]);
	},
	ROUND_DEADLINE_MS,
);

test.each(['arrival', 'strict'])(
	'twenty keys with five messages each, a second apart and under load, keep the order of the calls: %s',
	async (turnOrder) => {
		const path = `${SERVICE}_order_${turnOrder}`;
		await publish(path, { options: { turnOrder } });
		stage.platform.resetBooks();
		const messagesOf = (key: string): string[] =>
			[1, 2, 3, 4, 5].map((number) => `${turnOrder} ${key} says ${number} [takes: 300]`);
		const keys = Array.from({ length: 20 }, (_, index) => `${turnOrder} in order ${index}`);
		const calls = keys.map(async (key) => {
			const answers = messagesOf(key).map(async (say, index) => {
				await sleep(index * 1_000);
				return await ask({ key, say }, path);
			});
			return await Promise.all(answers);
		});
		await Promise.all(calls);
		const { sessions, agentRefusals, concurrentPerSession } = stage.platform.books();
		const heard = sessions.map(({ messages }) => messages).toSorted();
		expect(heard).toEqual(keys.map(messagesOf).toSorted());
		expect(agentRefusals).toEqual({});
		if (turnOrder === 'strict') expect(concurrentPerSession).toBe(1);
		expect((await rowsOf()).filter(({ sessionId }) => !sessionId)).toEqual([]);
	},
	ROUND_DEADLINE_MS,
);

test(
	'keys that are code, odd or long are stored unchanged',
	async () => {
		const keys = [
			'={{ 1+1 }}',
			'2',
			'={{ $json.body.say }}',
			`"quoted", 'quoted' and \`ticked\``,
			"'; DROP TABLE x; --",
			'two\nlines\r\n\tand a tab',
			'🦊 ключ 鍵 \u202Edne',
			'%',
			'__proto__',
			'a'.repeat(10_000),
			`${'a'.repeat(9_999)}b`,
			'🦊'.repeat(150),
		];
		const opened = await Promise.all(keys.map(async (key) => await ask({ key, say: `I am ${name(key)}` })));
		expect(new Set(opened.map(({ session }) => session.id)).size).toBe(keys.length);
		const recalled = await Promise.all(keys.map(async (key) => await ask({ key, say: '[recall]' })));
		expect(recalled.map(({ answer, session }) => ({ answer, session }))).toEqual(
			keys.map((key, index) => ({
				answer: `I am ${name(key)}`,
				session: { key, id: opened[index]?.session.id, source: 'mapped' },
			})),
		);
		const shown = (await rowsOf()).map(({ sessionKey }) => String(sessionKey));
		expect(shown).toEqual(expect.arrayContaining(keys.slice(0, 9)));
		expect(shown.filter((key) => key === 'a'.repeat(200))).toHaveLength(2);
	},
	ROUND_DEADLINE_MS,
);

test(
	'if two executions use the same idempotency key at once, the agent runs once and the second gets its answer',
	async () => {
		const path = `${SERVICE}_once`;
		await publish(path, { limits: { idempotencyKey: '={{ $json.body.key }}' } });
		// This creates the ledger's table; the ledger's own test covers two executions that create it at once.
		await ask({ key: 'order 0', say: 'open the books' }, path);
		stage.platform.resetBooks();
		const order = { key: 'order 1', say: 'book it [side effect: booked] [takes: 1500]' };
		const both = await Promise.all([ask(order, path), ask(order, path)]);
		const again = await ask(order, path);
		expect(both.filter(({ replayed }) => replayed === true)).toHaveLength(1);
		expect(again.replayed).toBe(true);
		const answers = new Set([...both, again].map(({ answer, session }) => `${session.id} ${answer}`));
		expect(answers.size).toBe(1);
		const { invocations, effects } = stage.platform.books();
		expect([invocations.length, effects]).toEqual([1, { booked: 1 }]);
	},
	ROUND_DEADLINE_MS,
);

test("n8n's database and log do not contain the token, and n8n logs no errors", async () => {
	const { agentToken } = stage.platform;
	const found = await foundInDatabase(undefined, stage.userFolder, [agentToken, 'customer 1 speaks']);
	expect(found).toEqual(['customer 1 speaks']);
	expect(stage.n8n.log.text()).not.toContain(agentToken);
	expect(stage.n8n.log.errors().slice(complaintsAtStart)).toEqual([]);
});

/** A readable word for a key that is too odd to print. */
function name(key: string): string {
	return createHash('sha256').update(key).digest('hex').slice(0, 8);
}
