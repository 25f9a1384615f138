import type { Json, JsonObject } from '../../../../nodes/shared/text/json';
import { AnswerBuilder } from '../../../../nodes/shared/answer/answerBuilder';
import { delta } from '../../ChatCompletion/askChat';

function build(...chunks: JsonObject[]) {
	return add(new AnswerBuilder(), chunks);
}

function add(builder: AnswerBuilder, chunks: readonly JsonObject[]) {
	for (const chunk of chunks) builder.add(chunk);
	builder.end();
	return builder;
}

const answer = (...chunks: JsonObject[]) => build(...chunks).answer();
const choices = (...list: Json[]): JsonObject => ({ choices: list });
const say = (index: Json, content: string): JsonObject => ({ index, delta: { content } });

describe('the answer of several choices', () => {
	test.each<[string, JsonObject[], string]>([
		['numbered from 0', [choices(say(0, 'a'), say(1, 'x')), choices(say(1, 'y'), say(0, 'b'))], 'ab'],
		['numbered from 1', [choices(say(1, 'a')), choices(say(2, 'x')), choices(say(1, 'b'))], 'ab'],
		['not numbered', [choices({ delta: { content: 'a' } }), choices({ delta: { content: 'b' } })], 'ab'],
		[
			'numbered only sometimes',
			[choices({ delta: { content: 'a' } }), choices(say(0, 'b'), say(1, 'x'))],
			'ab',
		],
		[
			'numbered with words',
			[choices(say('first', 'a')), choices(say('second', 'x'), say('first', 'b'))],
			'ab',
		],
		['numbered only at first', [choices(say(1, 'a')), choices({ delta: { content: 'b' } })], 'ab'],
		['in reverse order', [choices(say(1, 'a')), choices(say(0, 'x'), say(1, 'b'))], 'ab'],
		['with gaps', [choices(null, 5, say(3, 'a')), choices(), choices([], say(3, 'b'))], 'ab'],
	])('is that of the first choice with content: %s', (_name, chunks, content) => {
		expect(answer(...chunks).content).toBe(content);
	});
});

test.each([
	['the chunks are numbered', [choices(say(0, 'a')), choices(say(1, 'b')), choices(say(2, 'c'))], 'abc'],
	['others come, too', [0, 1, 0, 1].map((index) => choices(say(index, index ? '' : 'a'))), 'aa'],
	['another one comes afterwards', [0, 0, 1, 2].map((index) => choices(say(index, `${index}`))), '00'],
])('if only one choice was requested, it is the answer, although %s', (_name, chunks, content) => {
	expect(
		add(new AnswerBuilder({ isOnly: true, mayThink: 'maybe', callIds: new Set() }), chunks).answer().content,
	).toBe(content);
});

test('a tool call that is not in an array is one, too', () => {
	const call = { id: 'a', function: { name: 'f', arguments: '{"x":1}' } };
	const { toolCalls } = answer(choices({ message: { content: null, tool_calls: call } }));
	expect(toolCalls).toEqual([{ id: 'a', name: 'f', arguments: { x: 1 } }]);
});

test('a message next to empty deltas is the answer, and next to others it adds nothing', () => {
	const beside = (said: string, whole: string) =>
		choices({ delta: { role: 'assistant', content: said }, message: { content: whole } });
	expect(answer(beside('', 'ab'))).toMatchObject({ content: 'ab', raw: beside('', 'ab') });
	const streamed = answer(beside('', ''), beside('a', 'a'), beside('b', 'ab'), beside('', 'ab'));
	expect(streamed.content).toBe('ab');
	expect(streamed.raw).toMatchObject({
		object: 'chat.completion',
		choices: [{ message: { content: 'ab' } }],
	});
});

test('a message after empty deltas is the answer, and after others it adds nothing', () => {
	const message = { message: { content: 'a' }, finish_reason: 'stop' };
	expect(answer(choices({ delta: {} }), choices(message)).content).toBe('a');
	expect(answer(choices({ delta: { content: 'a' } }), choices(message)).content).toBe('a');
});

test.each([
	['stop', true, false],
	['length', true, false],
	['error', false, true],
	['ERROR', false, true],
	['network_error', false, true],
	['insufficient_system_resource', false, true],
	['abort', false, true],
	['cancelled', false, true],
	['timeout', false, true],
	['sensitive', true, false],
	['null', false, false],
	[null, false, false],
])('knows whether the finish reason %j ends or fails an answer', (finish_reason, isFinished, hasFailed) => {
	expect(build(choices({ delta: { content: 'a' }, finish_reason }))).toMatchObject({ isFinished, hasFailed });
});

test("separates reasoning from the answer if the opening tag is only in the model's template", () => {
	const text = 'I think so.\n</think>\n\nYes';
	expect(answer(delta({ content: text }))).toMatchObject({ content: 'Yes', reasoning: 'I think so.' });
	const both = answer(delta({ content: text, reasoning_content: 'hm' }));
	expect(both).toMatchObject({ content: text, reasoning: 'hm' });
	const leftOver = answer(delta({ reasoning_content: 'hm' }), delta({ content: '</think>\n\nYes' }));
	expect(leftOver).toMatchObject({ content: 'Yes', reasoning: 'hm' });
});

test('an empty reasoning field does not hide another', () => {
	expect(answer(delta({ reasoning: '', thinking: 'hm' }))).toMatchObject({ reasoning: 'hm' });
});

test('a refusal is the content if there is no other, and is marked as one', () => {
	const builder = new AnswerBuilder();
	for (const refusal of ['I can', 'not']) expect(builder.add(delta({ refusal })).content).toBe('');
	expect(builder.end().content).toBe('I cannot');
	expect(builder.answer()).toMatchObject({ content: 'I cannot', isRefusal: true });
	const both = answer(delta({ content: 'Yes', refusal: 'no' }));
	expect(both).toMatchObject({ content: 'Yes', isRefusal: false, partRefused: 'no' });
	expect(answer(delta({ content: [{ type: 'refusal', refusal: 'No.' }] })).content).toBe('No.');
});

test('separates reasoning from text in content parts, and ignores files', () => {
	const content: Json = [
		{ type: 'thinking', thinking: 'hm ' },
		{ type: 'reasoning', text: 'so' },
		{ type: 'text', text: 'a' },
		{ type: 'image_url', text: 'x' },
		'b',
	];
	expect(answer(delta({ content }))).toMatchObject({ content: 'ab', reasoning: 'hm so' });
});

describe('token counts', () => {
	const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
	const counts = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };

	test.each<[string, JsonObject]>([
		['in the chunk', delta({}, { usage })],
		['in the field of a vendor', delta({}, { x_groq: { id: 'req_1', usage } })],
		['in the field of a vendor, without choices', { choices: [], x_other: { usage } }],
		['in the choice', choices({ index: 0, delta: {}, usage })],
		['in the field of a vendor if the standard field is null', delta({}, { usage: null, x_groq: { usage } })],
	])('are found %s', (_name, chunk) => {
		expect(answer(delta({ content: 'a' }), chunk).usage).toEqual(counts);
	});

	test('are found under the names of other interfaces', () => {
		const other = {
			input_tokens: 1,
			output_tokens: 2,
			reasoning_tokens: 3,
			prompt_tokens_details: { cached_tokens: 4 },
		};
		const found = { promptTokens: 1, completionTokens: 2, reasoningTokens: 3, cachedTokens: 4 };
		expect(answer(delta({}, { usage: other })).usage).toEqual(found);
		const details = { completion_tokens_details: { reasoning_tokens: 5 } };
		expect(answer(delta({}, { usage: details })).usage).toEqual({ reasoningTokens: 5 });
		expect(answer(delta({}, { usage: { total_tokens: 'many' } })).usage).toEqual({});
		expect(answer(delta({}, { usage: { total_tokens: '7' } })).usage).toEqual({ totalTokens: 7 });
	});

	test('are the largest that were reported', () => {
		const smaller = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
		expect(answer(delta({}, { usage: smaller }), delta({}, { x_groq: { usage } })).usage).toEqual(counts);
		expect(answer(delta({}, { usage }), delta({}, { usage: smaller })).usage).toEqual(counts);
	});
});

describe('the raw data of a stream', () => {
	test('contain what the platform adds to chunks, choices and deltas', () => {
		const { raw } = answer(
			delta(
				{ role: 'assistant', content: 'a' },
				{ created: 5, model: 'm', object: 'chat.completion.chunk', provider: 'p' },
			),
			delta({ annotations: [{ url: 'https://a.example' }] }, { citations: ['https://a.example'] }),
			delta(
				{ annotations: [{ url: 'https://b.example' }] },
				{ citations: ['https://a.example', 'https://b.example'] },
			),
			delta({ executed_tools: [{ index: 0, type: 'search' }], audio: { id: 'x', transcript: 'Hel' } }),
			delta({ audio: { id: 'x', transcript: 'lo' } }, { moderation: { flagged: false } }),
			choices({ index: 0, delta: {}, logprobs: { content: [{ token: 'a' }] }, finish_reason: 'stop' }),
			choices({ index: 0, delta: {}, logprobs: { content: [{ token: 'b' }] } }),
			{
				choices: [],
				moderation: { flagged: true, categories: ['x'] },
				service_tier: null,
				x_groq: { id: 'r' },
			},
		);
		expect(raw).toEqual({
			id: 'chatcmpl-1',
			object: 'chat.completion',
			created: 5,
			model: 'm',
			provider: 'p',
			citations: ['https://a.example', 'https://b.example'],
			moderation: { flagged: true, categories: ['x'] },
			service_tier: null,
			x_groq: { id: 'r' },
			choices: [
				{
					index: 0,
					message: {
						role: 'assistant',
						content: 'a',
						annotations: [{ url: 'https://a.example' }, { url: 'https://b.example' }],
						executed_tools: [{ index: 0, type: 'search' }],
						audio: { id: 'x', transcript: 'Hello' },
					},
					logprobs: { content: [{ token: 'a' }, { token: 'b' }] },
					finish_reason: 'stop',
				},
			],
			usage: {},
		});
	});

	test('do not repeat text, reasoning and tool calls', () => {
		const { raw } = answer(
			delta({
				content: 'a',
				reasoning: 'hm',
				tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }],
			}),
		);
		expect(raw.choices).toEqual([
			{
				index: 0,
				message: {
					role: 'assistant',
					content: 'a',
					reasoning_content: 'hm',
					tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
				},
				finish_reason: null,
			},
		]);
	});

	test('contain fields whose names have a meaning in JavaScript', () => {
		const chunk = JSON.parse(
			'{"__proto__":{"a":1},"constructor":"x","choices":[{"delta":{"toString":"y"}}]}',
		) as JsonObject;
		const raw = JSON.stringify(answer(chunk, chunk).raw);
		expect(raw).toContain('"__proto__":{"a":1}');
		expect(raw).toContain('"constructor":"x"');
		expect(raw).toContain('"toString":"y"');
		expect({}).not.toHaveProperty('a');
	});
});

/* Each of these takes minutes or hours if a piece costs as much as all pieces before it. */
describe('the cost of many pieces is proportional to their size', () => {
	const COUNT = 100_000;

	function feed(piece: (count: number) => JsonObject) {
		const builder = new AnswerBuilder();
		for (let count = 0; count < COUNT; count++) builder.add(piece(count));
		return builder.answer();
	}

	const call = (index: number | undefined, args: string, name = 'f'): JsonObject =>
		delta({ tool_calls: [{ ...(index !== undefined && { index }), function: { name, arguments: args } }] });

	test('for one tool call with its name in each', () => {
		const { toolCalls } = feed((count) => call(0, count === 0 ? '{"a":"' : `${'x'.repeat(50)}{}`));
		expect(toolCalls).toHaveLength(1);
	});

	test('for one tool call without an index', () => {
		const { toolCalls } = feed((count) => call(undefined, count === 0 ? '[' : '{"a":"}"},'));
		expect(toolCalls).toHaveLength(1);
	});

	test('for reasoning in details', () => {
		const { reasoning } = feed(() => delta({ reasoning_details: [{ text: 'hm '.repeat(20) }] }));
		expect(reasoning).toHaveLength(COUNT * 60 - 1);
	});

	test('for white space before the answer', () => {
		expect(
			feed((count) => delta({ content: count < COUNT - 1 ? ' '.repeat(50) : 'a' })).content,
		).toHaveLength((COUNT - 1) * 50 + 1);
	});

	test('for think blocks in one piece', () => {
		const { content } = answer(delta({ content: `${'<think></think>'.repeat(COUNT)}a` }));
		expect(content).toBe('a');
	});

	test('for fields of the platform', () => {
		const { raw } = feed((count) => delta({ annotations: [{ n: count }] }, { tier: String(count) }));
		expect(raw).toMatchObject({ tier: String(COUNT - 1) });
	});
});

describe('the size of an answer', () => {
	const text = 'x'.repeat(2_000);

	test.each<[string, JsonObject]>([
		['text', { content: text }],
		['reasoning', { reasoning_content: text }],
		['a refusal', { refusal: text }],
		['arguments', { tool_calls: [{ index: 0, function: { name: 'f', arguments: text } }] }],
		['the name of a tool', { tool_calls: [{ index: 0, function: { name: text } }] }],
	])('grows with %s', (_name, fields) => {
		const builder = new AnswerBuilder();
		for (let count = 0; count < 5; count++) builder.add(delta(fields));
		expect(builder.size).toBeGreaterThanOrEqual(5 * text.length);
	});

	test('grows with each tool call, however short it is', () => {
		const builder = new AnswerBuilder();
		const calls = Array.from({ length: 5 }, (_, index) => ({ index, function: { name: 'f' } }));
		builder.add(delta({ tool_calls: calls }));
		expect(builder.size).toBeGreaterThan(5_000);
	});
});
