import fc from 'fast-check';

import { deeplyNested } from '../../unit/FlowTask/hostileJson';
import { createHarness, NODE_NAME, singleNode, type Harness } from '../harness';
import { model } from './chat.fixture';
import { hostileBodies, RAW_ERROR } from './hostileBodies';
import { openScriptedServer, type ScriptedServer } from './scriptedServer';

/* Platforms that do not behave: whatever they answer, an item or an error that a person can read comes of it. */

let harness: Harness;
let server: ScriptedServer;
beforeAll(async () => {
	harness = await createHarness();
	server = await openScriptedServer();
});
afterAll(async () => {
	await harness.close();
	await server.close();
});

const ITEMS = 500;

async function ask(
	answers: ReadonlyArray<{ status: number; body: Buffer | string; type?: string }>,
	parameters: object = {},
) {
	server.requests.length = 0;
	server.answer = (body, response) => {
		const [message] = body.messages as Array<{ content: string }>;
		const {
			status = 200,
			body: bytes = '',
			type = 'text/event-stream',
		} = answers[Number(message?.content)] ?? {};
		response.writeHead(status, { 'content-type': type }).end(bytes);
	};
	return await harness.run({
		workflow: singleNode({
			type: 'n8n-nodes-flowtask.chatCompletion',
			parameters: {
				...model('any-1'),
				messages: { message: [{ role: 'user', content: '={{ String($json.n) }}' }] },
				options: { retries: 0, requestsPerSecond: 0, concurrency: 64, idleTimeoutSeconds: 5 },
				...parameters,
			},
			onError: 'continueRegularOutput',
		}),
		items: answers.map((_, n) => ({ json: { n } })),
		credentials: { flowPlatformApi: { apiKey: 'sk-0123456789abcdef', baseUrl: server.baseUrl } },
	});
}

test.each([
	['text, simplified', { simplify: true }],
	[
		'JSON, raw',
		{ simplify: false, responseFormat: 'jsonObject', onInvalidJson: 'returnText', stream: false },
	],
])(
	'%s: whatever comes, each item ends as an answer or as an error that a person can read',
	async (_name, parameters) => {
		const answers = fc
			.sample(fc.tuple(hostileBodies(), fc.constantFrom(200, 200, 200, 200, 400, 500, 429, 204)), {
				numRuns: ITEMS,
				seed: 7,
			})
			.map(([body, status]) => ({ status, body: status === 204 ? '' : body }));
		const run = await ask(answers, parameters);
		expect(run.error).toBeUndefined();
		const items = run.output(NODE_NAME);
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
		// Neither all good nor all bad: the bodies are close to what is right.
		expect(good).toBeGreaterThan(ITEMS / 50);
		expect(good).toBeLessThan(ITEMS);
		expect(server.requests).toHaveLength(ITEMS);
	},
);

test('without Continue On Fail the error has its class and the item', async () => {
	server.answer = (_body, response) => response.writeHead(200).end('{"choices":5}');
	const run = await harness.run({
		workflow: singleNode({
			type: 'n8n-nodes-flowtask.chatCompletion',
			parameters: { ...model('any-1'), messagesMode: 'json', options: { retries: 0 } },
		}),
		credentials: { flowPlatformApi: { apiKey: 'sk-0123456789abcdef', baseUrl: server.baseUrl } },
	});
	expect(run.error).toMatchObject({ name: 'NodeApiError', context: { itemIndex: 0 } });
});

test('bodies without end, and nested without end, end', async () => {
	const deep = deeplyNested('object');
	const chunk = (content: string): string => `data: {"choices":[{"delta":{"content":${content}}}]}\n\n`;
	const answers = [
		`data: ${'x'.repeat(33 * 1024 * 1024)}`,
		`{"choices":[{"message":{"content":"${'x'.repeat(33 * 1024 * 1024)}"}}]}`,
		chunk(deep) + chunk('"a"') + 'data: [DONE]\n\n',
		`data: {"usage":${deep},"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n`,
		`{"choices":[{"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":${deep}}}]},"finish_reason":"stop"}],"x":${deep}}`,
		`${' '.repeat(3_000_000)}{"choices":[{"message":{"content":"a"}}]}`,
		chunk('"a"').repeat(20_000),
		`data: {"choices":[${'{},'.repeat(20_000)}{}]}\n\n`,
	].map((body) => ({ status: 200, body }));
	const run = await ask(answers, { simplify: false });
	const items = run.output(NODE_NAME).map(({ json }) => json.error ?? json.content);
	expect(items).toEqual([
		expect.stringContaining('the answer is too large'),
		expect.stringContaining('the answer is too large'),
		'a',
		'a',
		'a',
		'a',
		expect.stringContaining('broke off after 20000 characters'),
		expect.stringContaining('broke off after 0 characters'),
	]);
});
