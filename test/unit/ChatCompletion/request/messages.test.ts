import fc from 'fast-check';

import { messagesFromJson, messagesFromRows } from '../../../../nodes/ChatCompletion/request/messages';
import { deeplyNested, hostileJson, hostileSource } from '../../FlowTask/hostileJson';

const HELLO = { role: 'user', content: 'hello' };
const image = (url: string, detail?: string) => ({
	type: 'image_url',
	image_url: { url, ...(detail && { detail }) },
});

test('rows become messages, except those that are empty for this item', () => {
	expect(
		messagesFromRows([
			{ role: 'system', content: 'Be brief.', images: [] },
			{ role: 'user', content: ' \n', images: [] },
			{ role: 'user', content: 'What is this?', images: [image('https://a/b.png', 'low'), image('data:x')] },
			{ role: 'user', content: '', images: [image('https://a/c.png')] },
		]),
	).toEqual({
		ok: true,
		value: [
			{ role: 'system', content: 'Be brief.' },
			{
				role: 'user',
				content: [
					{ type: 'text', text: 'What is this?' },
					{ type: 'image_url', image_url: { url: 'https://a/b.png', detail: 'low' } },
					{ type: 'image_url', image_url: { url: 'data:x' } },
				],
			},
			{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a/c.png' } }] },
		],
	});
});

test.each([
	[[], 'There is no message'],
	[[{ role: 'user', content: ' ', images: [] }], 'All messages are empty'],
	[[{ role: 'boss', content: 'x', images: [] }], /^Message 1 has the role "boss": it must be one of system/],
	[
		[
			{ role: 'system', content: 'Be brief', images: [] },
			{ role: 'user', content: null, images: [] },
		],
		/^Message 2 \(user\) has no text: its expression returned nothing/,
	],
	[
		[
			{ role: 'user', content: 'x', images: [] },
			{ role: 'assistant', content: null, images: [image('https://a/b.png')] },
		],
		/^Message 2 \(assistant\) has no text/,
	],
	[
		[
			{ role: 'system', content: 'Be brief', images: [] },
			{ role: 'user', content: ' ', images: [] },
		],
		/^There is no question: message 2 \(user\) is empty for this item/,
	],
	[[{ role: 'developer', content: 'Be brief', images: [] }], /^There is no question, only a system message/],
])('refuses the rows %j', (rows, message) => {
	const read = messagesFromRows(rows);
	expect(read.ok ? '' : read.failure.message).toMatch(message);
});

test('a wrong role of a row is to be corrected in its field, not in JSON', () => {
	const read = messagesFromRows([{ role: 'boss', content: 'x', images: [] }]);
	expect(read.ok ? '' : read.failure.advice).toBe("Check the expression in 'Role'.");
});

test.each([
	[[HELLO]],
	[HELLO],
	[{ model: 'x', messages: [HELLO] }],
	[JSON.stringify([HELLO])],
	[JSON.stringify({ messages: HELLO })],
])('reads the conversation %j', (given) => {
	expect(messagesFromJson(given)).toEqual({ ok: true, value: [HELLO] });
});

test('keeps the other fields of messages', () => {
	const turns = [
		{ role: 'assistant', content: null, tool_calls: [{ id: 'a' }], reasoning_content: 'hm' },
		{ role: 'tool', tool_call_id: 'a', content: '5' },
		{ role: 'user', content: [{ type: 'text', text: 'x' }], name: 'Ann' },
	];
	expect(messagesFromJson(turns)).toEqual({ ok: true, value: turns });
});

const circular: Record<string, unknown> = { role: 'user', content: 'x' };
circular.self = circular;

test.each<[unknown, string]>([
	['not json', "'Messages (JSON)' cannot be read as JSON"],
	['', "'Messages (JSON)' cannot be read as JSON"],
	[undefined, "'Messages (JSON)' cannot be read as JSON"],
	[null, "'Messages (JSON)' is not an array of messages"],
	[5, "'Messages (JSON)' is not an array of messages"],
	[[], "'Messages (JSON)' is an empty array"],
	[{ messages: [] }, "'Messages (JSON)' is an empty array"],
	[['hello'], 'Message 1 is not an object with "role" and "content"'],
	[[HELLO, { content: 'x' }], 'Message 2 has no "role"'],
	[[HELLO, { role: 'boss', content: 'x' }], 'Message 2 has the role "boss"'],
	[[{ role: 'user' }], 'Message 1 has no "content"'],
	[[{ role: 'assistant', content: null }], 'Message 1 has no "content"'],
	[[circular], "'Messages (JSON)' cannot be written as JSON"],
	[[{ role: 'system', content: 'Be brief.' }], 'There is no question'],
	[
		[
			{ role: 'system', content: 'Be brief.' },
			{ role: 'user', content: ' ' },
		],
		'There is no question',
	],
	[[{ role: 'user', content: [] }], 'There is no question'],
	[
		'[{"role":"user","content":"x","tool_calls":[{"n":9007199254740993}]}]',
		"'Messages (JSON)' contains the number 9007199254740993, which would lose digits",
	],
	[`[{"role":"user","content":${deeplyNested('list')}}]`, 'it is nested too deeply'],
])('refuses invalid JSON messages: %#', (given, message) => {
	const read = messagesFromJson(given);
	expect(read.ok ? '' : read.failure.message).toContain(message);
	expect(read.ok ? '' : read.failure.kind).toBe('badInput');
});

test('hostile input never causes an exception', () => {
	fc.assert(
		fc.property(
			fc.oneof(hostileSource(), fc.array(fc.record({ role: hostileJson(), content: hostileJson() }))),
			(given) => {
				const read = messagesFromJson(given);
				if (!read.ok) expect(read.failure.message).not.toBe('');
			},
		),
		{ numRuns: 300 },
	);
});

test('reads a text of millions of line ends and quotation marks', () => {
	const given = [{ role: 'user', content: '\n"'.repeat(2_000_000) }];
	expect(messagesFromJson(JSON.stringify(given)).ok).toBe(true);
});
