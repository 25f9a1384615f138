import { HandWoundTime, startPlatform } from '../../platform';
import { until } from '../../until';
import { AgentClient, readEnvelope, withAgent } from './agentClient';
import { fateOfLeaving, field } from './client';

describe('the envelope', () => {
	test('tells a turn', async () => {
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
	] as const)('tells failures under the outer status %s', async (agentOuterStatus, outer) => {
		await withAgent({ agentOuterStatus }, async (client) => {
			expect(await client.invoke({})).toMatchObject({
				outer,
				ok: false,
				status: 400,
				reason: 'message_required',
			});
		});
	});

	test('tells what the server itself cannot read', async () => {
		await withAgent({}, async (client, platform) => {
			const headers = { authorization: `Bearer ${platform.agentToken}`, 'content-type': 'text/xml' };
			const response = await client.post('<message/>', { headers });
			expect(readEnvelope(await response.json(), response)).toMatchObject({
				outer: 200,
				status: 415,
				reason: 'body_invalid',
			});
		});
	});

	test('tells a broken or an unfit body after the token', async () => {
		await withAgent({}, async (client, platform) => {
			const stranger = new AgentClient(platform, 'agt_unknown');
			const reasonOf = async (body: unknown, who = client): Promise<string> =>
				(await who.invoke(body)).reason;
			expect(await reasonOf('')).toBe('message_required');
			expect(await reasonOf('{"message":')).toBe('body_invalid');
			expect(await reasonOf({ message: 7 })).toBe('body_invalid');
			expect(await reasonOf({ message: 'x', stream: 'yes' })).toBe('body_invalid');
			expect(await reasonOf({ message: 'x', files: [{ name: 'no url' }] })).toBe('body_invalid');
			expect(await reasonOf({ message: 'x', interrupt_result: {} })).toBe('body_invalid');
			expect(await reasonOf('{"message":', stranger)).toBe('token_invalid');
			const books = platform.books();
			expect(books).toMatchObject({ invocations: [], sessions: [], requests: { invoke: 7 } });
			expect(books.agentRefusals).toEqual({ message_required: 1, body_invalid: 5, token_invalid: 1 });
		});
	});
});

describe('tokens', () => {
	test('are told apart', async () => {
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

	test('share the request-frequency limit of their own', async () => {
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

	test('can be given, for a platform that is started again', async () => {
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

	test('expire by order and by time', async () => {
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

	test('take one call at a time', async () => {
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

describe('interrupts', () => {
	test('ask one after the other and end in an answer with the result', async () => {
		await withAgent({}, async (client, platform) => {
			const first = await client.say('[question: Which size?] [tool: order {"ids":[1,2]}] [answer: Done]');
			expect(first.data).toMatchObject({
				reason: 'interrupted',
				answer: '',
				interrupt: { id: expect.stringMatching(/^int_/), kind: 'question', question: 'Which size?' },
			});
			expect(await client.say('hm', first.sessionId)).toMatchObject({ reason: 'interrupt_pending' });
			const second = await client.resume(first, 'large');
			expect(second.data).toMatchObject({
				reason: 'interrupted',
				interrupt: { kind: 'tool', tool_name: 'order', arguments: { ids: [1, 2] } },
			});
			expect(await client.resume(first, 'again')).toMatchObject({ reason: 'interrupt_not_found' });
			const last = await client.resume(second, { ok: true });
			expect(last).toMatchObject({ reason: 'completed', answer: 'Done ({"ok":true})' });
			expect(platform.books().invocations).toMatchObject([
				{ outcome: 'interrupted', interruptAnswered: null },
				{ outcome: 'interrupted', interruptAnswered: { result: 'large' }, message: null },
				{ outcome: 'completed', interruptAnswered: { result: { ok: true } }, turn: 3 },
			]);
			expect(platform.books()).toMatchObject({ duplicateInvocations: 0 });
		});
	});

	test('keep the files of the halted message, and a result can give orders', async () => {
		await withAgent({}, async (client, platform) => {
			const uploaded = await client.upload(new Blob(['12345'], { type: 'text/csv' }), 'list.csv');
			const files = [{ url: field(uploaded.data, 'url') }];
			const asked = await client.invoke({ message: '[question: All?] [describe files]', files });
			expect(await client.resume(asked, '[refuse: full]')).toMatchObject({ reason: 'overloaded' });
			const again = await client.resume(asked, 'yes [side effect: read] [question: Sure?]');
			expect(again.data).toMatchObject({ interrupt: { question: 'Sure?' } });
			expect((await client.resume(again, 'yes')).answer).toBe('list.csv (text/csv, 5 bytes) (yes)');
			expect(platform.books()).toMatchObject({ effects: { read: 1 }, sessions: [{ turns: 3 }] });
		});
	});

	test('are told without an answer of their own, and fail where the work fails', async () => {
		await withAgent({}, async (client) => {
			const asked = await client.say('[question] and [fail: no stock]');
			expect(await client.resume(asked, 'yes')).toMatchObject({ reason: 'agent_failed', status: 500 });
			const again = await client.say('[question: Go?]', asked.sessionId);
			expect((await client.resume(again, 'yes')).answer).toBe('Turn 4: the result was yes');
			expect(await client.invoke({ interrupt_result: { id: 'int_x', result: 1 } })).toMatchObject({
				reason: 'interrupt_not_found',
			});
		});
	});
});

describe('orders in the message', () => {
	test('fail after the run or refuse before it', async () => {
		await withAgent({}, async (client, platform) => {
			const failed = await client.say('[side effect: paid] [fail: printer on fire]');
			expect(failed).toMatchObject({ ok: false, status: 500, reason: 'agent_failed' });
			expect(failed.sessionId).toMatch(/^ses_/);
			expect(field(failed.data, 'detail')).toBe('printer on fire');
			expect(await client.say('[refuse: full]')).toMatchObject({ status: 503, reason: 'overloaded' });
			await client.say('[side effect: paid] [fail: printer on fire]');
			expect(platform.books()).toMatchObject({
				invocations: [{ outcome: 'failed', effects: ['paid'] }, { outcome: 'failed' }],
				effects: { paid: 2 },
				duplicateInvocations: 1,
			});
		});
	});

	test('take their time, and a caller that leaves stops nothing', async () => {
		await withAgent({}, async (client, platform) => {
			const call = async (signal: AbortSignal): Promise<Response> =>
				client.post({ message: '[takes: 900]' }, { signal });
			const arrived = (): boolean => platform.books().invocations.length === 1;
			expect(await fateOfLeaving(call, arrived)).toBe('broken: AbortError');
			await until(() => platform.books().invocations[0]?.endedAtMs !== null);
			const [entry] = platform.books().invocations;
			expect(entry).toMatchObject({ outcome: 'completed', answered: 'no' });
			expect((entry?.endedAtMs ?? 0) - (entry?.startedAtMs ?? 0)).toBeGreaterThan(890);
		});
	});
});

test('the console makes agents and debug tokens', async () => {
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
