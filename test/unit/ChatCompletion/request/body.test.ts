import fc from 'fast-check';

import { chatBody, type ChatQuestion } from '../../../../nodes/ChatCompletion/request/body';
import { deeplyNested, hostileSource } from '../../FlowTask/hostileJson';

function body(over: Partial<ChatQuestion> = {}) {
	return chatBody({
		messages: [{ role: 'user', content: 'hello' }],
		reasoning: { model: 'family_a-v3.2', choice: 'default', control: 'auto', split: false },
		stream: true,
		includeUsage: true,
		format: { kind: 'text' },
		sampling: {},
		extraBody: undefined,
		...over,
	});
}

const PLAIN = {
	model: 'family_a-v3.2',
	messages: [{ role: 'user', content: 'hello' }],
	stream: true,
	stream_options: { include_usage: true },
};

test('sends nothing that is not set', () => {
	expect(body()).toEqual({ ok: true, value: PLAIN });
	expect(body({ stream: false })).toEqual({
		ok: true,
		value: { model: PLAIN.model, messages: PLAIN.messages, stream: false },
	});
	expect(body({ includeUsage: false })).toEqual({
		ok: true,
		value: { model: PLAIN.model, messages: PLAIN.messages, stream: true },
	});
});

test('sends everything that is set, including zeros', () => {
	const sampling = { temperature: 0, seed: 0, stop: ['x'], max_tokens: 5 };
	expect(body({ sampling, format: { kind: 'jsonObject' } })).toEqual({
		ok: true,
		value: { ...PLAIN, ...sampling, response_format: { type: 'json_object' } },
	});
});

test.each(['', null, undefined, '{}', {}])('ignores an empty extra body: %j', (extraBody) => {
	expect(body({ extraBody })).toEqual({ ok: true, value: PLAIN });
});

test('sends an extra body, whatever the names of its keys', () => {
	const extraBody = '{"top_k":20,"constructor":1,"toString":2,"__proto__":{"a":1}}';
	const sent = body({ extraBody });
	const text = JSON.stringify(sent.ok ? sent.value : sent.failure);
	expect(JSON.parse(text)).toMatchObject({ top_k: 20, constructor: 1, toString: 2 });
	expect(text).toContain('"__proto__":{"a":1}');
	expect(({} as { a?: number }).a).toBeUndefined();
});

test.each([
	[
		'{"seed":12345678901234567890}',
		"'Extra Body' contains the number 12345678901234567890, which would lose digits",
	],
	[{ a: [2 ** 53] }, "'Extra Body' contains the number 9007199254740992, which would lose digits"],
	['{"model":"x"}', "'Extra Body' sets \"model\", which the field 'Model' already sets"],
	[{ messages: [] }, "'Extra Body' sets \"messages\", which the field 'Messages' already sets"],
	[{ stream: false }, "'Extra Body' sets \"stream\", which the option 'Stream' already sets"],
	[
		{ temperature: 1 },
		'\'Extra Body\' sets "temperature", which a field or an option of this node already sets',
	],
	[
		{ stream_options: {} },
		'\'Extra Body\' sets "stream_options", which a field or an option of this node already sets',
	],
	[
		{ enable_thinking: true },
		'\'Extra Body\' sets "enable_thinking", which a field or an option of this node already sets',
	],
	['[1]', "'Extra Body' is not a JSON object"],
	['{', "'Extra Body' is not a JSON object"],
	[7, "'Extra Body' is not a JSON object"],
	[deeplyNested('object'), "'Extra Body' is too large or nested too deeply"],
	['{"id":9007199254740993}', "'Extra Body' contains the number 9007199254740993, which would lose digits"],
	[{ id: 2 ** 60 }, "'Extra Body' contains the number 1152921504606847000, which would lose digits"],
])('refuses an invalid extra body: %#', (extraBody, message) => {
	const reasoning = { model: 'family_a-v3.2', choice: 'on', control: 'auto', split: false } as const;
	const read = body({ extraBody, reasoning, sampling: { temperature: 0 } });
	expect(read.ok ? '' : read.failure.message).toBe(message);
});

test('hostile extra bodies never cause an exception and never replace form values', () => {
	fc.assert(
		fc.property(hostileSource(), (extraBody) => {
			const read = body({ extraBody });
			if (read.ok) expect(read.value).toMatchObject(PLAIN);
		}),
		{ numRuns: 1_000 },
	);
});
