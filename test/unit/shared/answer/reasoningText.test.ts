import fc from 'fast-check';

import { ReasoningCollector } from '../../../../nodes/shared/answer/reasoningText';
import { textIn } from '../../../../nodes/shared/answer/contentParts';
import { deeplyNested, hostileJson } from '../../FlowTask/hostileJson';
import { parseJson } from '../../../../nodes/shared/text/json';

type Source = Parameters<ReasoningCollector['add']>[0];

function collect(...pieces: [Source, string][]) {
	const collector = new ReasoningCollector();
	const news = pieces.map(([place, text]) => collector.add(place, text));
	return { news, text: collector.text() };
}

test('pieces of one field are joined unchanged', () => {
	expect(
		collect(['reasoning_content', 'a'], ['reasoning_content', ' a'], ['reasoning_content', ' b']),
	).toEqual({
		news: ['a', ' a', ' b'],
		text: 'a a b',
	});
});

test('the same text in two fields is kept once and streamed once', () => {
	expect(
		collect(
			['reasoning_content', 'first '],
			['reasoning_details', 'first '],
			['reasoning_content', 'then'],
			['reasoning_details', 'then'],
		),
	).toEqual({ news: ['first ', '', 'then', ''], text: 'first then' });
});

test('a field with less text, or other white space, adds nothing', () => {
	expect(collect(['reasoning', 'a b\nc'], ['tags', 'b c']).text).toBe('a b\nc');
	expect(collect(['tags', 'b c'], ['reasoning', 'a b\nc']).text).toBe('a b\nc');
});

test('a text of 11,000 characters within another is left out', () => {
	const text = Array.from({ length: 2_000 }, (_, index) => `${index * 7_919},`)
		.join('')
		.slice(0, 11_000);
	const longer = `First: ${text} (end)`;
	expect(collect(['reasoning_content', text], ['reasoning', longer]).text).toBe(longer);
});

test('long texts are searched only at their ends, because a search for one may take quadratic time', () => {
	const long = 'ab'.repeat(100_000);
	for (const more of [`${long} then`, `first ${long}`]) {
		expect(collect(['reasoning', more], ['tags', long]).text).toBe(more);
	}
	const between = `first ${long} then`;
	expect(collect(['reasoning', between], ['tags', long]).text).toBe(`${between}\n\n${long}`);
});

test('different texts are both kept, in order of arrival', () => {
	expect(collect(['reasoning_content', 'short'], ['tags', 'a longer one']).text).toBe(
		'short\n\na longer one',
	);
});

test.each(['reasoning_details', 'reasoning_content', 'reasoning', 'parts'] as const)(
	'%s that repeats all earlier text is streamed once',
	(source) => {
		const chunks = ['Let me', 'Let me see', 'Let me see', 'Let me see it.', 'Let me see it.'];
		expect(collect(...chunks.map((text): [Source, string] => [source, text]))).toEqual({
			news: ['Let me', ' see', '', ' it.', ''],
			text: 'Let me see it.',
		});
	},
);

test('details in pieces are joined, even if a word is repeated', () => {
	const pieces = ['no', 'no', ', ', 'never'].map((text): [Source, string] => ['reasoning_details', text]);
	expect(collect(...pieces).text).toBe('nono, never');
});

test('blank reasoning is ignored', () => {
	expect(collect(['reasoning_content', '\n\n']).text).toBe('');
});

test.each([
	['text', 'text'],
	[[{ text: 'a' }, { text: 'b' }], 'ab'],
	[[{ type: 'reasoning.text', text: 'a' }], 'a'],
	[[{ type: 'thinking', thinking: 'a' }], 'a'],
	[[{ summary: [{ text: 'a' }, 'b'] }], 'ab'],
	[{ content: [{ text: 'a' }] }, 'a'],
	[[{ type: 'reasoning.encrypted', data: 'x' }], ''],
	[[{ text: '', content: 'a' }], 'a'],
	[null, ''],
	[undefined, ''],
	[7, '7'],
	[true, ''],
	[[], ''],
])('textIn(%j) is %j', (value, expected) => {
	expect(textIn(value)).toBe(expected);
});

test('no value causes an exception', () => {
	expect(textIn(parseJson(deeplyNested('list')))).toBe('');
	expect(textIn(parseJson(deeplyNested('object')))).toBe('');
	fc.assert(
		fc.property(hostileJson(), (value) => {
			expect(typeof textIn(value)).toBe('string');
		}),
	);
});
