import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { makeAnswersReadable, readableFetch } from '../../../nodes/LmChatFlowPlatform/readableAnswers';
import { isJsonObject, objectsIn, type JsonObject } from '../../../nodes/shared/text/json';
import { redactor } from '../../../nodes/shared/text/redact';
import { textOf } from '../../../nodes/shared/text/textOf';
import { recogniseErrorsOfAllRealms } from '../../nodes/harness/realm';

const KEY = 'sk-0123456789abcdef';
const redact = redactor([KEY]);
const told: string[] = [];
const tell = (hint: string): void => void told.push(hint);
/** The platform at an address. */
const at = (baseUrl: string) => ({ baseUrl, busyTerms: ['too frequent'] });

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
	told.length = 0;
});

async function request(body: string | readonly Uint8Array[], stream: boolean): Promise<Response> {
	pieces = typeof body === 'string' ? [Buffer.from(body)] : body;
	const init = { method: 'POST', body: JSON.stringify({ stream }) };
	return await readableFetch(at(url), redact, fetch, tell)(`${url}/chat`, init);
}

/** The events of a stream, as a client reads them. */
async function eventsOf(body: string | readonly Uint8Array[]): Promise<JsonObject[]> {
	const response = await request(body, true);
	expect([response.status, response.headers.get('x-request-id')]).toEqual([200, 'r1']);
	const lines = (await response.text()).split('\n').filter((line) => line && line !== 'data: [DONE]');
	return lines.map((line) => JSON.parse(line.slice('data: '.length)) as JsonObject);
}

/** What a client makes of a stream: the fields of all deltas joined, and the last other fields. */
async function heard(body: string | readonly Uint8Array[]): Promise<JsonObject> {
	const all: JsonObject = {};
	for (const { choices, usage, error } of await eventsOf(body)) {
		const [choice] = objectsIn(choices);
		const delta = isJsonObject(choice?.delta) ? choice.delta : {};
		const { role, content, reasoning_content: thought, tool_calls } = delta;
		if (choice) expect(role).toBe('assistant');
		if (content) all.content = textOf(all.content) + textOf(content);
		if (thought) all.reasoning = textOf(all.reasoning) + textOf(thought);
		if (tool_calls) all.calls = tool_calls;
		if (choice?.finish_reason) all.finish = choice.finish_reason;
		if (usage) all.usage = usage;
		if (isJsonObject(error)) all.error = error.message ?? '';
	}
	return all;
}

/** The answer to a request without a stream. */
async function whole(body: string): Promise<JsonObject> {
	const response = await request(body, false);
	expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
	const { choices } = (await response.json()) as JsonObject;
	const [choice] = objectsIn(choices);
	return isJsonObject(choice?.message) ? choice.message : {};
}

/** The status and the message of an error. */
async function refused(body: string, stream: boolean): Promise<[number, string]> {
	const response = await request(body, stream);
	const { error } = (await response.json()) as { error: { message: string } };
	return [response.status, error.message];
}

const sse = (value: unknown) => `data: ${JSON.stringify(value)}\r\n\r\n`;
const chunk = (delta: unknown) => ({ id: 'a', model: 'm', choices: [{ index: 0, delta }] });
const finish = (reason: string) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const STOP = sse(finish('stop'));
const DONE = 'data: [DONE]\n\n';
const HELLO = sse(chunk({ role: 'assistant', content: 'Hel' }));

const CALL = {
	index: 0,
	id: 'c1',
	type: 'function',
	function: { name: 'weather', arguments: '{"city":"Zürich 🦊"}' },
};
const HEAD = { index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":' } };
const TAIL = { index: 0, function: { arguments: '"Zürich 🦊"}' } };
const { index: _index, ...UNNUMBERED } = HEAD;
const PAY = sse(chunk({ tool_calls: [{ ...HEAD, function: { name: 'pay', arguments: '{"amount":10' } }] }));

test('what arrives together is one chunk, in the form that the client expects', async () => {
	const usage = { total_tokens: 7 };
	const body = [chunk({ reasoning_content: 'hm' }), chunk({ content: 'x' }), chunk({ content: 'y' })];
	const events = await eventsOf(body.map(sse).join('') + sse({ choices: [], usage }) + STOP + DONE);
	const ofAnswer = { id: 'a', model: 'm', object: 'chat.completion.chunk' };
	const said = (delta: object, finish_reason: string | null) => ({
		...ofAnswer,
		choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason }],
	});
	expect(events).toEqual([
		said({ content: 'xy', reasoning_content: 'hm' }, null),
		said({ content: '' }, 'stop'),
		{ ...ofAnswer, choices: [], usage },
	]);
});

test.each([
	['have no index', [UNNUMBERED, { function: TAIL.function }]],
	['have different IDs', [HEAD, { ...TAIL, id: 'x1' }]],
	['repeat the name', [HEAD, { ...HEAD, function: { ...HEAD.function, ...TAIL.function } }]],
	[
		'have arguments that are twice JSON',
		[{ ...HEAD, function: { name: 'weather', arguments: JSON.stringify(CALL.function.arguments) } }],
	],
	['come once more, whole', [HEAD, TAIL, CALL]],
	['grow', [HEAD, CALL]],
	[
		'have an object as arguments',
		[{ ...HEAD, function: { name: 'weather', arguments: { city: 'Zürich 🦊' } } }],
	],
])('a tool call comes whole although its pieces %s, however the stream ends', async (_name, pieces) => {
	const body = pieces.map((one) => sse(chunk({ tool_calls: [one] }))).join('');
	const end = sse(finish('tool_calls'));
	for (const ending of [end, end + DONE, DONE, end + sse({ error: 'late' })]) {
		expect(await heard(body + ending)).toMatchObject({ calls: [CALL] });
	}
});

test.each<[string, JsonObject, JsonObject]>([
	['reasoning under another name', { reasoning: 'hm', content: 'x' }, { reasoning: 'hm', content: 'x' }],
	['reasoning in tags', { content: '<think>hm</think>x' }, { reasoning: 'hm', content: 'x' }],
	['a refusal', { content: null, refusal: 'I cannot' }, { content: 'I cannot' }],
])('reads %s, streamed or not', async (_name, message, { content = '', reasoning }) => {
	expect(await heard(sse(chunk(message)) + DONE)).toEqual({ content, ...(reasoning && { reasoning }) });
	const expected = { role: 'assistant', content, ...(reasoning && { reasoning_content: reasoning }) };
	const body = { choices: [{ message }] };
	for (const one of [body, { code: 0, msg: 'Success', data: body }]) {
		expect(await whole(JSON.stringify(one, null, 1))).toEqual(expected);
		expect(await heard(JSON.stringify(one))).toMatchObject({ content });
	}
});

test('a call of the older form gets an ID of its own, and one without arguments gets empty ones', async () => {
	const message = { content: null, function_call: { name: 'weather', arguments: '' } };
	const id = expect.stringMatching(/^call_[0-9a-f]{32}$/) as string;
	const call = { id, type: 'function', function: { name: 'weather', arguments: '{}' } };
	const body = JSON.stringify({ choices: [{ message }] });
	const first = await heard(body);
	expect(first).toEqual({ calls: [{ index: 0, ...call }] });
	expect(await whole(body)).toMatchObject({ tool_calls: [call] });
	expect(await heard(body)).not.toEqual(first);
});

test('tool calls get IDs that no other call of the conversation has', async () => {
	const made = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });
	const messages = [{ role: 'assistant', tool_calls: [made('c1', 'bash')] }];
	const body = JSON.stringify({
		choices: [
			{ message: { content: null, tool_calls: [made('c1', 'bash'), made('c2', 'a'), made('c2', 'b')] } },
		],
	});
	pieces = [Buffer.from(body)];
	const send = readableFetch(at(url), redact, fetch, tell);
	for (const stream of [false, true]) {
		const response = await send(`${url}/chat`, {
			method: 'POST',
			body: JSON.stringify({ stream, messages }),
		});
		const ids = [...(await response.text()).matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id);
		expect(ids).toEqual([expect.stringMatching(/^call_/), 'c2', expect.stringMatching(/^call_/)]);
		expect(new Set(ids).size).toBe(3);
	}
});

const THOUGHT = sse(chunk({ reasoning_content: 'hm' }));

test.each([
	['length', THOUGHT, "The model used all its tokens for reasoning and gave no answer. Raise 'Max Tokens'"],
	[
		'length',
		HELLO.replace('Hel', ''),
		'The answer was cut off because it reached the maximum number of tokens',
	],
	['content_filter', HELLO.replace('Hel', ''), "The platform's content filter cut the answer off"],
	['stop', THOUGHT, 'The model reasoned, but gave no answer'],
	['stop', HELLO.replace('Hel', ''), 'The model gave an empty answer'],
	[
		'tool_calls',
		THOUGHT,
		'The model said that it calls a tool ("tool_calls"), but its answer contains no call',
	],
])(
	'an answer without text that ends with "%s" is an error, because the agent would end empty',
	async (reason, body, why) => {
		for (const one of [body + sse(finish(reason)) + DONE, body + sse(finish(reason))]) {
			expect((await heard(one)).error).toContain(`The answer cannot be used: ${why}`);
			expect((await refused(one, false))[1]).toContain(why);
		}
		expect(told).toEqual([]);
	},
);

test('what is odd about an answer that is used is told', async () => {
	expect(await heard(HELLO + sse(finish('length')) + DONE)).toEqual({ content: 'Hel', finish: 'length' });
	expect(await heard(HELLO + STOP + sse({ error: `no ${KEY}` }))).toEqual({ content: 'Hel', finish: 'stop' });
	expect(await heard(`${HELLO}data: a queue is full\n\n${STOP}`)).toEqual({ content: 'Hel', finish: 'stop' });
	expect(told).toEqual([
		expect.stringContaining('The answer was cut off'),
		'Besides the answer, the platform said: no [hidden].',
		'Besides the answer, the platform said: a queue is full.',
	]);
});

test('a stream is read the same wherever it is cut', async () => {
	const bytes = Buffer.from(
		`: ping\n\n${sse(chunk({ content: 'Zürich 🦊' }))}ping\n\n${sse(chunk({ tool_calls: [CALL] }))}data: [DONE]`,
	);
	const expected = { content: 'Zürich 🦊', calls: [CALL] };
	for (let at = 1; at < bytes.length; at++) {
		expect(await heard([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected);
	}
	expect(await heard(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toEqual(expected);
});

test('an empty error in a chunk, for which the client would give up, is left out', async () => {
	const body = HELLO + sse({ ...chunk({ content: 'lo' }), error: { message: '' } }) + STOP;
	expect(await heard(body)).toEqual({ content: 'Hello', finish: 'stop' });
});

test.each([
	['ends', HELLO, 'The answer broke off: the connection ended before the answer was finished'],
	[
		'ends within a tool call',
		PAY,
		'The answer broke off: the connection ended before the answer was finished',
	],
	[
		'ends within a chunk',
		`${HELLO}data: {"choices":[{"del`,
		'The answer broke off: the connection ended in the middle of an event',
	],
	[
		'has a gap',
		`${HELLO}data: {"choices":[{"del\n\n${STOP}`,
		'The answer broke off: a part of it cannot be read',
	],
	[
		'has an error',
		HELLO + sse({ error: { message: `no ${KEY}`, code: 503 } }) + DONE,
		'The answer broke off: the platform said: no [hidden]',
	],
	[
		'has words that are no part of it',
		`${HELLO}upstream is gone\n\n${DONE}`,
		'The answer broke off: the platform said: upstream is gone',
	],
	[
		'failed',
		HELLO + sse(finish('network_error')) + DONE,
		'The answer broke off: the platform ended it with the finish reason',
	],
	[
		'is too long for its tool call',
		PAY + sse(finish('length')) + DONE,
		"The answer cannot be used: it reached the maximum number of tokens within a tool call; raise 'Max Tokens'",
	],
	[
		'calls a tool with arguments that are not JSON',
		PAY + sse(finish('tool_calls')),
		'The answer cannot be used: the arguments of its tool call "pay" are not a JSON object',
	],
	[
		'calls a tool with a list as arguments',
		sse(chunk({ tool_calls: [{ ...HEAD, function: { name: 'pay', arguments: '[10]' } }] })) +
			sse(finish('tool_calls')),
		'The answer cannot be used: the arguments of its tool call "pay" are not a JSON object',
	],
])('a stream that %s ends with an error, because the client would use it', async (_name, body, why) => {
	const { error } = await heard(body);
	expect(error).toContain(why);
	expect(error).toContain('It was not requested again, because what was generated is billed.');
	expect(await refused(body, false)).toEqual([409, error]);
});

test('a reset connection is an error, unless the answer was finished', async () => {
	isCut = true;
	expect((await heard(HELLO)).error).toMatch(/broke off: .*\(\w+\)\. /);
	expect(await heard(HELLO + STOP)).toEqual({ content: 'Hel', finish: 'stop' });
	expect(await refused('{"choices":[', false)).toEqual([
		409,
		expect.stringMatching(/^The answer broke off: /),
	]);
	for (const body of [' ', 'upst', sse({ choices: [], usage: {} })]) {
		const error = expect.stringMatching(
			/^The platform gave no answer: .*\(\w+\)(; the platform said: upst)?\.$/,
		) as string;
		expect(await refused(body, false)).toEqual([409, error]);
		expect(await heard(body)).toMatchObject({ error });
	}
});

test.each([
	['has failed', [sse(finish('network_error'))]],
	['has a gap', ['data: {"choices":[{"del\n\n', HELLO]],
])('an answer that %s is not read any further, because it is billed', async (_name, chunks) => {
	const cancel = jest.fn();
	const start = (stream: ReadableStreamDefaultController): void => {
		for (const one of chunks) stream.enqueue(Buffer.from(one));
	};
	const send = async () => await Promise.resolve(new Response(new ReadableStream({ start, cancel })));
	const response = await readableFetch(at(url), redact, send, tell)(url, { body: '{"stream":true}' });
	expect(await response.text()).toContain('The answer broke off: ');
	expect(cancel).toHaveBeenCalled();
});

test.each([
	['an error', JSON.stringify({ error: { message: 'bad thing' } }), 409, 'bad thing'],
	[
		'an error with a status',
		JSON.stringify({ error: { message: 'bad thing', code: 503 } }),
		503,
		'bad thing',
	],
	['a busy platform', '{"code":12,"msg":"Too frequent","data":null}', 429, 'Too frequent'],
	['no choices', '{"choices":[]}', 409, 'the "choices" in its response are empty'],
	['a stream without choices', sse({}) + DONE, 409, 'its response has no "choices"'],
	['another object', '{"status":"up"}', 409, 'it sent {"status":"up"}'],
	['nothing', '', 409, 'its response is empty'],
	['text', 'upstream error', 409, 'it sent upstream error'],
	['a web page', ' <html>', 409, 'it sent a web page. The Base URL in the credential may be wrong'],
])('reports %s with HTTP 200, streamed or not', async (_name, body, code, why) => {
	const error = `The platform gave no answer: ${why}.`;
	expect(await refused(body, false)).toEqual([code, error]);
	expect(await heard(body)).toEqual({ error });
});

test.each([true, false])(
	'an answer with HTTP 500 is billed, so it is not requested again; stream: %s',
	async (stream) => {
		status = 500;
		const [code, message] = await refused('{"choices":[{"message":{"content":"Hello"}}]}', stream);
		expect(code).toBe(409);
		expect(message).toContain('sent an answer, but with HTTP 500');
	},
);

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
	[
		402,
		{ message: 'no credit' },
		/too little credit.* Check the credit and the limits of the account.*said: no credit\.$/,
	],
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
	[
		400,
		{ message: 'thinking is enabled but reasoning_content is missing in assistant tool call message' },
		/missing in assistant tool call message\. n8n's agents do not send reasoning back: set 'Reasoning' to Off/,
	],
])(
	'a refusal (%d) is explained by what is wrong with the account or the model',
	async (code, error, said) => {
		status = code;
		// The client would repeat a request that was answered with 429.
		const reported = code === 429 ? 409 : code;
		expect(await refused(JSON.stringify({ error }), false)).toEqual([reported, expect.stringMatching(said)]);
	},
);

test.each([400, 401, 500])(
	'of a refusal (%d), only so much is read as a platform may have to say',
	async (code) => {
		status = code;
		const body = JSON.stringify({ error: { message: 'x'.repeat(1_000_000) } });
		expect(await refused(body, true)).toEqual([code, expect.not.stringContaining('xxx')]);
	},
);

test('the key is hidden in an answer, even if it comes in pieces', async () => {
	const call = { ...CALL, function: { name: 'weather', arguments: `{"city":"${KEY}"}` } };
	const hidden = { ...CALL, function: { name: 'weather', arguments: '{"city":"[hidden]"}' } };
	const { index: _first, ...ofWhole } = hidden;
	const pieces = Array.from(`a ${KEY} b`).map((content) => chunk({ content, reasoning_content: content }));
	const ends = [chunk({ tool_calls: [call] }), finish('tool_calls')];
	expect(await heard([...pieces, ...ends].map((one) => Buffer.from(sse(one))))).toMatchObject({
		...{ content: 'a [hidden] b', reasoning: 'a [hidden] b', calls: [hidden] },
	});
	const message = { content: `a ${KEY} b`, tool_calls: [call] };
	const body = JSON.stringify({ choices: [{ message, finish_reason: 'tool_calls' }] });
	expect(await whole(body)).toMatchObject({ content: 'a [hidden] b', tool_calls: [ofWhole] });
});

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

test('an answer whose header is too large is not requested again', async () => {
	location = 'a'.repeat(40_000);
	for (const stream of [true, false])
		expect(await refused('{}', stream)).toEqual([409, expect.stringContaining('cannot be read: Headers')]);
});

test('explains an unreachable platform, but not an aborted request', async () => {
	const refuse = async (): Promise<Response> => {
		throw Object.assign(new TypeError('fetch failed'), {
			cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }),
		});
	};
	const send = readableFetch(at('http://127.0.0.1:1'), redact, refuse, tell);
	const response = await send('http://127.0.0.1:1/chat', {});
	expect(response.status).toBe(503);
	expect(await response.text()).toContain('nothing answers there (ECONNREFUSED)');
	await expect(send('http://127.0.0.1:1/chat', { signal: AbortSignal.abort() })).rejects.toThrow('aborted');
	const run = new AbortController();
	const pull = (): void => {
		run.abort();
		throw new Error('cut');
	};
	const cut = async () => await Promise.resolve(new Response(new ReadableStream({ pull })));
	const begun = readableFetch(at(url), redact, cut, tell);
	await expect(begun(url, { signal: run.signal })).rejects.toThrow('aborted');
});

test('the fetch is added to the settings of the model, and to those from which it is copied', () => {
	const model = { fields: { configuration: {} }, completions: { clientConfig: {} } };
	makeAnswersReadable(model, at(url), redact, tell);
	expect(model).toEqual({
		fields: { configuration: { fetch: expect.any(Function) } },
		completions: { clientConfig: { fetch: expect.any(Function) } },
	});
});

test.each([
	[undefined, 'completions.clientConfig'],
	[{ fields: { configuration: {} }, completions: 7 }, 'completions.clientConfig'],
	[{ fields: null, completions: { clientConfig: {} } }, 'fields.configuration'],
])('a client of another form is refused, and what it lacks is named: %j', (model, missing) => {
	expect(makeAnswersReadable(model, at(url), redact, tell)?.message).toBe(
		`The FlowPlatform Chat Model does not fit this version of n8n, whose chat models have no "${missing}"`,
	);
});
