// Tests sessions of an agent that n8n remembers: with a hundred parallel calls, after a restart, and for odd keys.
// For PostgreSQL and workers, see queue.e2e.test.ts.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPlatform, type LocalPlatform } from '../platform';
import { askAgent, callsOfFewKeys, splitSessions, type AgentItem, type Ask } from './agentWorkflows';
import { dataTableRows, foundInDatabase, type Row } from './databases';
import { packedTarball } from './packOnce';
import { failureOf, startN8n, type RunningN8n, type SavedCredential, type SavedWorkflow } from './runner';

const START_DEADLINE_MS = 300_000;
/** A hundred executions at once take 10 s on two slow cores, or a minute if other programs use the cores as well. */
const ROUND_DEADLINE_MS = 290_000;
const SERVICE = 'sessions';
const TABLE = 'flow_agent_sessions';
const CALLERS = 100;

const userFolder = mkdtempSync(join(tmpdir(), 'flowtask-sessions-'));
let platform: LocalPlatform;
let n8n: RunningN8n;
let account: SavedCredential;
let service: SavedWorkflow;
/** How many errors n8n logged while many executions tried to create the same table. */
let complaintsAtStart = 0;

beforeAll(async () => {
	platform = await startPlatform();
	n8n = await startN8n({ userFolder, tarball: packedTarball() });
	account = await n8n.client.createCredential('flowAgentApi', 'FlowAgent account', {
		agentToken: platform.agentToken,
		baseUrl: platform.apiUrl,
	});
	service = await n8n.client.createWorkflow(askAgent(SERVICE, account));
	await n8n.client.activate(service);
}, START_DEADLINE_MS);

afterAll(async () => {
	await n8n?.stop();
	await platform?.close();
	rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
}, 120_000);

async function ask(body: Ask, path = SERVICE): Promise<AgentItem> {
	const response = await n8n.client.callWebhook(path, body, ROUND_DEADLINE_MS);
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
	const executions = await n8n.client.listExecutions(service);
	const failed = executions.find(({ status }) => status === 'error' || status === 'crashed');
	if (!failed) return 'no execution of the service failed';
	return failureOf(await n8n.client.getExecution(failed.id)) ?? 'n8n gives no reason';
}

const rowsOf = async (): Promise<Row[]> => await dataTableRows(n8n.client, TABLE);

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
	const { sessions, invocations, agentRefusals } = platform.books();
	expect(sessions).toHaveLength(CALLERS);
	expect(sessions.every(({ turns }) => turns === number)).toBe(true);
	expect([invocations.length, agentRefusals]).toEqual([CALLERS * number, {}]);
}

test.each([1, 2, 3])(
	`round %i: each of ${CALLERS} parallel calls continues in its own session`,
	async (number) => {
		await round(number);
		// n8n refuses and logs all but the first attempt to create the table.
		if (number === 1) complaintsAtStart = n8n.log.errors().length;
	},
	ROUND_DEADLINE_MS,
);

test('the Data Table has a row for each session, with its workflow, its execution and its turns', async () => {
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
			turns: 3,
		});
	}
});

test(
	'after n8n is stopped and started again, the fourth round continues in the same sessions',
	async () => {
		await n8n.stop();
		expect(n8n.log.errors().slice(complaintsAtStart)).toEqual([]);
		expect(n8n.log.text()).not.toContain(platform.agentToken);
		n8n = await startN8n({ userFolder });
		complaintsAtStart = 0;
		await round(4);
	},
	START_DEADLINE_MS,
);

test(
	`${CALLERS} parallel calls with 20 keys use 20 sessions, and every call is a turn in the session of its key`,
	async () => {
		platform.resetBooks();
		const calls = callsOfFewKeys(CALLERS, 20, 'opened at once');
		const answers = await Promise.all(calls.map(async (call) => await ask(call)));
		const { sessions, invocations, agentRefusals } = platform.books();
		expect(splitSessions(calls, sessions)).toEqual([]);
		expect([sessions.length, invocations.length, agentRefusals]).toEqual([20, CALLERS, {}]);
		expect(answers.filter(({ session }) => session.source === 'new')).toHaveLength(20);
		const keys = new Set(calls.map(({ key }) => key));
		const rows = (await rowsOf()).filter(({ sessionKey }) => keys.has(String(sessionKey)));
		const ids = new Set(answers.map(({ session }) => session.id));
		expect([rows.length, ids]).toEqual([20, new Set(rows.map(({ sessionId }) => sessionId))]);
		expect(rows.every(({ turns }) => turns === CALLERS / 20)).toBe(true);
	},
	ROUND_DEADLINE_MS,
);

test(
	'five messages in quick succession to a slow agent are five turns of one session, in their order',
	async () => {
		platform.resetBooks();
		const messages = [1, 2, 3, 4, 5].map((number) => `message ${number} [takes: 2000]`);
		const answers = messages.map(async (say, index) => {
			await sleep(index * 500);
			return await ask({ key: 'writes fast', say });
		});
		await Promise.all(answers);
		const { sessions, agentRefusals } = platform.books();
		expect(sessions.map((session) => session.messages)).toEqual([messages]);
		expect(agentRefusals).toEqual({});
	},
	ROUND_DEADLINE_MS,
);

test.each(['arrival', 'strict'])(
	'twenty keys with five messages each, a second apart and under load, keep the order of the calls: %s',
	async (turnOrder) => {
		const path = `${SERVICE}_order_${turnOrder}`;
		await n8n.client.activate(
			await n8n.client.createWorkflow(askAgent(path, account, { options: { turnOrder } })),
		);
		platform.resetBooks();
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
		const { sessions, agentRefusals } = platform.books();
		const heard = sessions.map(({ messages }) => messages).toSorted();
		expect(heard).toEqual(keys.map(messagesOf).toSorted());
		expect(agentRefusals).toEqual({});
	},
	ROUND_DEADLINE_MS,
);

test(
	'in strict order, parallel calls with few keys are turns of one session per key',
	async () => {
		const path = `${SERVICE}_strict`;
		const options = { turnOrder: 'strict' };
		await n8n.client.activate(await n8n.client.createWorkflow(askAgent(path, account, { options })));
		platform.resetBooks();
		const calls = callsOfFewKeys(30, 6, 'in a line');
		await Promise.all(calls.map(async (call) => await ask(call, path)));
		const { sessions, agentRefusals, concurrentPerSession } = platform.books();
		expect(splitSessions(calls, sessions)).toEqual([]);
		expect([sessions.length, agentRefusals, concurrentPerSession]).toEqual([6, {}, 1]);
		const left = (await rowsOf()).filter(({ sessionId }) => !sessionId);
		expect(left).toEqual([]);
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
		const once = await n8n.client.createWorkflow(
			askAgent(path, account, { limits: { idempotencyKey: '={{ $json.body.key }}' } }),
		);
		await n8n.client.activate(once);
		// This creates the ledger's table; the ledger's own test covers two executions that create it at once.
		await ask({ key: 'order 0', say: 'open the books' }, path);
		platform.resetBooks();
		const order = { key: 'order 1', say: 'book it [side effect: booked] [takes: 1500]' };
		const both = await Promise.all([ask(order, path), ask(order, path)]);
		const again = await ask(order, path);
		expect(both.filter(({ replayed }) => replayed === true)).toHaveLength(1);
		expect(again.replayed).toBe(true);
		const answers = new Set([...both, again].map(({ answer, session }) => `${session.id} ${answer}`));
		expect(answers.size).toBe(1);
		const { invocations, effects } = platform.books();
		expect([invocations.length, effects]).toEqual([1, { booked: 1 }]);
	},
	ROUND_DEADLINE_MS,
);

test("n8n's database and log do not contain the token, and n8n logs no errors", async () => {
	const { agentToken } = platform;
	const found = await foundInDatabase(undefined, userFolder, [agentToken, 'customer 1 speaks']);
	expect(found).toEqual(['customer 1 speaks']);
	expect(n8n.log.text()).not.toContain(agentToken);
	expect(n8n.log.errors().slice(complaintsAtStart)).toEqual([]);
});

/** A readable word for a key that is too odd to print. */
function name(key: string): string {
	return createHash('sha256').update(key).digest('hex').slice(0, 8);
}
