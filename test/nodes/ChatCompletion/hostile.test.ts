import fc from 'fast-check';

import { deeplyNested } from '../../unit/FlowTask/hostileJson';
import { sharedStage } from '../harness/stage';
import { hostileBodies, RAW_ERROR } from './hostileBodies';
import { CONTINUE } from './chat.fixture';
import { openScriptedChat, QUESTION } from './scriptedServer';

/* Misbehaving platforms: whatever they answer, the node outputs an item or a readable error. */

const chat = sharedStage(openScriptedChat);

const ITEMS = 150;
let runs = 0;

async function ask(
	answers: ReadonlyArray<{ status: number; body: Buffer | string; type?: string }>,
	parameters: object = {},
	// An account for each run, because a refusal for too many requests slows down everything that uses the account.
	apiKey = `sk-0123456789abcdef${runs++}`,
) {
	chat.server.requests.length = 0;
	chat.server.answer = (body, response) => {
		const [message] = body.messages as Array<{ content: string }>;
		const {
			status = 200,
			body: bytes = '',
			type = 'text/event-stream',
		} = answers[Number(message?.content)] ?? {};
		response.writeHead(status, { 'content-type': type }).end(bytes);
	};
	const usual = {
		messages: { message: [{ role: 'user', content: '={{ String($json.n) }}' }] },
		limits: { retries: 0, requestsPerSecond: 0, concurrency: 64, idleTimeoutSeconds: 5 },
	};
	const items = answers.map((_, n) => ({ json: { n } }));
	return await chat.ask({ ...usual, ...parameters }, { ...CONTINUE, account: { apiKey } }, items);
}

test.each([
	['text, simplified', { simplify: true }],
	[
		'JSON, raw',
		{ simplify: false, responseFormat: 'jsonObject', onInvalidJson: 'returnText', stream: false },
	],
])(
	'with %s, each item ends as an answer or a readable error, whatever arrives',
	async (_name, parameters) => {
		const answers = fc
			.sample(fc.tuple(hostileBodies(), fc.constantFrom(200, 200, 200, 200, 400, 500, 429, 204)), {
				numRuns: ITEMS,
				seed: 7,
			})
			.map(([body, status]) => ({ status, body: status === 204 ? '' : body }));
		const run = await ask(answers, parameters);
		expect(run.error).toBeUndefined();
		const items = run.items();
		expect(items).toHaveLength(ITEMS);
		let good = 0;
		for (const [index, { json, pairedItem }] of items.entries()) {
			expect(pairedItem).toEqual({ item: index });
			if ('error' in json) {
				const { error, message, details } = json as Record<string, string>;
				if (Object.keys(json).join() !== 'error,message,details')
					expect(json).toEqual({ error, message, details });
				expect(error).not.toMatch(RAW_ERROR);
				expect(message).not.toMatch(RAW_ERROR);
				expect(error).toMatch(/^\S.*[^.\s]$|^\S/s);
			} else {
				good++;
				expect(json).toMatchObject({
					content: expect.anything(),
					reasoning: expect.any(String),
					finishReason: expect.any(String),
					model: expect.any(String),
					usage: expect.any(Object),
					toolCalls: expect.any(Array),
					id: expect.any(String),
				});
			}
		}
		// Some bodies are valid and some are not, because they are close to valid ones.
		expect(good).toBeGreaterThan(ITEMS / 50);
		expect(good).toBeLessThan(ITEMS);
		expect(chat.server.requests).toHaveLength(ITEMS);
	},
);

test('without Continue On Fail, the error has its class and the item index', async () => {
	chat.server.answer = (_body, response) => response.writeHead(200).end('{"choices":5}');
	const run = await chat.ask({ ...QUESTION, limits: { retries: 0 } });
	expect(run.error).toMatchObject({ name: 'NodeApiError', context: { itemIndex: 0 } });
});

test('stops reading endless and endlessly nested bodies', async () => {
	const deep = deeplyNested('object');
	const chunk = (content: string): string => `data: {"choices":[{"delta":{"content":${content}}}]}\n\n`;
	const answers = [
		`data: ${'x'.repeat(33 * 1024 * 1024)}`,
		`{"choices":[{"message":{"content":"${'x'.repeat(33 * 1024 * 1024)}"}}]}`,
		chunk(deep) + chunk('"a"') + 'data: [DONE]\n\n',
	].map((body) => ({ status: 200, body }));
	const run = await ask(answers, { simplify: false });
	const items = run.items().map(({ json }) => json.error ?? json.content);
	expect(items).toEqual([
		expect.stringContaining('the answer is too large'),
		expect.stringContaining('the answer is too large'),
		expect.stringContaining('is nested too deeply'),
	]);
});

test.each([
	['compression', { 'content-encoding': 'gzip' }],
	['header', { 'x-policy': 'a'.repeat(40_000) }],
])('an answer whose %s cannot be read is billed, so it is not requested again', async (_name, headers) => {
	chat.server.requests.length = 0;
	chat.server.answer = (_body, response) => response.writeHead(200, headers).end('{"choices":[]}');
	const run = await chat.ask({ ...QUESTION, limits: { retries: 2 } });
	expect(run.error?.message).toMatch(/^The platform sent an answer that cannot be read: /);
	expect(run.error?.description).toContain('The question was not sent again');
	expect(chat.server.requests).toHaveLength(1);
});

test('an endless answer is ended after half an hour if no timeout is set', async () => {
	// Both clocks are moved, whichever the node uses.
	const elapsed = performance.now.bind(performance);
	const clocks = [jest.spyOn(Date, 'now'), jest.spyOn(performance, 'now')] as const;
	const jump = (ms: number): void => {
		clocks[0].mockImplementation(() => performance.timeOrigin + elapsed() + ms);
		clocks[1].mockImplementation(() => elapsed() + ms);
	};
	let written = 0;
	chat.server.answer = (_body, response) => {
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		const writing = setInterval(() => {
			if (++written === 10) jump(30 * 60_000);
			response.write('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
		}, 50);
		response.on('close', () => {
			clearInterval(writing);
		});
	};
	try {
		const run = await chat.ask({ ...QUESTION, limits: { idleTimeoutSeconds: 86_400 } });
		expect(run.error?.message).toMatch(/did not end before the timeout/);
		expect(written).toBeGreaterThanOrEqual(10);
	} finally {
		for (const clock of clocks) clock.mockRestore();
	}
});

test('a key that the platform echoes with escapes is hidden everywhere', async () => {
	const key = 'sk-0123456789/abcdef';
	const escapes = [
		'sk-0123456789\\/abcdef',
		key.replace('s', '\\u0073'),
		Array.from(key, (char) => `\\u00${char.charCodeAt(0).toString(16)}`).join(''),
	];
	const chunk = (delta: string): string => `data: {"choices":[{"delta":${delta}}]}\n\n`;
	const stop = 'data: {"id":"x","choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
	// Where JSON is not parsed, only the escapes that JSON itself makes are looked for.
	const unparsed = (escaped: string): string => (escaped.includes('\\u') ? key : escaped);
	const inText = (escaped: string): string => JSON.stringify(`{"note":"${unparsed(escaped)}"}`);
	const answers = escapes.flatMap((escaped) => [
		chunk(`{"content":"{\\"note\\":\\"${escaped}\\"}"}`) + stop,
		chunk(`{"content":${inText(escaped)}}`) + stop,
		chunk(
			`{"content":"{}","tool_calls":[{"index":0,"id":"${escaped}","function":{"name":"f","arguments":${inText(escaped)}}}]}`,
		) + stop,
		`data: {"id":"${escaped}","model":"${escaped}","choices":[{"delta":{"content":"{}"},"finish_reason":"${escaped}"}]}\n\n`,
		`data: {"id":"${escaped}","model":"${escaped}","choices":[{"delta":{"content":"{}"}}]}\n\n`,
		`data: {"error":{"message":"no ${escaped}"}}\n\n`,
		`${stop}data: {"error":{"message":"no ${escaped}"}}\n\n`,
		`event: error\ndata: {"no ${unparsed(escaped)}\n\n`,
		`${chunk('{"content":"a"}')}data: {"choices":[{"delta":{"content":"${unparsed(escaped)}\n\n`,
		`{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}],"${escaped}":{"more":["${escaped}"]}}`,
	]);
	const run = await ask(
		answers.map((body) => ({ status: 200, body })),
		{ simplify: false, responseFormat: 'jsonObject' },
		key,
	);
	const items = run.items();
	expect(items).toHaveLength(answers.length);
	for (const [index, { json }] of items.entries()) {
		const shown = JSON.stringify(json);
		const plain = shown.replace(/\\+u([0-9a-f]{4})/gi, (_escape, unit: string) =>
			String.fromCharCode(Number.parseInt(unit, 16)),
		);
		const found = plain.replace(/\\/g, '').includes('0123456789/abcdef');
		expect({ index, body: answers[index], shown: found ? shown : '' }).toEqual({
			index,
			body: answers[index],
			shown: '',
		});
	}
});

test('a key that the model writes in pieces is hidden in the stream, for each item', async () => {
	const pieces = [...Array.from('It is sk-0123456789abcdef, as'), ' I ', 'said'];
	const events = pieces.map(
		(content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`,
	);
	chat.server.answer = (_body, response) => {
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		response.end(`${events.join('')}data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n`);
	};
	const run = await chat.ask(
		{ messages: { message: [{ role: 'user', content: 'a' }] } },
		{ mode: 'webhook', streaming: true },
		[{}, {}],
	);
	for (const itemIndex of [0, 1]) {
		const heard = run.chunks.filter(({ metadata }) => metadata.itemIndex === itemIndex);
		expect(heard.map(({ content }) => content ?? '').join('')).toBe('It is [hidden], as I said');
	}
	expect(run.jsons().map(({ content }) => content)).toEqual(
		Array.from({ length: 2 }, () => 'It is [hidden], as I said'),
	);
});

test.each([
	['7001', 2, 'success'],
	['', 1, 'error'],
])(
	'with the busy codes "%s", a question that is answered with 7001 is sent %d times',
	async (busyCodes, sent, status) => {
		const busy = JSON.stringify({ code: 7001, message: 'later' });
		const choice = { message: { role: 'assistant', content: 'a fox' }, finish_reason: 'stop' };
		chat.server.requests.length = 0;
		chat.server.answer = (_body, response) => {
			const body = chat.server.requests.length > 1 ? JSON.stringify({ choices: [choice] }) : busy;
			response.writeHead(200, { 'content-type': 'application/json' }).end(body);
		};
		const account = { apiKey: 'sk-0123456789abcdef', busyCodes };
		const limits = { retries: 2 };
		const run = await chat.ask({ ...QUESTION, stream: false, limits }, { account });
		expect(chat.server.requests).toHaveLength(sent);
		expect(run.status).toBe(status);
	},
);
