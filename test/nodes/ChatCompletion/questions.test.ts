import { sayings, sharedStage } from '../harness/stage';
import { openChatStage } from './chat.fixture';

const stage = sharedStage(openChatStage);

const SYSTEM = { role: 'system', content: 'Be brief' };

test.each([
	['={{ $json.q }}', /^Message 2 \(user\) has no text: its expression returned nothing/],
	["={{ $json.q ?? '' }}", /^There is no question: message 2 \(user\) is empty for this item/],
])('refuses an item without its question before the call: %s', async (content, message) => {
	const run = await stage.run(
		[{ json: {} }, { json: { q: '[answer: yes]' } }],
		{ messages: { message: [SYSTEM, { role: 'user', content }] } },
		{ onError: 'continueRegularOutput' },
	);
	const [bad, good] = run.jsons();
	expect(bad).toMatchObject({ error: expect.stringMatching(message), details: { kind: 'badInput' } });
	expect(good).toMatchObject({ content: 'yes' });
	expect(stage.platform.books().requests.chat).toBe(1);
});

test.each([
	['images', { images: { image: [{ source: 'binary', binaryPropertyName: '={{ $json.nothing }}' }] } }],
	['images', { images: { image: [{ source: 'binary', binaryPropertyName: "={{ ' ' }}" }] } }],
	['images', { images: { image: [{ source: 'binary', binaryPropertyName: ', ' }] } }],
	['images', { images: { image: [{ source: "={{ 'URL' }}" }] } }],
	['role', { role: '={{ $json.nothing }}' }],
	['text', { content: '={{ Number($json.nothing) }}' }],
])('sends no question whose %s an expression left out: %j', async (_part, row) => {
	const items = [{ json: {}, binary: { data: { data: Buffer.from('x'), mimeType: 'image/png' } } }];
	const message = [
		{ role: 'user', content: 'hi' },
		{ role: 'user', content: 'what is this?', ...row },
	];
	const run = await stage.run(items, { messages: { message } });
	expect(run.error?.message).toMatch(/^Message 2/);
	expect(stage.platform.books().requests.chat).toBe(0);
});

test('sends a date from an expression as its text', async () => {
	await stage.run(sayings('hi'), {
		messages: { message: [{ role: 'user', content: '={{ new Date(0) }}' }] },
	});
	const [chat] = stage.platform.books().chats;
	expect(chat?.body.messages).toEqual([{ role: 'user', content: '1970-01-01T00:00:00.000Z' }]);
});

test('refuses a response format that does not exist, and sends numbers as stop sequences', async () => {
	const wrong = await stage.run(sayings('hi'), { responseFormat: "={{ 'json' }}" });
	expect(wrong.error?.message).toBe("'Response Format' must be text, jsonObject or jsonSchema");
	await stage.run(sayings('hi'), { options: { stop: '={{ [4, "x"] }}' } });
	expect(stage.platform.books().chats.map(({ body }) => body.stop)).toEqual([['4', 'x']]);
});

test('omits a row that is intentionally empty if another contains a question', async () => {
	const run = await stage.run([{ json: { q: '[answer: yes]' } }], {
		messages: {
			message: [
				SYSTEM,
				{ role: 'assistant', content: "={{ $json.before ?? '' }}" },
				{ role: 'user', content: '={{ $json.q }}' },
			],
		},
	});
	expect(run.jsons()[0]).toMatchObject({ content: 'yes' });
	expect(stage.platform.books().requests.chat).toBe(1);
});

test.each([
	['html200', {}, /The Base URL in the credential may be wrong/, /and not of its console/],
	[
		'code',
		{ code: 403, msg: 'no right' },
		/lacks the permission/,
		/is allowed to use this model\. The platform said: no right\.$/,
	],
] as const)('words the error for a chat: %s', async (kind, more, message, description) => {
	stage.platform.faults.add({ on: 'chat', kind, ...more });
	const run = await stage.run(sayings('x'), { options: { retries: 0 } });
	stage.platform.faults.clear();
	expect(run.error?.message).toMatch(message);
	expect(run.error?.description).toMatch(description);
	expect(run.error?.description).not.toMatch(/workflow|made/);
});

const SCHEMA = { type: 'object', required: ['title'], properties: { title: { type: 'string' } } };
const TOOLS = {
	tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
};

test('outputs a tool call instead of the requested JSON', async () => {
	for (const stream of [true, false]) {
		const run = await stage.run(sayings('[tool: weather {"city":"Oslo"}]'), {
			responseFormat: 'jsonSchema',
			jsonSchema: JSON.stringify(SCHEMA),
			stream,
			options: { extraBody: JSON.stringify(TOOLS) },
		});
		expect(run.jsons()[0]).toMatchObject({
			content: '',
			finishReason: 'tool_calls',
			toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }],
		});
	}
});

test('sends a wrapped schema with the strictness of its wrapper', async () => {
	for (const strict of [false, true]) {
		await stage.run(sayings('[answer: {"title":"x"}]'), {
			responseFormat: 'jsonSchema',
			jsonSchema: JSON.stringify({ name: 'n', strict, schema: SCHEMA }),
		});
		expect(stage.platform.books().chats.at(-1)?.body.response_format).toEqual({
			type: 'json_schema',
			json_schema: { name: 'n', strict, schema: SCHEMA },
		});
	}
});

test.each([
	"Invalid schema for response_format 'n': In context=(), 'additionalProperties' is required to be supplied and to be false",
	"Invalid schema for response_format 'n': 'required' is required to be supplied and to be an array including every key. Missing 'reasoning'",
])('says how to make a schema strict if the platform requires it: %s', async (said) => {
	const run = await stage.run(sayings(`[refuse: 400 ${said}]`));
	expect(run.error?.description).toContain('set "additionalProperties": false');
	expect(run.error?.description).toContain('"strict": false');
});
