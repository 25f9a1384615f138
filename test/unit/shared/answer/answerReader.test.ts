import { AnswerBuilder } from '../../../../nodes/shared/answer/answerBuilder';
import { AnswerReader } from '../../../../nodes/shared/answer/answerReader';
import type { JsonObject } from '../../../../nodes/shared/text/json';

function read(...chunks: JsonObject[]) {
	const reader = new AnswerReader([]);
	for (const chunk of chunks) reader.take({ data: JSON.stringify(chunk), isWholeBody: false });
	return reader;
}

const PIECE = { choices: [{ delta: { content: 'x' } }] };

test.each<[string, (index: number) => JsonObject]>([
	['new fields', (index) => ({ [`x${index}`]: 'y'.repeat(1_000_000) })],
	[
		'longer lists',
		(index) => ({ choices: [{ delta: {}, logprobs: { content: [index, ...Array(80_000).fill({})] } }] }),
	],
	['longer texts', (index) => ({ choices: [{ delta: { audio: `${index}`.repeat(1_000_000) } }] })],
])('an answer breaks off before %s that no one reads fill the memory', (_what, more) => {
	const chunks = Array.from({ length: 80 }, (_, index) => more(index));
	expect(() => read(PIECE, ...chunks)).toThrow('it contains more than 33554432 characters');
});

test('an answer of 12,000 tokens is read with the probabilities of 20 alternatives to each', () => {
	const choice = (at: number) => ({ token: ` tok${at}`, logprob: -1.23456 - at, bytes: [32, 116, 111, 107] });
	const top_logprobs = Array.from({ length: 20 }, (_, at) => choice(at));
	const content = Array.from({ length: 3_000 }, (_, at) => ({ ...choice(at), top_logprobs }));
	const chunks = Array.from({ length: 4 }, (_, at) => ({
		choices: [{ delta: { content: 'x' }, logprobs: { content: [at, ...content] } }],
	}));
	expect(read(...chunks).builder.extraSize).toBeGreaterThan(16_000_000);
});

test('fields that every chunk repeats count once', () => {
	const { builder } = read(...Array<JsonObject>(1_000).fill({ ...PIECE, service_tier: 'default', x_a: [] }));
	expect(builder.size).toBe(1_000);
	expect(builder.extraSize).toBeLessThan(100);
});

test('a finish reason is judged once, however many chunks follow', () => {
	const reason = 'x'.repeat(1_000);
	const search = jest.spyOn(RegExp.prototype, 'test');
	read({ choices: [{ delta: {}, finish_reason: reason }] }, ...Array<JsonObject>(5).fill(PIECE));
	expect(search.mock.calls.filter(([text]) => text === reason)).toHaveLength(1);
	search.mockRestore();
});

test('a name that is too long to be repeated with each piece is left out', () => {
	const { builder } = read({ ...PIECE, id: 'x'.repeat(1_001), model: 'm', created: 5 });
	expect(builder.names).toEqual({ model: 'm', created: 5 });
});

test('text that is held back until the end does not follow the last finish reason', () => {
	const terms = { isOnly: true, mayThink: 'yes', callIds: new Set<string>() } as const;
	const reader = new AnswerReader([], new AnswerBuilder(terms));
	for (const content of ['hm.', '</think>Hello']) {
		const data = JSON.stringify({ choices: [{ delta: { content }, finish_reason: 'stop' }] });
		reader.take({ data, isWholeBody: false });
	}
	reader.builder.end();
	expect(reader.isComplete).toBe(true);
	expect(reader.builder.answer()).toMatchObject({ content: 'Hello', reasoning: 'hm.' });
});

test('token counts beside an error are billed', () => {
	const error = { message: 'worker died', code: 500 };
	expect(read({ error, usage: { completion_tokens: 5 } }).hasBegun).toBe(true);
	expect(read({ error, usage: { completion_tokens: 0 } }).hasBegun).toBe(false);
});

test.each([
	['what a text refers to', { type: 'reference', reference_ids: [0] }],
	['a tool call', { type: 'tool_use', id: 'c1', name: 'now', input: {} }],
])('%s, as a part alone, is no text', (_what, part) => {
	const { builder } = read(PIECE, { choices: [{ delta: { content: [part] } }] }, PIECE);
	expect(builder.answer().content).toBe('xx');
});

test.each(['profile', 'context', 'preference'])('requested JSON of the type %s is no part', (type) => {
	const { builder } = read({ choices: [{ message: { content: { type, value: 5 } } }] });
	expect(builder.answer().content).toBe(JSON.stringify({ type, value: 5 }));
});
