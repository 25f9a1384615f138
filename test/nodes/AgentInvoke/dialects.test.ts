import type { INodeParameters } from 'n8n-workflow';

import type { Agent } from '../../platform';
import type { DialectName } from '../../platform/agents/dialects';
import { describedBy } from '../../unit/AgentInvoke/wire/wire.fixture';
import { until } from '../../until';
import type { HarnessRun, ItemInput } from '../harness';
import { sayings, sharedStage } from '../harness/stage';
import { CONTINUE, openAgentStage } from './agent.fixture';
import { DIALECT_ACCOUNTS } from './dialectAccounts';

/** Three deployments that differ in everything that the interface leaves open, and that credentials describe. */
const NAMES: readonly DialectName[] = ['usual', 'nested', 'bare'];
const OPTIONS = { requestsPerSecond: 0, timeoutSeconds: 3, retries: 0 };

interface Facts {
	readonly busy: string;
	readonly load: string;
	readonly lost: string;
	readonly refused: string;
	/** The rule that yields the text of a stream. */
	readonly rule: string;
	readonly body: (message: string, session?: string) => object;
	readonly usage: unknown;
}

const FACTS: Readonly<Record<DialectName, Facts>> = {
	usual: {
		...{ busy: 'session_busy', load: 'overloaded', lost: 'session_not_found', refused: 'token_expired' },
		rule: 'stream.rules[3].whole',
		body: (message, session) => ({ message, ...(session && { session_id: session }) }),
		usage: { invocations: 1 },
	},
	nested: {
		...{ busy: 'THREAD_LOCKED', load: 'QUEUE_FULL', lost: 'THREAD_LOST', refused: 'TOKEN_REFUSED' },
		rule: 'stream.rules[3].whole',
		body: (query, session) => ({
			...{ input: { query }, mode: 'sync' },
			...(session && { thread: { id: session } }),
		}),
		usage: { units: expect.any(Number) },
	},
	bare: {
		...{ busy: 'conversation_in_use', load: 'no_capacity', lost: 'no_such_conversation', refused: 'bad_key' },
		rule: 'stream.rules[2].delta',
		body: (text, session) => ({ text, ...(session && { conversation: session }) }),
		usage: expect.any(Number),
	},
};

describe.each(NAMES)('%s', (dialect) => {
	// Calls with an unknown token are answered in the dialect of the default instance.
	const stage = sharedStage(openAgentStage, { agentDialect: dialect });
	let agent: Agent;
	const facts = FACTS[dialect];
	beforeEach(() => {
		agent = stage.platform.createAgent({ dialect });
	});

	const account = (): Record<string, string | boolean> => ({
		agentToken: agent.token,
		...DIALECT_ACCOUNTS[dialect],
	});

	async function ask(
		items: ItemInput[],
		parameters: INodeParameters = {},
		settings: object = CONTINUE,
	): Promise<HarnessRun> {
		return await stage.run(items, { options: OPTIONS, ...parameters }, { account: account(), ...settings });
	}

	const books = () => stage.platform.books();
	const item = (run: HarnessRun, output = 0) => run.jsons(output)[0]!;
	const inSession = (id: string) => ({ sessionMode: 'explicit', sessionId: id });
	const sessionOf = (json: object): string => (json as { session: { id: string } }).session.id;

	test.each([false, true])('continues a session from message to message (stream: %s)', async (stream) => {
		const first = item(await ask(sayings('one'), { stream }));
		expect(first).toMatchObject({ answer: 'Turn 1: you said "one"', usage: facts.usage });
		const second = item(await ask(sayings('[recall]'), { stream, ...inSession(sessionOf(first)) }));
		expect(second).toMatchObject({ answer: 'one', session: { id: sessionOf(first), source: 'explicit' } });
		expect(books().sessions).toMatchObject([{ sessionId: sessionOf(first), turns: 2 }]);
		// The node sent no field that the deployment does not know.
		expect(books().invocations.map(({ extraBody }) => extraBody)).toEqual([{}, {}]);
	});

	test("passes a stream on as it arrives, without the agent's steps", async () => {
		const say = '[step: search] [step: book] [answer: one two three]';
		const parameters = { stream: true, simplify: false };
		const run = await ask(sayings(say), parameters, { streaming: true, mode: 'webhook' });
		const chunks = run.chunks.filter(({ type }) => type === 'item').map(({ content }) => content);
		expect(chunks.length).toBeGreaterThan(1);
		expect(chunks.join('')).toBe('one two three');
		expect(item(run)).toMatchObject({ answer: 'one two three', readFrom: { answer: facts.rule } });
		const { events } = item(run) as { events: Array<{ data: object }> };
		expect(events).toHaveLength(2);
		expect(JSON.stringify(events[0])).toContain('search');
		expect(JSON.stringify(events[1])).toContain('book');
	});

	test('uploads a file that the agent reads', async () => {
		const data = { data: Buffer.from('hello'), fileName: 'a.txt', mimeType: 'text/plain' };
		const files = { file: [{ source: 'binary', binaryPropertyName: 'data' }] };
		const run = await ask([{ json: { say: '[describe files]' }, binary: { data } }], { files });
		expect(item(run).answer).toContain('5 bytes');
		expect(books()).toMatchObject({
			media: [{ name: 'a.txt', mimeType: 'text/plain', bytes: 5, reads: 1 }],
			invocations: [{ files: [{}] }],
		});
		const uploaded = await ask([{ json: {}, binary: { data } }], { operation: 'uploadMedia' });
		expect(item(uploaded)).toMatchObject({ url: expect.stringContaining('/media/'), name: 'a.txt' });
		expect(item(uploaded).expiresAt).toMatch(/./);
	});

	test.each([false, true])('outputs an interrupt and sends its answer (stream: %s)', async (stream) => {
		const asked = await ask(sayings('[question: which colour?] [tool: refund {"order": 7}]'), { stream });
		expect(item(asked, 1)).toMatchObject({
			interrupt: { kind: 'question', question: 'which colour?', id: expect.stringMatching(/^int_/) },
		});
		const answer = { operation: 'resume', result: 'dark red', stream };
		const wanted = await ask([{ json: item(asked, 1) }], answer);
		expect(item(wanted, 1)).toMatchObject({
			interrupt: { kind: 'tool', tool: 'refund', arguments: { order: 7 } },
			session: { id: sessionOf(item(asked, 1)) },
		});
		const result = { operation: 'resume', result: '{ "refunded": true }', stream };
		const done = await ask([{ json: item(wanted, 1) }], result);
		expect(item(done).answer).toContain('{"refunded":true}');
		expect(books().invocations.map(({ interruptAnswered }) => interruptAnswered)).toMatchObject([
			null,
			{ result: 'dark red' },
			{ result: { refunded: true } },
		]);
		expect(books().sessions).toMatchObject([{ turns: 3, pendingInterrupt: null }]);
	});

	test.each([false, true])('reports a busy session as not run (stream: %s)', async (stream) => {
		// The first message is sent by key: one sent by session ID would make the next one queue in the node.
		const ofKey = { sessionMode: 'mapped', sessionKey: 'k' };
		const id = sessionOf(item(await ask(sayings('hi'), ofKey)));
		const slow = ask(sayings('[hold]'), ofKey);
		await until(() => agent.held === 1);
		const json = item(await ask(sayings('and now?'), { stream, ...inSession(id) }));
		agent.release();
		await slow;
		expect(json).toMatchObject({
			error: 'This session is busy with another message',
			details: { kind: 'refused', reason: facts.busy, sessionId: id },
		});
		expect(json.details).not.toHaveProperty('mayHaveRun');
	});

	test.each([false, true])(
		'repeats a call that was not run, and reports it as such (stream: %s)',
		async (stream) => {
			const options = { ...OPTIONS, retries: 1, timeoutSeconds: 20 };
			const json = item(await ask(sayings('[refuse: too much]'), { stream, options }));
			expect(json.error).toMatch(
				new RegExp(`still not accepting calls after \\d tries: ${facts.load}: too much`),
			);
			expect(json.details).not.toHaveProperty('mayHaveRun');
			expect(books().requests.invoke).toBeGreaterThan(1);
			expect(books().invocations).toEqual([]);
		},
	);

	test('does not repeat a call that ran and failed', async () => {
		const options = { ...OPTIONS, retries: 3 };
		for (const stream of [false, true]) {
			stage.reset();
			const json = item(await ask(sayings('[side effect: a] [fail: no fuel]'), { stream, options }));
			expect(json.error).toMatch(/^The agent failed.*no fuel/);
			expect(json.details).toMatchObject({ kind: 'agentFailed', mayHaveRun: true });
			expect(books().effects).toEqual({ a: 1 });
		}
	});

	test('reports an unknown session, and renews it if the option is on', async () => {
		const id = sessionOf(item(await ask(sayings('hi'))));
		agent.expireSessions();
		const lost = item(await ask(sayings('again'), inSession(id)));
		expect(lost).toMatchObject({
			error: `The platform no longer knows the session "${id}"`,
			details: { reason: facts.lost },
		});
		const options = { ...OPTIONS, renewExpiredSession: true };
		const renewed = item(await ask(sayings('again'), { ...inSession(id), options }));
		expect(renewed).toMatchObject({ answer: 'Turn 1: you said "again"', session: { source: 'renewed' } });
	});

	test('reports a rejected token as a credential problem', async () => {
		const debug = agent.debugToken(0);
		await new Promise((resolve) => setTimeout(resolve, 2));
		const settings = { account: { ...account(), agentToken: debug }, ...CONTINUE };
		const json = item(await ask(sayings('hi'), {}, settings));
		expect(json.details).toMatchObject({ kind: 'credential', httpStatus: 401, reason: facts.refused });
		expect(books().invocations).toEqual([]);
	});

	test('shows the body in a preview, and after a run which entry each value was read from', async () => {
		const preview = item(
			await ask(sayings('hello'), { options: { ...OPTIONS, previewRequest: true }, ...inSession('s 1') }),
		);
		expect(preview).toMatchObject({ preview: { body: facts.body('hello', 's 1') } });
		expect(books().requests.invoke).toBe(0);
		const json = item(await ask(sayings('hello'), { options: { ...OPTIONS, previewResponse: true } }));
		expect(json.readFrom).toMatchObject({
			...{ answer: 'answer.text', session: 'answer.session', usage: 'answer.usage', interrupt: null },
		});
		expect(json).not.toHaveProperty('raw');
		expect(books().invocations).toMatchObject([{ message: 'hello', extraBody: {} }]);
		expect(json.readFrom).toHaveProperty('found');
	});

	test('merges the extra body in at any depth, but never replaces a value', async () => {
		const extraBody = dialect === 'nested' ? '{"input":{"lang":"en"},"tag":1}' : '{"tag":1}';
		const json = item(await ask(sayings('hello'), { options: { ...OPTIONS, extraBody } }));
		expect(json.answer).toContain('hello');
		expect(books().invocations).toMatchObject([{ extraBody: { tag: 1 }, message: 'hello' }]);
		const [field] = Object.keys(facts.body(''));
		const clash = { ...OPTIONS, extraBody: JSON.stringify({ [field!]: 'mine' }) };
		expect(item(await ask(sayings('hello'), { options: clash })).error).toContain(`"${field!}`);
		expect(books().requests.invoke).toBe(1);
	});

	test('tests a token with the credential test without running the agent', async () => {
		const test = async (agentToken: string) =>
			await stage.harness.testCredential('flowAgentApi', {
				...{ baseUrl: stage.platform.apiUrl, invokePath: '/api/agents/Invoke' },
				...account(),
				agentToken,
			});
		expect(await test(agent.token)).toMatchObject({ status: 'OK' });
		const debug = agent.debugToken(0);
		await new Promise((resolve) => setTimeout(resolve, 2));
		expect(await test(debug)).toMatchObject({
			status: 'Error',
			message: expect.stringContaining('refused this token'),
		});
		const rightless = stage.platform.createAgent({ dialect, rights: [] });
		expect(await test(rightless.token)).toMatchObject({
			message: expect.stringContaining('not have permission'),
		});
		const nowhere = await stage.harness.testCredential('flowAgentApi', {
			...{ baseUrl: stage.platform.apiUrl, ...account(), invokePath: '/nothing' },
		});
		expect(nowhere).toMatchObject({ status: 'Error', message: expect.stringContaining('not an agent') });
		expect(books().invocations).toEqual([]);
	});
});

describe('a platform whose dialect differs from the credential', () => {
	const stage = sharedStage(openAgentStage);

	test('is understood if it refuses with an envelope that the credential does not describe', async () => {
		const account = { ...DIALECT_ACCOUNTS.bare, agentToken: 'agt_unknown0000' };
		const run = await stage.run(sayings('hello'), { options: OPTIONS }, { account, ...CONTINUE });
		expect(run.jsons()[0]?.details).toMatchObject({ kind: 'credential', httpStatus: 401 });
	});

	test.each(NAMES.filter((name) => name !== 'usual'))(
		'gives no answer that the dialect "%s" accepts',
		async (dialect) => {
			const { agent } = stage.platform;
			const account = { ...DIALECT_ACCOUNTS[dialect], agentToken: agent.token };
			for (const stream of [false, true]) {
				const run = await stage.run(sayings('hello'), { stream, options: OPTIONS }, { account, ...CONTINUE });
				expect(run.jsons()[0]).toMatchObject({ error: expect.stringMatching(/./) });
			}
			expect(stage.platform.books().invocations).toEqual([]);
		},
	);

	test.each([
		['invalid JSON', { description: '{"a":' }, 'is not a JSON object'],
		[
			'an invalid JMESPath expression',
			describedBy({ answer: { text: 'a[' } }),
			'"answer.text" ("a[") must be a JMESPath expression',
		],
	])(
		'a description with %s is reported when the node starts and by the credential test',
		async (_name, fields, said) => {
			const account = { wire: 'described', ...fields };
			const run = await stage.run(sayings('hello', 'again'), {}, { account });
			expect(run.error?.message).toContain(said);
			const test = await stage.harness.testCredential('flowAgentApi', {
				...{ baseUrl: stage.platform.apiUrl, agentToken: stage.platform.agentToken },
				...account,
			});
			expect(test).toMatchObject({ status: 'Error', message: expect.stringContaining(said) });
			expect(stage.platform.books().requests.invoke).toBe(0);
		},
	);

	test('refuses a value without a placeholder in the description instead of leaving it out', async () => {
		const account = describedBy({ request: { message: { message: '$message' } } });
		const keyed = { sessionMode: 'mapped', sessionKey: 'k' };
		const json = async (parameters: INodeParameters) =>
			(await stage.run(sayings('hi'), parameters, { account, ...CONTINUE })).jsons()[0];
		expect(await json(keyed)).toMatchObject({
			error: expect.stringContaining('no placeholder for the session'),
		});
		const files = { file: [{ source: 'url', url: 'https://x.example/a' }] };
		expect(await json({ files })).toMatchObject({
			error: expect.stringContaining('no placeholder for the files'),
		});
		expect(stage.platform.books().requests.invoke).toBe(0);
		expect(await json({})).toMatchObject({ answer: 'Turn 1: you said "hi"' });
	});
});
