import { HandWoundTime, startPlatform } from '../../platform';
import { until } from '../../until';
import { AgentClient, readEnvelope, withAgent } from './agentClient';
import { field } from './client';

describe('the envelope', () => {
	test('reports a turn', async () => {
		await withAgent({}, async (client) => {
			const envelope = await client.invoke({ message: 'hello', trace: 'x-1' });
			expect(envelope).toMatchObject({ outer: 200, ok: true, status: 200 });
			expect(envelope.requestId).toMatch(/^req_/);
			expect(envelope.data).toEqual({
				reason: 'completed',
				session_id: expect.stringMatching(/^ses_/),
				answer: 'Turn 1: you said "hello"',
				interrupt: null,
				usage: { invocations: 1, total_tokens: 8 },
			});
			const [entry] = client.platform.books().invocations;
			expect(entry).toMatchObject({ extraBody: { trace: 'x-1' }, body: { message: 'hello' }, turn: 1 });
			expect(entry).toMatchObject({ outcome: 'completed', answered: 'yes', opened: true });
		});
	});

	test.each([
		['always200', 200],
		['same', 400],
	] as const)('reports failures with the outer status %s', async (agentOuterStatus, outer) => {
		await withAgent({ agentOuterStatus }, async (client) => {
			expect(await client.invoke({})).toMatchObject({
				outer,
				ok: false,
				status: 400,
				reason: 'message_required',
			});
		});
	});
});

describe('tokens', () => {
	test('are distinguished by kind and validity', async () => {
		await withAgent({}, async (client, platform) => {
			const reasonOf = async (authorization: string | undefined): Promise<string> => {
				const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) };
				return readEnvelope(await (await client.post({ message: 'x' }, { headers })).json()).reason;
			};
			expect(await reasonOf(undefined)).toBe('token_invalid');
			expect(await reasonOf('Bearer agt_nobody')).toBe('token_invalid');
			expect(await reasonOf(`Bearer ${platform.apiKey}`)).toBe('token_kind');
			expect(await reasonOf('Bearer wst_x')).toBe('token_kind');
			expect(await reasonOf(`Bearer ${platform.agent.debugToken(0)}`)).toBe('token_expired');
			expect(await reasonOf(`Bearer ${platform.agent.debugToken(60_000)}`)).toBe('completed');
			expect(platform.books()).toMatchObject({ unauthorized: 5, invocations: [{ turn: 1 }] });
		});
	});

	test('may lack a right', async () => {
		await withAgent({}, async (_client, platform) => {
			const { token } = platform.createAgent({ name: 'reader', rights: ['invoke'] });
			const reader = new AgentClient(platform, token);
			expect(await reader.say('hello')).toMatchObject({ ok: true });
			expect(await reader.invoke({ message: 'x', stream: true })).toMatchObject({ reason: 'forbidden' });
			expect(await reader.upload(new Blob(['x']), 'x.txt')).toMatchObject({ status: 403 });
		});
	});

	test('have a request-frequency limit', async () => {
		await withAgent({ requestsPerSecond: 1, time: new HandWoundTime() }, async (client, platform) => {
			expect(await client.say('one')).toMatchObject({ ok: true });
			expect(await client.say('two')).toMatchObject({
				outer: 200,
				status: 429,
				reason: 'rate_limited',
				retryAfter: '1',
			});
			expect(platform.books()).toMatchObject({ rateLimited: 1, invocations: [{ message: 'one' }] });
		});
	});

	test('can be specified, so that a restarted platform has the same ones', async () => {
		await expect(startPlatform({ agentToken: 'sk-wrong' })).rejects.toThrow('agt_');
		await withAgent({ agentToken: 'agt_demo' }, async (_client, platform) => {
			expect(platform.agentToken).toBe('agt_demo');
			expect(await new AgentClient(platform, 'agt_demo').say('x')).toMatchObject({ ok: true });
		});
	});
});

describe('sessions', () => {
	test('remember their turns and belong to one instance', async () => {
		await withAgent({}, async (client, platform) => {
			const { sessionId } = await client.say('I am Ann');
			await client.say('I like tea', sessionId);
			const other = await client.say('I am Bob');
			expect(other.sessionId).not.toBe(sessionId);
			expect((await client.say('[recall]', sessionId)).answer).toBe('I am Ann | I like tea');
			expect((await client.say('[recall]')).answer).toBe('There is nothing to recall.');
			const { token } = platform.createAgent();
			expect(await new AgentClient(platform, token).say('x', sessionId)).toMatchObject({
				status: 404,
				reason: 'session_not_found',
			});
			expect(platform.books().sessions.map(({ turns }) => turns)).toEqual([3, 1, 1]);
		});
	});

	test('expire on request and after their lifetime', async () => {
		const time = new HandWoundTime();
		await withAgent({ time }, async (client, platform) => {
			const { sessionId } = await client.say('one');
			platform.agent.expireSessions();
			expect(await client.say('two', sessionId)).toMatchObject({ reason: 'session_not_found' });
			const brief = new AgentClient(platform, platform.createAgent({ sessionMs: 20_000 }).token);
			const later = await brief.say('one');
			time.pass(20_001);
			expect(await brief.say('two', later.sessionId)).toMatchObject({ reason: 'session_not_found' });
			expect(platform.books().sessions).toMatchObject([{ expired: true }, { expired: true }]);
		});
	});

	test('accept one call at a time', async () => {
		await withAgent({}, async (client, platform) => {
			const { sessionId } = await client.say('one');
			const held = client.say('[hold] two', sessionId);
			await until(() => platform.agent.held === 1);
			expect(await client.say('three', sessionId)).toMatchObject({ status: 409, reason: 'session_busy' });
			expect(platform.books().invocations.at(-1)).toMatchObject({ outcome: 'running', endedAtMs: null });
			await client.say('elsewhere');
			platform.agent.release();
			expect(await held).toMatchObject({ ok: true });
			expect(await client.say('four', sessionId)).toMatchObject({ answer: 'Turn 3: you said "four"' });
			expect(platform.books()).toMatchObject({ concurrentPerSession: 2, mostInvocationsAtOnce: 2 });
		});
	});
});

test('the console creates agents and debug tokens', async () => {
	await withAgent({}, async (_client, platform) => {
		const admin = async (path: string, body: unknown): Promise<unknown> => {
			const headers = { 'content-type': 'application/json' };
			const url = `${platform.apiUrl}/admin/agents${path}`;
			const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
			return response.status === 204 ? response.status : response.json();
		};
		const made = await admin('', { name: 'till', sessionMs: 5000 });
		const agentId = String(field(made, 'agentId'));
		const debug = field(await admin(`/${agentId}/debug-token`, { validMs: 5000 }), 'token');
		const till = new AgentClient(platform, String(debug));
		const { sessionId } = await till.say('hello');
		expect(await admin(`/${agentId}/expire-sessions`, {})).toBe(204);
		expect(await till.say('hello', sessionId)).toMatchObject({ reason: 'session_not_found' });
		expect(await admin(`/${agentId}/release`, {})).toBe(204);
		expect(await admin('/nobody/release', {})).toMatchObject({ message: 'There is no agent nobody.' });
		const agents = await (await fetch(`${platform.apiUrl}/admin/agents`)).json();
		expect(agents).toMatchObject([{ name: 'default' }, { name: 'till', agentId }]);
	});
});

describe('the books', () => {
	test('count repeated calls, with and without a session', async () => {
		await withAgent({}, async (client, platform) => {
			const { sessionId } = await client.say('first');
			await client.say('pay', sessionId);
			await client.say('pay', sessionId);
			await client.say('first');
			expect(platform.books()).toMatchObject({ duplicateInvocations: 2 });
			const books = platform.books();
			expect(JSON.parse(JSON.stringify(books))).toEqual(books);
			platform.resetBooks();
			expect(platform.books()).toMatchObject({ invocations: [], sessions: [], duplicateInvocations: 0 });
			await client.say('on', sessionId);
			expect(platform.books().sessions).toMatchObject([{ sessionId, turns: 4 }]);
		});
	});

	test('keep a hundred sessions apart', async () => {
		await withAgent({}, async (client, platform) => {
			const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
			const opened = await Promise.all(keys.map(async (key) => client.say(key)));
			const recalled = await Promise.all(
				opened.map(async ({ sessionId }) => client.say('[recall]', sessionId)),
			);
			expect(recalled.map(({ answer }) => answer)).toEqual(keys);
			expect(platform.books()).toMatchObject({ duplicateInvocations: 0, concurrentPerSession: 1 });
		});
	});
});
