import fc from 'fast-check';

import { ThinkSplitter, splitAtLoneClosing } from '../../../../nodes/shared/answer/thinkTags';

function split(...pieces: string[]) {
	return splitAll(pieces);
}

function splitAll(pieces: readonly string[]) {
	const splitter = new ThinkSplitter();
	let content = '';
	let reasoning = '';
	for (const part of [...pieces.map((piece) => splitter.push(piece)), splitter.end()]) {
		content += part.content;
		reasoning += part.reasoning;
	}
	return { content, reasoning };
}

test.each([
	['<think>a</think>b', 'a', 'b'],
	['<think>a</think>\n\n b', 'a', 'b'],
	['  \n<Think>a</THINK>b', 'a', 'b'],
	['<thinking>a</thinking>b', 'a', 'b'],
	['<thought>a</thought>b', 'a', 'b'],
	['◁think▷a◁/think▷b', 'a', 'b'],
	['<think>a</think><think>b</think>c', 'ab', 'c'],
	['<think></think>c', '', 'c'],
	['<think>never closed', 'never closed', ''],
	['<think>', '', ''],
	['<think>a </thi', 'a </thi', ''],
	['<thin', '', '<thin'],
	['\n\nanswer', '', 'answer'],
	['  indented', '', '  indented'],
	['use <think>x</think> so', '', 'use <think>x</think> so'],
	['<p>answer</p>', '', '<p>answer</p>'],
	['<think>a<think>b</think>c', 'a<think>b', 'c'],
	['', '', ''],
	['   ', '', '   '],
])('separates the reasoning from %j', (text, reasoning, content) => {
	expect(split(text)).toEqual({ reasoning, content });
});

const PARTS = fc.constantFrom(
	...['<think>', '</think>', '<thinking>', '</thinking>', '◁think▷', '◁/think▷', '<thought>', '</thought>'],
	...['<', '>', '/', '\n', ' ', 'a', '🦊', 'İ', 'K', '</', '<thi', 'nk>', 'word '],
);

test('the result does not depend on where a text is cut', () => {
	fc.assert(
		fc.property(
			fc.array(PARTS, { maxLength: 12 }).map((parts) => parts.join('')),
			fc.array(fc.nat(80), { maxLength: 12 }),
			(text, cuts) => {
				const places = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
				const pieces = places.slice(1).map((end, index) => text.slice(places[index], end));
				expect(split(...pieces)).toEqual(split(text));
				expect(split(...text.split(''))).toEqual(split(text));
			},
		),
		{ numRuns: 2_000 },
	);
});

test('the cost of long reasoning in small pieces is proportional to its length', () => {
	const pieces = ['<think>', ...Array.from({ length: 200_000 }, () => 'a <'), '</think>', 'b'];
	const before = process.cpuUsage();
	expect(splitAll(pieces).content).toBe('b');
	// CPU time does not depend on how busy the machine is.
	expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});

test.each([
	['I think so.\n</think>\n\nYes', { reasoning: 'I think so.', content: 'Yes' }],
	['I think so.\r\n</think>\r\nYes', { reasoning: 'I think so.', content: 'Yes' }],
	['</think>\nYes', { reasoning: '', content: 'Yes' }],
	['only thought\n</thinking>', { reasoning: 'only thought', content: '' }],
	['It ends with </think> in the middle', undefined],
	['A block looks like this:\n<think>\nsome words\n</think>\nThat is all.', undefined],
	['nothing', undefined],
])('splits a text at a closing tag without an opening one: %j', (text, expected) => {
	expect(splitAtLoneClosing(text)).toEqual(expected);
});
