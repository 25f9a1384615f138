import fc from 'fast-check';

import { readWish, reasoningFields, reasoningModel } from '../../../../nodes/shared/chat/reasoning';

test.each([
	['Vendor/Alpha-V3.2', '<family_a>-v3.2'],
	['org/deep/alpha-v3.2-exp', '<family_a>-v3.2-exp'],
	['alpha-v3.2-thinking', '<family_a>-v3.2-thinking'],
	['ALPHA-V3.1-TERMINUS', '<family_a>-v3.1-terminus'],
	['Beta3-235B-A22B-2507', '<family_b>-235b-a22b'],
	['beta3-14b', '<family_b>-14b'],
	['gamma-4.5-air', '<family_c>-4.5-air'],
	['gamma-4.6v', '<family_c>-4.6v'],
	['delta-k2.5', '<family_d>-k2.5'],
	['delta-k2:free', '<family_d>-k2'],
	['delta-k2-0905', '<family_d>-k2'],
	['epsilon-m2.1', '<family_e>-m2.1'],
	[' epsilon-m2 ', '<family_e>-m2'],
	['<family_a>-v3.2', '<family_a>-v3.2'],
	['other-3.1-8b', undefined],
	['vendor/some-other-4.5', undefined],
	['some-other-32b', undefined],
	['family-c-4.5', '<family_c>-4.5'],
	['family-a-v3.2', '<family_a>-v3.2'],
	['beta3-235b-a22b-instruct-2507', undefined],
	['delta-k2-thinking', undefined],
	['-v3.2', undefined],
	['v3.2', undefined],
	['', undefined],
])('finds for the ID %j the model %j', (id, row) => {
	expect(reasoningModel(id)?.model).toBe(row);
});

test('accepts any text as an ID, however long', () => {
	for (const part of ['a-', '/', '-a', 'a/a-', '<', ':', '@', '-0'])
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
		failure: { message: '"Reasoning" must be default, on or off' },
	});
});

test('a chosen control takes precedence over the table', () => {
	const wish = { model: 'beta3-14b', choice: 'off', control: 'enable_thinking', split: false } as const;
	expect(reasoningFields(wish)).toEqual({ ok: true, value: { enable_thinking: false } });
	expect(reasoningFields({ ...wish, control: 'auto' })).toMatchObject({ ok: false });
});
