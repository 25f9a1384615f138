// Drives the built node with the descriptions in docs/wires/ against the servers that they are for.
import type { IDataObject, INodeParameters } from 'n8n-workflow';

import { AgentInvoke } from '../../nodes/AgentInvoke/AgentInvoke.node';
import { createHarness, singleNode, type Harness, type HarnessRun } from '../nodes/harness';
import { createDataTables, type DataTables } from '../nodes/harness/dataTables';
import { inGroups } from '../nodes/optionGroups';
import { until } from '../until';
import { descriptionOf, REAL_CASES } from './cases';
import { LIMITED_TOKEN, TOKEN, type RealServer } from './realServer';

const OPTIONS = { requestsPerSecond: 0, timeoutSeconds: 20, retries: 0 };
const LONG_CHARACTERS = 100_000;

let harness: Harness;
beforeAll(async () => {
	// The servers are other processes, whose time cannot pass more quickly.
	harness = await createHarness({ passTime: () => () => {} });
});
afterAll(async () => await harness.close());

describe.each(REAL_CASES)('$name', (real) => {
	let server: RealServer;
	let tables: DataTables;
	let account: Record<string, string>;
	beforeAll(async () => {
		server = await real.open();
	});
	afterAll(async () => await server.stop());
	beforeEach(async () => {
		if (!server.isAlive) await server.startAgain();
		server.reset();
		tables = createDataTables();
		account = {
			agentToken: TOKEN,
			baseUrl: server.baseUrl,
			invokePath: real.invokePath,
			mediaUploadPath: '',
			wire: 'described',
			description: descriptionOf(real),
		};
	});

	async function run(
		json: IDataObject,
		parameters: INodeParameters = {},
		streaming = false,
	): Promise<HarnessRun> {
		const usual = {
			operation: 'invoke',
			message: '={{ $json.say }}',
			sessionMode: 'mapped',
			sessionKey: '={{ $json.key || "k" }}',
			stream: true,
			options: OPTIONS,
		};
		const { description } = new AgentInvoke();
		return await harness.run({
			workflow: singleNode({
				type: 'n8n-nodes-flowtask.agentInvoke',
				parameters: inGroups({ ...usual, ...parameters }, description),
				onError: 'continueRegularOutput',
			}),
			items: [{ json }],
			credentials: { flowAgentApi: account },
			executeWorkflow: tables.executeWorkflow,
			...(streaming && { streaming, mode: 'webhook' as const }),
		});
	}

	async function ask(say: string, key = 'k', parameters: INodeParameters = {}): Promise<IDataObject> {
		const done = await run({ say, key }, parameters);
		return done.jsons()[0] ?? { nothing: done.error?.message ?? 'no item' };
	}

	async function asked(say: string): Promise<IDataObject[]> {
		const done = await run({ say });
		const items = done.jsons(1);
		if (items.length === 0) throw new Error(`No interrupt: ${JSON.stringify(done.jsons())}`);
		return items;
	}

	async function resume(interrupted: IDataObject | undefined): Promise<IDataObject> {
		const done = await run(interrupted ?? {}, { operation: 'resume', result: real.approval });
		return done.jsons()[0] ?? done.jsons(1)[0] ?? { nothing: done.error?.message ?? 'no item' };
	}

	const mayHaveRun = (item: IDataObject): unknown =>
		(item.details as IDataObject | undefined)?.mayHaveRun ?? false;

	test.each([true, false])('three turns of one session, with Stream %s', async (stream) => {
		for (const turn of [1, 2, 3])
			expect(await ask(`say ${turn}`, 'k', { stream })).toMatchObject({ answer: `${turn}: say ${turn}` });
		expect(server.ran).toEqual(['say 1', 'say 2', 'say 3']);
	});

	test.each([true, false])('the last of agents that answer in turn, with Stream %s', async (stream) => {
		if (real.inTurn === undefined) return;
		account = { ...account, description: account.description!.replaceAll('mine-1', real.inTurn) };
		expect(await ask('draft', 'k', { stream })).toMatchObject({ answer: 'edited' });
		expect(server.ran).toEqual(['draft']);
	});

	test('two keys have sessions of their own', async () => {
		const answers = [];
		for (const say of ['one', 'two'])
			for (const key of ['a', 'b']) answers.push((await ask(say, key)).answer);
		expect(answers).toEqual(['1: one', '1: one', '2: two', '2: two']);
	});

	test('pieces arrive in their order', async () => {
		const done = await run({ say: 'one two three four' }, {}, true);
		const pieces = done.chunks.flatMap(({ type, content }) => (type === 'item' && content ? [content] : []));
		expect(pieces.join('')).toBe('1: one two three four');
		expect(pieces.length).toBeGreaterThan(2);
	});

	test('an interrupt is answered by Resume, and the session continues', async () => {
		const [interrupt] = await asked('pay');
		expect(interrupt).toMatchObject({ interrupt: { kind: 'tool', tool: 'pay', arguments: { amount: 7 } } });
		expect(await resume(interrupt)).toMatchObject({ answer: expect.stringMatching(real.approved) });
		expect(await ask('thanks')).toMatchObject({ answer: '2: thanks' });
	});

	test('an interrupt that has been answered', async () => {
		const [interrupt] = await asked('pay');
		await resume(interrupt);
		server.reset();
		const twice = await resume(interrupt);
		if (real.answeredTwice === 'runs again')
			expect(twice).toMatchObject({ answer: expect.stringMatching(real.approved) });
		else {
			expect(twice).toMatchObject({ error: expect.any(String) });
			expect(server.ran).toEqual([]);
		}
		if (real.answeredTwice === 'refused') expect(twice).not.toMatchObject({ details: { mayHaveRun: true } });
	});

	test('a Resume that a message has overtaken never shows an earlier answer', async () => {
		const before = await ask('before');
		const [interrupt] = await asked('pay');
		const overtaking = await ask('instead');
		const late = await resume(interrupt);
		expect([before.answer, overtaking.answer]).not.toContain(late.answer ?? 'none');
	});

	test('two questions at once', async () => {
		const [interrupted] = await asked('pay twice');
		const all = (interrupted?.interrupts ?? [interrupted?.interrupt]) as IDataObject[];
		expect(all).toHaveLength(real.asksAtOnce);
		const answers: IDataObject[] = [];
		for (const interrupt of all) answers.push(await resume({ ...interrupted, interrupt }));
		// Where tools are approved one at a time, the next one is asked for now.
		const last = answers.at(-1);
		const whole = last?.interrupt === undefined ? last : await resume(last);
		expect(whole).toMatchObject({ answer: expect.stringMatching(/^given /) });
	});

	test('a second answer to one of two questions is not taken for the other', async () => {
		if (real.namesEach !== true) return;
		const [first] = await asked('pay twice');
		const next = await resume(first);
		expect(next).toHaveProperty('interrupt');
		const twice = await resume(first);
		expect(twice).toMatchObject({ error: 'The agent is no longer waiting for this interrupt' });
		expect(mayHaveRun(twice)).toBe(false);
		expect(await resume(next)).toMatchObject({ answer: expect.stringMatching(/^given /) });
	});

	test('an agent that fails may have run', async () => {
		const failed = await ask('fail');
		expect(failed).toMatchObject({ error: expect.stringContaining('the model broke') });
		expect(mayHaveRun(failed)).toBe(true);
		expect(server.ran).toEqual(['fail']);
	});

	test.each([
		[
			'wrong path',
			() => ({
				description: account
					.description!.replaceAll('mine-1', 'other')
					.replace('"path": "', '"path": "/nowhere'),
				invokePath: '/nowhere',
			}),
		],
		['wrong token', () => ({ agentToken: 'agt_wrong_0123456789' })],
		['token with too many requests', () => ({ agentToken: LIMITED_TOKEN })],
	])('a %s is refused, and nothing has run', async (_name, wrong) => {
		account = { ...account, ...wrong() };
		const refused = await ask('hello');
		expect(refused).toMatchObject({ error: expect.any(String) });
		expect(mayHaveRun(refused)).toBe(false);
		expect(server.ran).toEqual([]);
	});

	test('a key whose session a restarted server does not know', async () => {
		await ask('first');
		await server.startAgain();
		server.reset();
		const options = { ...OPTIONS, timeoutSeconds: 2 };
		const second = await ask('second', 'k', { options });
		if (real.unknownSession === undefined) {
			expect(second).toMatchObject({ answer: '1: second' });
			return;
		}
		expect(second).toMatchObject({ details: { reason: real.unknownSession } });
		expect(mayHaveRun(second)).toBe(false);
		expect(server.ran).toEqual([]);
		if (real.unknownSession !== 'session_not_found') return;
		const renewed = await ask('third', 'k', { options: { ...options, renewExpiredSession: true } });
		expect(renewed).toMatchObject({ answer: '1: third' });
	});

	test('two messages to a session at once', async () => {
		await ask('first');
		server.reset();
		const byId = {
			sessionMode: 'explicit',
			sessionId: idOf(tables),
			options: { ...OPTIONS, timeoutSeconds: real.hasBusySessions ? 3 : 20 },
		};
		const first = ask('wait 4000');
		await until(() => server.ran.length > 0);
		const second = await ask('at once', 'k', byId);
		if (real.hasBusySessions) {
			expect(second).toMatchObject({ error: expect.any(String) });
			expect(mayHaveRun(second)).toBe(false);
			expect(server.ran).toEqual(['wait 4000']);
		} else expect(second).toMatchObject({ answer: expect.stringContaining('at once') });
		expect(await first).toMatchObject({ answer: '2: wait 4000' });
	});

	test('an answer that takes too long', async () => {
		const late = await ask('wait 3000', 'k', { options: { ...OPTIONS, timeoutSeconds: 1 } });
		expect(late).toMatchObject({ error: expect.any(String), details: { mayHaveRun: true } });
	});

	test('a server that dies in mid answer', async () => {
		const died = await ask('die in mid answer');
		expect(died).toMatchObject({ error: expect.any(String) });
		expect(mayHaveRun(died)).toBe(true);
		expect(server.ran).toEqual(['die in mid answer']);
		await server.died();
	});

	test('three at once', async () => {
		const answers = await Promise.all(
			['a', 'b', 'c'].map(async (key) => (await ask(`hi ${key}`, key)).answer),
		);
		expect(answers).toEqual(['1: hi a', '1: hi b', '1: hi c']);
	});

	test.each([true, false])('100,000 characters, with Stream %s', async (stream) => {
		const { answer } = await ask('long', 'k', { stream });
		expect(answer).toBe('x'.repeat(LONG_CHARACTERS));
	});

	test('a file by its URL', async () => {
		const url = 'https://files.example/cat.png';
		const item = await ask('see', 'k', { files: { file: [{ source: 'url', url, name: 'cat.png' }] } });
		if (real.takesFiles) expect(item).toMatchObject({ answer: `1: see ${url}` });
		else {
			expect(item).toMatchObject({ error: expect.any(String) });
			expect(server.ran).toEqual([]);
		}
	});

	test('saving the credential runs nothing, and tests the token if it can', async () => {
		const tested = await harness.testCredential('flowAgentApi', account);
		expect(tested).toMatchObject({ status: 'OK' });
		const mistyped = { ...account, agentToken: 'agt_wrong_0123456789' };
		const { request } = JSON.parse(descriptionOf(real)) as { request: { test: string } };
		expect(await harness.testCredential('flowAgentApi', mistyped)).toMatchObject({
			status: request.test ? 'Error' : 'OK',
		});
		expect(server.ran).toEqual([]);
	});
});

function idOf(tables: DataTables): string {
	return String(tables.rows('flow_agent_sessions')[0]?.sessionId ?? '');
}
