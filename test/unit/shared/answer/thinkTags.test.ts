import fc from 'fast-check';

import { ThinkSplitter, splitAtLoneClosing, type MayThink } from '../../../../nodes/shared/answer/thinkTags';

function split(...pieces: string[]) {
	return splitAll(pieces);
}

function splitAll(pieces: readonly string[], mayThink?: MayThink) {
	const splitter = new ThinkSplitter(mayThink);
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

const YES = 'Yes, it is.';

/** How models end reasoning whose opening tag is in their chat template. */
const FORMS: ReadonlyArray<readonly [string, string]> = [
	['I think so.', `I think so.\n</think>\n\n${YES}`],
	['I think so.', `I think so.\r\n</think>\r\n${YES}`],
	['I think so.', `I think so.</think>${YES}`],
	['I think so.', `I think so.</think>\n\n${YES}`],
	['I think so', `I think so</think> ${YES}`],
	['I think so.', `I think so.\n</THINKING>\n${YES}`],
	['I think so.', `I think so.</thought>${YES}`],
	['I think so.', `I think so.◁/think▷${YES}`],
	['The tag `</think>` is quoted.', `The tag \`</think>\` is quoted.\n</think>\n${YES}`],
];

/** Forms that are reasoning only where reasoning is expected. */
const EXPECTED: ReadonlyArray<readonly [string, string]> = [
	['I think so.', `I think so. </think> ${YES}`],
	['I think so', `I think so\n</think> ${YES}`],
];

test.each(FORMS)('reasoning without an opening tag is separated: %j, %j', (reasoning, text) => {
	for (const mayThink of ['maybe', 'yes'] as const) {
		expect(splitAtLoneClosing(text, mayThink)).toEqual({ reasoning, content: YES });
	}
	expect(splitAtLoneClosing(text, 'no')).toBeUndefined();
});

test.each([...FORMS, ...EXPECTED])(
	'where it is expected, none of it is streamed as the answer, wherever it is cut: %j, %j',
	(reasoning, text) => {
		const all = (pieces: readonly string[]) => {
			const { content, ...rest } = splitAll(pieces, 'yes');
			return { content, reasoning: rest.reasoning };
		};
		for (let at = 0; at < text.length; at++) {
			expect(all([text.slice(0, at), text.slice(at)])).toEqual({ reasoning, content: YES });
		}
		expect(all(text.split(''))).toEqual({ reasoning, content: YES });
	},
);

test.each(EXPECTED)('where nothing is known, a tag may only be mentioned: %j, %j', (_reasoning, text) => {
	expect(splitAtLoneClosing(text, 'maybe')).toBeUndefined();
});

test.each([
	'It ends with </think> in the middle',
	'Close it with `</think>`, then answer.',
	'Close it with "</think>".',
	'Close it (</think>) and go on.',
	'In a template:\n```\nthoughts\n</think>\nanswer\n```\nThat is all.',
	'A block looks like this:\n<think>\nsome words\n</think>\nThat is all.',
	'nothing',
])('a tag that an answer only mentions splits nothing: %j', (text) => {
	for (const mayThink of ['no', 'maybe', 'yes'] as const) {
		expect(splitAtLoneClosing(text, mayThink)).toBeUndefined();
		expect(splitAll([text], mayThink)).toEqual({ content: text, reasoning: '' });
	}
});

test('a closing tag before the answer is removed, whatever is known', () => {
	for (const mayThink of ['no', 'maybe', 'yes'] as const) {
		expect(splitAtLoneClosing('</think>\nYes', mayThink)).toEqual({ reasoning: '', content: 'Yes' });
	}
});

test('what is held back is released once reasoning has come in a field of its own', () => {
	const splitter = new ThinkSplitter('yes');
	expect(splitter.push('a').content).toBe('');
	splitter.hasReasoning();
	expect([splitter.push('b').content, splitter.push('c').content]).toEqual(['ab', 'c']);
});

test('the cost of text that is held back is proportional to its length', () => {
	const before = process.cpuUsage();
	const pieces = Array.from({ length: 200_000 }, () => 'a <b>, ');
	expect(splitAll(pieces, 'yes').content).toHaveLength(1_400_000);
	expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});
