import fc from 'fast-check';

import { TEMPLATES } from '../../../../nodes/AgentInvoke/wire/description';
import { clashWith, mergeDeep } from '../../../../nodes/AgentInvoke/wire/request';
import type { Json } from '../../../../nodes/shared/text/json';
import { hostileJson } from '../../FlowTask/hostileJson';

const fill = (template: Json, given: Readonly<Record<string, Json>> = {}) =>
	TEMPLATES.fill(template, ({ name, words: [on, off] }) =>
		on === undefined ? given[name] : (given.stream === true ? on : off) || undefined,
	);

describe('filling', () => {
	// How placeholders become values is tested in test/unit/shared/text/jsonTemplate.test.ts.
	test.each<[string, Json, Record<string, Json>, Json | undefined]>([
		[
			'an absent value removes objects and lists that become empty',
			{ a: { b: { c: '$session' } }, d: [['$session']], e: 1 },
			{},
			{ e: 1 },
		],
		['what was already empty is kept', { a: {}, b: [], c: '' }, {}, { a: {}, b: [], c: '' }],
		['an absent value may leave nothing', { a: '$session' }, {}, undefined],
		['a choice if there is a stream', { a: '$stream(sse, sync)' }, { stream: true }, { a: 'sse' }],
		['a choice if there is none', { a: 'm/$stream(sse, sync)' }, {}, { a: 'm/sync' }],
		['a choice of one word', { a: '$stream(yes,)', b: 1 }, {}, { b: 1 }],
	])('%s', (_name, template, given, expected) => {
		expect(fill(template, given)).toEqual(expected);
	});

	test('inserts values of any kind unchanged and evaluates nothing', () => {
		fc.assert(
			fc.property(hostileJson(), fc.string(), (value, more) => {
				const filled = fill(
					{ a: '$result', b: [{ c: '$result' }], d: more.replaceAll('$', '$$$$') },
					{ result: value },
				);
				expect(filled).toEqual({ a: value, b: [{ c: value }], d: more });
			}),
			{ numRuns: 1_000 },
		);
	});

	test('fills thousands of dollar signs and texts of a million characters', () => {
		const long = `${'$$'.repeat(200_000)}$message${'$'.repeat(200_001)}`;
		expect(JSON.stringify(fill(long, { message: 'm' }))).toContain('$m$');
		expect(fill(`$stream(${'a'.repeat(500_000)}`)).toBeUndefined();
	});
});

describe('merging', () => {
	test('adds fields at any depth and replaces anything that is not an object', () => {
		expect(mergeDeep({ a: { b: 1, c: [1] } }, { a: { c: [2], d: 3 }, e: 4 })).toEqual({
			...{ a: { b: 1, c: [2], d: 3 }, e: 4 },
		});
	});

	test.each<[string, Json, Json, string | undefined]>([
		['beside a placeholder', { a: { b: '$message' } }, { a: { c: 1 } }, undefined],
		['a constant', { a: { b: '$message', c: 1 } }, { a: { c: 2 } }, undefined],
		['the place of a placeholder', { a: { b: '$message' } }, { a: { b: 1 } }, 'a.b'],
		['inside a placeholder', { a: '$result' }, { a: { b: 1 } }, 'a'],
		['an object around a placeholder', { a: { b: '$message' } }, { a: 1 }, 'a'],
		['a list with a placeholder', { a: ['$message'] }, { a: [1] }, 'a'],
		['a list without a placeholder', { a: [1], b: '$message' }, { a: [2] }, undefined],
	])('clashes only with placeholders: %s', (_name, template, more, clash) => {
		expect(clashWith(template, more)).toBe(clash);
	});

	test('never pollutes prototypes', () => {
		const more = JSON.parse(
			'{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
		) as Json;
		const merged = mergeDeep({ a: 1 }, more);
		expect(JSON.stringify(merged)).toContain('"__proto__":{"polluted":1}');
		expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
	});
});
