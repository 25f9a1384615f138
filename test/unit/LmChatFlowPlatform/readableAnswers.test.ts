import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { makeAnswersReadable, readableFetch } from '../../../nodes/LmChatFlowPlatform/readableAnswers';

let server: Server;
let url = '';
/** What the server answers, in the pieces in which it writes them. */
let pieces: readonly Uint8Array[] = [];
let status = 200;

beforeAll(async () => {
	const answer = async (response: ServerResponse): Promise<void> => {
		response.writeHead(status, { 'content-type': 'text/event-stream', 'x-request-id': 'r1' });
		for (const piece of pieces) await new Promise((written) => response.write(piece, written));
		response.end();
	};
	server = createServer((request, response) => {
		request.resume().on('end', () => void answer(response));
	});
	await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
	url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});

afterAll(() => server.close());

afterEach(() => {
	status = 200;
});

async function ask(body: string | readonly Uint8Array[], stream = true): Promise<string> {
	pieces = typeof body === 'string' ? [Buffer.from(body)] : body;
	const response = await readableFetch(fetch)(url, { method: 'POST', body: JSON.stringify({ stream }) });
	expect([response.status, response.headers.get('x-request-id')]).toEqual([status, 'r1']);
	return await response.text();
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

const CALL = { index: 0, id: 'c1', function: { name: 'weather', arguments: '{"city":"Zürich 🦊"}' } };

test('each delta without a role gets one, and the rest of it stays', async () => {
	const text = await ask(
		[
			chunk({ reasoning_content: 'hm' }),
			chunk({ role: null, content: 'x' }),
			chunk({ role: '', tool_calls: [CALL] }),
			{ choices: [], usage: { total_tokens: 7 } },
		]
			.map(sse)
			.join('') + 'data: [DONE]\n\n',
	);
	expect(chunksOf(text)).toEqual([
		chunk({ role: 'assistant', reasoning_content: 'hm' }),
		chunk({ role: 'assistant', content: 'x' }),
		chunk({ role: 'assistant', tool_calls: [CALL] }),
		{ choices: [], usage: { total_tokens: 7 } },
	]);
	expect(text).toContain('data: [DONE]\n');
});

const PARTS = [
	{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
	{ type: 'text', text: 'Zürich' },
	{ type: 'reference', reference_ids: [1] },
	{ type: 'text', text: ' 🦊' },
];

test('content that is a list becomes text and reasoning, streamed and not', async () => {
	const plain = { role: 'assistant', content: 'Zürich 🦊', reasoning_content: 'hm' };
	expect(chunksOf(await ask(sse(chunk({ content: PARTS }))))).toEqual([chunk(plain)]);
	const whole = JSON.stringify({ choices: [{ message: { content: PARTS } }] }, null, 1);
	expect(JSON.parse(await ask(whole, false))).toEqual({ choices: [{ message: plain }] });
});

test('a line of the field "error" becomes an event', async () => {
	expect(chunksOf(await ask('error: {"code":500,"message":"gone"}\n\n'))).toEqual([
		{ error: { code: 500, message: 'gone' } },
	]);
	expect(chunksOf(await ask(`data: {"a":1}\nerror: gone`))).toEqual([{ a: 1 }, { error: 'gone' }]);
});

test('a stream means the same wherever it is cut', async () => {
	const bytes = Buffer.from(
		`: ping\n\n${sse(chunk({ content: PARTS }))}${sse(chunk({ tool_calls: [CALL] }))}data: [DONE]`,
	);
	const whole = await ask([bytes]);
	for (let at = 1; at < bytes.length; at++) {
		expect(await ask([bytes.subarray(0, at), bytes.subarray(at)])).toBe(whole);
	}
	expect(await ask(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toBe(whole);
});

test.each([
	['what needs no change', sse(chunk({ role: 'assistant', content: 'x', n: 1 })), true],
	['digits', '{"id":12345678901234567890,"choices":[{"message":{"role":"assistant"}}]}', false],
	['what is no JSON', 'data: {"choices":[{"delta":{}\n\nevent: x\nid: 7\n', true],
	['hostile shapes', 'data: {"choices":[null,7,{"delta":null},{"delta":[]}]}\n\n', true],
])('%s stays as it is', async (_name, body, stream) => {
	expect(await ask(body, stream)).toBe(body);
});

test('a refusal stays as it is', async () => {
	status = 400;
	const body = '{"choices":[{"message":{}}],"error":{"message":"no"}}';
	expect(await ask(body, false)).toBe(body);
});

test('it is put into the settings of the model, and into those that its copies are made from', () => {
	const model = { fields: { configuration: {} }, completions: { clientConfig: {} } };
	makeAnswersReadable(model);
	expect(model).toEqual({
		fields: { configuration: { fetch: expect.any(Function) } },
		completions: { clientConfig: { fetch: expect.any(Function) } },
	});
});

test.each([undefined, {}, { fields: null, completions: 7 }])('another client is left alone: %j', (model) => {
	expect(() => makeAnswersReadable(model)).not.toThrow();
});
