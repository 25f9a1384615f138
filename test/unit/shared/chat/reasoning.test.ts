import fc from 'fast-check';

import { answerTerms } from '../../../../nodes/shared/chat/answerTerms';
import type { Json, JsonObject } from '../../../../nodes/shared/text/json';
import { readWish, reasoningFields, reasoningModel } from '../../../../nodes/shared/chat/reasoning';

test.each([
	['Vendor/Family_A-V3.2', '<family_a>-v3.2'],
	['org/deep/family_a-v3.2-exp', '<family_a>-v3.2-exp'],
	['family_a-v3.2-thinking', '<family_a>-v3.2-thinking'],
	['FAMILY_A-V3.1-TERMINUS', '<family_a>-v3.1-terminus'],
	['Family_B-235B-A22B-2507', '<family_b>-235b-a22b'],
	['family_b-14b', '<family_b>-14b'],
	['family_c-4.5-air', '<family_c>-4.5-air'],
	['family_c-4.6v', '<family_c>-4.6v'],
	['family_d-k2.5', '<family_d>-k2.5'],
	['family_d-k2:free', '<family_d>-k2'],
	['family_d-k2-0905', '<family_d>-k2'],
	['family_e-m2.1', '<family_e>-m2.1'],
	[' family_e-m2 ', '<family_e>-m2'],
	['<family_a>-v3.2', '<family_a>-v3.2'],
	['family-c-4.5', '<family_c>-4.5'],
	['family-a-v3.2', '<family_a>-v3.2'],
	['family_a-4.5', undefined],
	['family_f-v3.2', undefined],
	['my-family_a-v3.2', undefined],
	['other-3.1-8b', undefined],
	['vendor/some-other-4.5', undefined],
	['some-other-32b', undefined],
	['gpt-4.5', undefined],
	['llama3-8b', undefined],
	['qwen2.5-32b', undefined],
	['yi-14b', undefined],
	['x-m2', undefined],
	['model-v3.1', undefined],
	['family_b-235b-a22b-instruct-2507', undefined],
	['family_d-k2-thinking', undefined],
	['-v3.2', undefined],
	['v3.2', undefined],
	['', undefined],
])('finds for the ID %j the model %j', (id, row) => {
	expect(reasoningModel(id)?.model).toBe(row);
});

test('accepts any text as an ID, however long', () => {
	for (const part of ['a-', '/', '-a', 'a/a-', '<', ':', '@', '-0', 'family_a-'])
		reasoningModel(`${part.repeat(5_000)}v3.2!`);
	fc.assert(
		fc.property(fc.string({ unit: 'binary' }), (id) => {
			reasoningModel(id);
		}),
	);
});

test.each([
	[
		{ model: { value: ' x ', mode: 'id' }, reasoning: 'on', reasoningControl: 'thinking' },
		{ model: 'x', choice: 'on', control: 'thinking' },
	],
	[{ model: null }, { model: '', choice: 'default', control: 'auto' }],
	[{ model: { value: 5 } }, { model: '', choice: 'default', control: 'auto' }],
])('reads the reasoning settings from %j', (fields: Record<string, unknown>, wish) => {
	expect(readWish((name, fallback) => fields[name] ?? fallback, true)).toEqual({
		ok: true,
		value: { ...wish, split: true },
	});
});

test('refuses an unknown choice, because the reasoning would be billed', () => {
	expect(readWish((name) => (name === 'reasoning' ? 'maybe' : ''), false)).toMatchObject({
		ok: false,
		failure: { message: "'Reasoning' must be default, on or off" },
	});
});

test('a chosen control takes precedence over the table', () => {
	const wish = { model: 'family_b-14b', choice: 'off', control: 'enable_thinking', split: false } as const;
	expect(reasoningFields(wish)).toEqual({ ok: true, value: { enable_thinking: false } });
	expect(reasoningFields({ ...wish, control: 'auto' })).toMatchObject({ ok: false });
});

test.each([
	[{ model: 'family_b-8b' }, 'no'],
	[{ model: 'family_b-8b', enable_thinking: true }, 'yes'],
	[{ model: 'family_c-4.6' }, 'yes'],
	[{ model: 'family_c-4.6', enable_thinking: false }, 'no'],
	[{ model: 'family_d-k2' }, 'maybe'],
	[{ model: 'family_d-k2', thinking: { type: 'enabled' } }, 'yes'],
	[{ model: 'another', thinking: { type: 'disabled' } }, 'no'],
	[{ model: 'another' }, 'maybe'],
	[{ model: 'another', enable_thinking: 'no', thinking: 5 }, 'maybe'],
	[{}, 'maybe'],
])('the answer to %j may begin with reasoning: %s', (body, expected) => {
	expect(answerTerms(body as JsonObject).mayThink).toBe(expected);
});

test('the IDs of the tool calls in a question are known', () => {
	const messages: Json[] = [
		{ role: 'assistant', tool_calls: [{ id: 'a' }, { id: 7 }, null] },
		5,
		{ role: 'user', tool_calls: 'x' },
	];
	expect([...answerTerms({ messages, n: 2 }).callIds]).toEqual(['a', '7']);
	expect(answerTerms({ messages, n: 2 }).isOnly).toBe(false);
});
