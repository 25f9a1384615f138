import { readAgentAccount } from '../../../../nodes/AgentInvoke/wire/account';
import {
	openRequest,
	whyNoPlaceholder,
	wireRequest,
	type WireTurn,
} from '../../../../nodes/AgentInvoke/wire/request';
import type { Result } from '../../../../nodes/shared/errors/failure';
import type { Json, JsonObject } from '../../../../nodes/shared/text/json';
import { valueOf } from '../../results';
import { describedBy, wireWith } from './wire.fixture';

const USUAL = wireWith();

function bodyOf(
	turn: WireTurn,
	stream: boolean,
	extra: unknown,
	wire = USUAL,
	sessionId = '',
): Result<JsonObject> {
	const open = openRequest(turn, { stream, extraBody: extra, uuid: 'u' }, wire);
	return open.ok ? { ok: true, value: valueOf(open.value(sessionId)).body } : open;
}

const hello = { kind: 'message', message: 'hello', files: [] } as const;

describe('body', () => {
	test('contains what was asked for and nothing else', () => {
		expect(bodyOf(hello, false, '')).toEqual({
			ok: true,
			value: { message: 'hello' },
		});
		const file = { url: 'https://x/a', name: '', mimeType: 'text/plain' };
		expect(bodyOf({ ...hello, files: [file] }, true, '{"a":{"b":1}}')).toEqual({
			ok: true,
			value: {
				message: 'hello',
				files: [{ url: 'https://x/a', mime_type: 'text/plain' }],
				stream: true,
				a: { b: 1 },
			},
		});
	});

	test('names the session if there is one', () => {
		expect(bodyOf(hello, false, '', USUAL, '')).toEqual({ ok: true, value: { message: 'hello' } });
		expect(bodyOf(hello, false, '', USUAL, 's')).toEqual({
			ok: true,
			value: { message: 'hello', session_id: 's' },
		});
	});

	test('is made for any session ID, even half a surrogate pair', () => {
		expect(bodyOf(hello, false, '', USUAL, '\ud800')).toMatchObject({ ok: true });
	});

	test('merges the extra body last, at any depth, with its dollar signs unchanged', () => {
		const nested = wireWith({ request: { message: { input: { query: '$message' } } } });
		expect(bodyOf(hello, false, '{"input":{"lang":"$message"}}', nested)).toMatchObject({
			value: { input: { query: 'hello', lang: '$message' } },
		});
		expect(bodyOf(hello, false, '{"input":{"query":"x"}}', nested)).toMatchObject({
			failure: { message: expect.stringContaining('"input.query"') },
		});
	});

	test('contains no message in the call that tests a token', () => {
		const message = { input: { query: 'Say: $message', lang: 'en' }, mode: '$stream(sse, sync)' };
		expect(bodyOf({ kind: 'nothing' }, false, '')).toMatchObject({ value: {} });
		expect(bodyOf({ kind: 'nothing' }, false, '', wireWith({ request: { message } }))).toEqual({
			ok: true,
			value: { input: { lang: 'en' }, mode: 'sync' },
		});
	});

	test('needs a placeholder for each value to send', () => {
		const needs = { isResume: false, hasSession: true, hasFiles: false };
		const none = wireWith({ request: { message: { q: '$message' }, path: '' } });
		expect(whyNoPlaceholder(none, needs)?.message).toContain('no placeholder for the session');
		expect(whyNoPlaceholder(none, { ...needs, hasSession: false, hasFiles: true })?.message).toContain(
			'the files',
		);
		expect(whyNoPlaceholder(none, { ...needs, isResume: true })).toBeUndefined();
		const inPath = wireWith({ request: { message: { q: '$message' }, path: '/threads/$session/runs' } });
		expect(whyNoPlaceholder(inPath, needs)).toBeUndefined();
		const mute = wireWith({ request: { resume: undefined } });
		expect(whyNoPlaceholder(mute, { ...needs, isResume: true })?.advice).toContain('"request.resume"');
	});

	test.each(['[]', '1', 'x', '{"a":', true, 7, []])('does not accept %j as an extra body', (extra) => {
		expect(bodyOf(hello, false, extra)).toMatchObject({ ok: false });
	});

	test.each(['message', 'session_id', 'stream', 'files', 'interrupt_result'])(
		'does not accept an extra body that sets %s',
		(name) => {
			expect(bodyOf(hello, false, { [name]: 1 })).toMatchObject({
				failure: { message: expect.stringContaining(`"${name}"`) },
			});
		},
	);

	test.each(['{"user":{"id":-9007199254740993}}', { user: { id: -(2 ** 60) } }])(
		'does not accept an extra body with a number that would lose digits: %j',
		(extra) => {
			expect(bodyOf(hello, false, extra)).toMatchObject({
				failure: {
					message: expect.stringMatching(/^'Extra Body' contains the number -\d+, which would lose digits/),
				},
			});
		},
	);

	test("keeps an extra body's numbers that fit in a double, and digits in texts", () => {
		const extra = '{"seed":9007199254740991,"scale":1e300,"id":"9007199254740993"}';
		expect(bodyOf(hello, false, extra)).toMatchObject({
			value: { seed: Number.MAX_SAFE_INTEGER, scale: 1e300, id: '9007199254740993' },
		});
	});

	test('never pollutes prototypes with an extra body', () => {
		bodyOf(hello, false, '{"__proto__":{"polluted":1}}');
		expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
	});
});

test.each(['.', '..'])('the session ID %j leads to no other path', (id) => {
	const pathOf = (path: string, sessionId: string) => {
		const wire = wireWith({ request: { path } });
		const open = openRequest(hello, { stream: false, extraBody: '', uuid: 'u' }, wire);
		return valueOf(valueOf(open)(sessionId)).path;
	};
	const paths = [
		'/v1/sessions/$session/run',
		'/v1/sessions/$session ',
		'/v1/$session /',
		' $session',
		'$session',
	];
	expect(paths.map((path) => pathOf(path, id))).toEqual(['', '', '', '', '']);
	expect(pathOf(' /v1/sessions/$session/ ', `a${id}`)).toBe(`/v1/sessions/a${id}`);
});

describe('account', () => {
	const read = (fields: Record<string, unknown>) =>
		readAgentAccount({ agentToken: 'agt_x', baseUrl: 'https://p.example', ...fields });

	test('joins URLs and paths with any slashes', () => {
		expect(
			read({ baseUrl: ' https://p.example// ', invokePath: 'a/b', mediaUploadPath: '//m' }),
		).toMatchObject({
			value: { baseUrl: 'https://p.example', invokePath: '/a/b', mediaUploadPath: '/m', isDebugToken: false },
		});
		expect(read({ invokePath: '/' })).toMatchObject({ value: { invokePath: '/' } });
		expect(read({ agentToken: 'dbg_x' })).toMatchObject({
			value: { isDebugToken: true, invokePath: '/api/agents/Invoke' },
		});
	});

	test('uses a description if it is switched on, and the standard if it is empty', () => {
		const described = describedBy({ request: { message: { prompt: '$message' } } });
		const messageOf = (fields: object): unknown => {
			const account = read({ ...described, ...fields });
			return account.ok && account.value.wire.request.message;
		};
		const usual = { message: '$message', session_id: '$session', files: '$files', stream: '$stream' };
		expect(messageOf({ wire: 'standard' })).toEqual(usual);
		expect(messageOf({ description: ' ' })).toEqual(usual);
		expect(messageOf({})).toEqual({ prompt: '$message' });
		// An expression may return the JSON itself.
		expect(messageOf({ description: JSON.parse(described.description) as object })).toEqual({
			prompt: '$message',
		});
	});

	test('refuses an invalid description and names the entry', () => {
		expect(read({ wire: 'described', description: '{"anwser":{}}' })).toMatchObject({
			failure: {
				kind: 'credential',
				message: expect.stringContaining(
					'\'Description\' in the credential cannot be used: "anwser" is not known',
				),
			},
		});
	});

	test.each([
		{ baseUrl: '' },
		{ baseUrl: 'p.example' },
		{ baseUrl: 'ftp://p' },
		{ baseUrl: 7 },
		{ agentToken: 'sk-x' },
		{ agentToken: undefined },
	])('refuses %j', (fields) => {
		expect(read(fields)).toMatchObject({ ok: false, failure: { message: expect.stringMatching(/[^.]$/) } });
	});
});

describe('a description that lets the client choose', () => {
	const request = (own: object, turn: WireTurn = hello, sessionId = '', stream = false) =>
		wireRequest(wireWith({ request: { ...own } }), turn, { sessionId, stream, uuid: 'u' });
	const answered = (tool = '', result: Json = 'ok'): WireTurn => ({
		kind: 'results',
		results: [{ interruptId: 'i7', tool, result }],
	});

	test('the ID of a new session sends the same one for all tries, and that of a known one as it is', () => {
		const own = { message: { m: '$message', thread: '$newSession' }, path: '/t/$newSession' };
		expect(request(own)).toMatchObject({
			value: { path: '/t/u', body: { m: 'hello', thread: 'u' }, sessionId: 'u' },
		});
		expect(request(own, hello, 's/1')).toMatchObject({
			value: { path: '/t/s%2F1', body: { thread: 's/1' }, sessionId: 's/1' },
		});
		expect(request({})).toMatchObject({ value: { sessionId: '' } });
	});

	test('paths sends streams and Resume elsewhere', () => {
		const own = { path: '/runs/$stream(stream, wait)', resumePath: '/runs/$session/tools' };
		expect(request(own)).toMatchObject({ value: { path: '/runs/wait' } });
		expect(request(own, hello, 's', true)).toMatchObject({ value: { path: '/runs/stream' } });
		expect(request(own, answered(), 's', true)).toMatchObject({ value: { path: '/runs/s/tools' } });
	});

	test('how interrupts are answered names their tools and IDs, also as keys', () => {
		const resume = { tools: { $interruptId: { name: '$tool', out: '$result' } }, $$cost: 1 };
		expect(request({ resume }, answered('pay', { n: 7 }), 's')).toMatchObject({
			value: { body: { tools: { i7: { name: 'pay', out: { n: 7 } } }, $cost: 1 } },
		});
		expect(request({ resume }, answered(), 's')).toMatchObject({
			value: { body: { tools: { i7: { out: 'ok' } } } },
		});
	});

	test('a header for the session does not send one that HTTP cannot carry', () => {
		const own = { headers: { 'X-Session': 'v1/$session' } };
		expect(request(own, hello, 'ä-1')).toMatchObject({ value: { headers: { 'X-Session': 'v1/ä-1' } } });
		for (const id of ['a\nb', '会話', 'a\0'])
			expect(request(own, hello, id)).toMatchObject({
				failure: { message: 'The header "X-Session" cannot carry the session ID of this item' },
			});
	});
});
