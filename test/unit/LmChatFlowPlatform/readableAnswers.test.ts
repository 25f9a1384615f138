import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { makeAnswersReadable, readableFetch } from '../../../nodes/LmChatFlowPlatform/readableAnswers';
import { redactor } from '../../../nodes/shared/text/redact';
import { recogniseErrorsOfAllRealms } from '../../nodes/harness/realm';

const KEY = 'sk-0123456789abcdef';
const redact = redactor([KEY]);

let server: Server;
let url = '';
/** The body of the server's answer, in the pieces in which it is written. */
let pieces: readonly Uint8Array[] = [];
let status = 200;
let location = '';
/** Whether the connection is reset instead of closed. */
let isCut = false;
const paths: string[] = [];

beforeAll(async () => {
	recogniseErrorsOfAllRealms();
	const answer = async (response: ServerResponse): Promise<void> => {
		response.writeHead(status, { 'x-request-id': 'r1', ...(location && { location }) });
		for (const piece of pieces) await new Promise((written) => response.write(piece, written));
		if (!isCut) response.end();
		else setTimeout(() => response.socket?.resetAndDestroy(), 50);
	};
	server = createServer((request, response) => {
		paths.push(request.url ?? '');
		request.resume().on('end', () => void answer(response));
	});
	await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
	url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => server.close());

beforeEach(() => {
	status = 200;
	location = '';
	isCut = false;
	paths.length = 0;
});

async function request(body: string | readonly Uint8Array[], stream: boolean): Promise<Response> {
	pieces = typeof body === 'string' ? [Buffer.from(body)] : body;
	const init = { method: 'POST', body: JSON.stringify({ stream }) };
	return await readableFetch(url, redact, fetch)(`${url}/chat`, init);
}

async function ask(body: string | readonly Uint8Array[], stream = true): Promise<string> {
	const response = await request(body, stream);
	expect([response.status, response.headers.get('x-request-id')]).toEqual([200, 'r1']);
	return await response.text();
}

/** The status and the message of an error. */
async function refused(body: string, stream: boolean): Promise<[number, string]> {
	const response = await request(body, stream);
	const { error } = (await response.json()) as { error: { message: string } };
	return [response.status, error.message];
}

/** The chunks of a stream, as a client reads them. */
function chunksOf(text: string): unknown[] {
	return text
		.split(/\r?\n/)
		.filter((line) => line.startsWith('data:') && !line.includes('[DONE]'))
		.map((line) => JSON.parse(line.slice(5)) as unknown);
}

const sse = (value: unknown) => `data: ${JSON.stringify(value)}\r\n\r\n`;
const chunk = (delta: unknown) => ({ id: 'a', choices: [{ index: 0, delta }] });
const finish = (reason: string) => ({
	choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: reason }],
});
const STOP = sse(finish('stop'));
const DONE = 'data: [DONE]\n\n';

const CALL = {
	index: 0,
	id: 'c1',
	type: 'function',
	function: { name: 'weather', arguments: '{"city":"Zürich 🦊"}' },
};
/** The chunk that ends a stream in which tools are called. */
const called = (...calls: unknown[]) => ({
	choices: [{ index: 0, delta: { role: 'assistant', tool_calls: calls } }],
});

test('each delta without a role gets one, and is otherwise unchanged', async () => {
	const text = await ask(
		[
			chunk({ reasoning_content: 'hm' }),
			chunk({ role: null, content: 'x' }),
			chunk({ role: '', tool_calls: [CALL] }),
			{ choices: [], usage: { total_tokens: 7 } },
		]
			.map(sse)
			.join('') + DONE,
	);
	expect(chunksOf(text)).toEqual([
		chunk({ role: 'assistant', reasoning_content: 'hm' }),
		chunk({ role: 'assistant', content: 'x' }),
		chunk({ role: 'assistant' }),
		{ choices: [], usage: { total_tokens: 7 } },
		called(CALL),
	]);
	expect(text).toContain('data: [DONE]\n');
});

const HEAD = { index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":' } };
const TAIL = { index: 0, function: { arguments: '"Zürich 🦊"}' } };
const { index: _index, ...UNNUMBERED } = HEAD;

test.each([
	['have no index', [UNNUMBERED, { function: TAIL.function }]],
	['have different IDs', [HEAD, { ...TAIL, id: 'x1' }]],
	['repeat the name', [HEAD, { ...HEAD, function: { ...HEAD.function, ...TAIL.function } }]],
	[
		'have an object as arguments',
		[{ ...HEAD, function: { name: 'weather', arguments: { city: 'Zürich 🦊' } } }],
	],
])('a tool call comes whole although its pieces %s, however the stream ends', async (_name, pieces) => {
	const body = pieces.map((one) => sse(chunk({ role: 'assistant', tool_calls: [one] }))).join('');
	const end = sse(finish('tool_calls'));
	for (const ending of [end, end + DONE, DONE, end + sse({ error: 'late' })]) {
		expect(chunksOf(await ask(body + ending)).at(-1)).toEqual(called(CALL));
	}
});

test('a tool call whose arguments are not JSON is an error, because the client would complete them', async () => {
	const bad = { ...CALL, function: { name: 'weather', arguments: '{"city":"Zür' } };
	const why = 'the arguments of its tool call "weather" are not JSON';
	const message = `The answer broke off: ${why}. It was not requested again, because what was generated is billed.`;
	const body = sse(chunk({ tool_calls: [bad] })) + sse(finish('tool_calls'));
	for (const ending of ['', DONE]) {
		expect(chunksOf(await ask(body + ending)).at(-1)).toEqual({ error: { message } });
	}
	const whole = JSON.stringify({ choices: [{ message: { role: 'assistant', tool_calls: [bad] } }] });
	expect(await refused(whole, false)).toEqual([409, message]);
});

test('arguments of a whole answer become text', async () => {
	const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: { a: 1 } } };
	const body = JSON.stringify({ choices: [{ message: { role: 'assistant', tool_calls: [call] } }] });
	expect(JSON.parse(await ask(body, false))).toMatchObject({
		choices: [{ message: { tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] } }],
	});
});

test('a message that repeats the deltas before it is not a delta', async () => {
	const message = { role: 'assistant', content: 'ab' };
	const end = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
	expect(
		chunksOf(await ask(['a', 'b'].map((content) => sse(chunk({ content }))).join('') + sse(end))),
	).toEqual([...['a', 'b'].map((content) => chunk({ role: 'assistant', content })), end]);
	const beside = { choices: [{ ...end.choices[0], delta: { role: 'assistant', content: '' } }] };
	expect(chunksOf(await ask(JSON.stringify(beside)))).toMatchObject([{ choices: [{ delta: message }] }]);
});

test('token counts in a choice are those of the chunk', async () => {
	const usage = { total_tokens: 7 };
	const end = { choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: 'stop', usage }] };
	expect(chunksOf(await ask(HELLO + sse(end))).at(-1)).toMatchObject({ usage });
});

const PARTS = [
	{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
	{ type: 'text', text: 'Zürich' },
	{ type: 'reference', reference_ids: [1] },
	{ type: 'text', text: ' 🦊' },
];

test('content that is a list becomes text and reasoning, streamed or not', async () => {
	const plain = { role: 'assistant', content: 'Zürich 🦊', reasoning_content: 'hm' };
	expect(chunksOf(await ask(sse(chunk({ content: PARTS })) + DONE))).toEqual([chunk(plain)]);
	const whole = JSON.stringify({ choices: [{ message: { content: PARTS } }] }, null, 1);
	expect(JSON.parse(await ask(whole, false))).toEqual({ choices: [{ message: plain }] });
});

test('a stream is read the same wherever it is cut', async () => {
	const bytes = Buffer.from(
		`: ping\n\n${sse(chunk({ content: PARTS }))}ping\n\n${sse(chunk({ tool_calls: [CALL] }))}data: [DONE]`,
	);
	const whole = await ask([bytes]);
	expect(chunksOf(whole)).toHaveLength(3);
	for (let at = 1; at < bytes.length; at++) {
		expect(await ask([bytes.subarray(0, at), bytes.subarray(at)])).toBe(whole);
	}
	expect(await ask(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toBe(whole);
});

test.each([
	['an answer', '{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}'],
	['an ID with many digits', '{"id":12345678901234567890,"choices":[{"message":{"role":"assistant"}}]}'],
])('leaves unchanged: %s', async (_name, body) => {
	expect(await ask(body, false)).toBe(body);
});

test('a refusal by the model is its answer', async () => {
	for (const content of [null, []]) {
		const message = { role: 'assistant', content, refusal: 'I cannot' };
		expect(JSON.parse(await ask(JSON.stringify({ choices: [{ message }] }), false))).toMatchObject({
			choices: [{ message: { content: 'I cannot' } }],
		});
	}
});

test('reads a whole answer if a stream was requested, and one in an envelope', async () => {
	const whole = { choices: [{ index: 0, message: { role: 'assistant', content: 'x' } }] };
	const envelope = JSON.stringify({ code: 0, msg: 'Success', data: whole });
	expect(chunksOf(await ask(envelope))).toMatchObject(
		[chunk({ role: 'assistant', content: 'x' })].map(({ choices }) => ({ choices })),
	);
	expect(JSON.parse(await ask(envelope, false))).toEqual(whole);
});

const HELLO = sse(chunk({ role: 'assistant', content: 'Hel' }));
const PAY = sse(
	chunk({ tool_calls: [{ index: 0, id: 'c', function: { name: 'pay', arguments: '{"amount":10' } }] }),
);

test.each([
	['ends', HELLO, 'the connection ended before the answer was finished'],
	['ends within a tool call', PAY, 'the connection ended before the answer was finished'],
	['ends within a chunk', `${HELLO}data: {"choices":[{"del`, 'a part of it is cut off or is not JSON'],
	['has a gap', `${HELLO}data: {"choices":[{"del\n\n${STOP}`, 'a part of it is cut off or is not JSON'],
	['has an error', HELLO + sse({ error: { message: `no ${KEY}` } }) + DONE, 'no [hidden]'],
	['has an error event', `${HELLO}event: error\ndata: {"message":"worker died"}\n\n`, 'worker died'],
	['has an error object', HELLO + sse({ object: 'error', message: 'worker died', code: 400 }), 'worker died'],
	['has an error in a choice', HELLO + sse({ choices: [{ error: 'worker died' }] }), 'worker died'],
	['has a line "error"', `${HELLO}error: {"code":500,"message":"gone"}\n\n`, 'gone'],
	[
		'failed',
		HELLO + sse(finish('network_error')) + DONE,
		'the platform ended it with the finish reason "network_error"',
	],
	[
		'is too long for its tool call',
		PAY + sse(finish('length')) + DONE,
		'it reached the maximum number of tokens within a tool call; raise "Max Tokens"',
	],
])(
	'a stream that %s ends with an error, because the client would treat it as complete',
	async (_name, body, why) => {
		const last = chunksOf(await ask(body)).at(-1);
		const message = `The answer broke off: ${why}. It was not requested again, because what was generated is billed.`;
		expect(last).toEqual({ error: { message } });
	},
);

test('a reset connection is an error, unless the answer was finished', async () => {
	isCut = true;
	const last = async (body: string) => chunksOf(await ask(body)).at(-1);
	expect(await last(HELLO)).toMatchObject({
		error: { message: expect.stringMatching(/broke off: .*\(\w+\)\. /) },
	});
	expect(await last(HELLO + STOP)).toEqual(finish('stop'));
	expect(await refused('{"choices":[', false)).toEqual([
		409,
		expect.stringMatching(/^The answer broke off: /),
	]);
});

test('an error after the finish reason does not fail the answer', async () => {
	expect(chunksOf(await ask(HELLO + STOP + sse({ error: 'late' }))).at(-1)).toEqual(finish('stop'));
});

test('a finish reason after which the answer continued does not prove that it is whole', async () => {
	const each = sse({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] });
	const usage = sse({ choices: [], usage: { total_tokens: 1 } });
	const last = async (body: string) => chunksOf(await ask(body)).at(-1);
	const failed = { error: { message: expect.stringMatching(/^The answer broke off: /) } };
	expect(await last(each + each)).not.toEqual(failed);
	expect(await last(each + each + sse({ error: 'out of memory' }))).toEqual(failed);
	isCut = true;
	expect(await last(each + each)).toEqual(failed);
	expect(await last(each + usage)).not.toEqual(failed);
});

test.each([
	['an error', JSON.stringify({ error: { message: 'bad thing' } }), 409, 'bad thing'],
	[
		'an error with a status',
		JSON.stringify({ error: { message: 'bad thing', code: 503 } }),
		503,
		'bad thing',
	],
	['an envelope', JSON.stringify({ code: 1234, msg: 'bad thing', data: null }), 409, 'bad thing'],
	['no choices', '{"choices":[]}', 409, 'its "choices" are empty'],
	['nothing', '', 409, 'its response is empty'],
	['a web page', ' <html>', 409, 'it sent a web page. The Base URL in the credential may be wrong'],
])('reports %s with HTTP 200, streamed or not', async (_name, body, code, why) => {
	const message = `The platform gave no answer: ${why}.`;
	expect(await refused(body, false)).toEqual([code, message]);
	expect(chunksOf(await ask(body === '{"choices":[]}' ? sse({ choices: [] }) + DONE : body)).at(-1)).toEqual({
		error: { message },
	});
});

test('reports a stream that was not requested', async () => {
	expect(await refused(HELLO, false)).toEqual([
		409,
		expect.stringContaining('a stream, although none was requested'),
	]);
});

test.each([true, false])(
	'an error keeps its status, is explained and does not contain the key; stream: %s',
	async (stream) => {
		status = 401;
		const [code, message] = await refused(
			JSON.stringify({ error: { message: `Incorrect API key: ${KEY}` } }),
			stream,
		);
		expect(code).toBe(401);
		expect(message).toMatch(
			/^The platform does not accept the API key.*said: Incorrect API key: \[hidden\]\.$/,
		);
		status = 503;
		expect(await refused('{"code":503,"msg":"down"}', stream)).toEqual([
			503,
			expect.stringContaining('(HTTP 503): down'),
		]);
	},
);

test.each([
	[402, { message: 'no credit' }, /no credit\. Check the credit and the limits of the account/],
	[
		429,
		{ message: 'no credit', code: 'insufficient_quota' },
		/Check the credit and the limits of the account/,
	],
	[
		404,
		{ message: 'There is no model "x"', code: 'model_not_found' },
		/refused .*There is no model "x"\. Compare/,
	],
])(
	'a refusal (%d) is explained by what is wrong with the account or the model',
	async (code, error, said) => {
		status = code;
		expect(await refused(JSON.stringify({ error }), false)).toEqual([code, expect.stringMatching(said)]);
	},
);

test('a model that does not exist is not a wrong base URL', async () => {
	status = 404;
	const [code, message] = await refused(JSON.stringify({ error: { message: 'no model "x"' } }), true);
	expect([code, message]).toEqual([404, expect.stringMatching(/no model "x"\. Compare the model's ID/)]);
	expect(await refused('{"detail":"Not Found"}', true)).toEqual([404, expect.stringContaining('Base URL')]);
});

test.each([301, 302, 303, 307, 308])('a redirect (%d) is not followed', async (code) => {
	status = code;
	location = `${url}/elsewhere?token=secret`;
	const [settled, message] = await refused('', code % 2 === 0);
	expect([settled, paths]).toEqual([409, ['/chat']]);
	expect(message).toContain(`redirect (HTTP ${code}) to ${url}. `);
});

test('explains an unreachable platform, but not an aborted request', async () => {
	const send = readableFetch('http://127.0.0.1:1', redact, async () => {
		throw Object.assign(new TypeError('fetch failed'), {
			cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }),
		});
	});
	const response = await send('http://127.0.0.1:1/chat', {});
	expect(response.status).toBe(503);
	expect(await response.text()).toContain('nothing answers there (ECONNREFUSED)');
	await expect(send('http://127.0.0.1:1/chat', { signal: AbortSignal.abort() })).rejects.toThrow('aborted');
});

test('the fetch is added to the settings of the model, and to those from which it is copied', () => {
	const model = { fields: { configuration: {} }, completions: { clientConfig: {} } };
	makeAnswersReadable(model, url, redact);
	expect(model).toEqual({
		fields: { configuration: { fetch: expect.any(Function) } },
		completions: { clientConfig: { fetch: expect.any(Function) } },
	});
});

test.each([undefined, {}, { fields: null, completions: 7 }])('leaves another client alone: %j', (model) => {
	expect(() => makeAnswersReadable(model, url, redact)).not.toThrow();
});
