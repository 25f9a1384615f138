import fc from 'fast-check';

import {
	clashWith,
	mergeDeep,
	placeholdersOf,
	TEMPLATES,
} from '../../../../nodes/AgentInvoke/wire/templates';
import type { Json } from '../../../../nodes/shared/text/json';
import { hostileJson } from '../../FlowTask/hostileJson';

const fillWith = (template: Json, given: ReadonlyMap<string, Json>) =>
	TEMPLATES.fill(template, ({ name, words: [on, off] }) =>
		on === undefined ? given.get(name) : (given.get('stream') === true ? on : off) || undefined,
	);
const values = (given: Readonly<Record<string, Json>>) => new Map(Object.entries(given));
const fill = (template: Json, given: Readonly<Record<string, Json>> = {}) =>
	fillWith(template, values(given));

describe('filling', () => {
	test.each<[string, Json, Record<string, Json>, Json | undefined]>([
		[
			'a whole text gets the type of its value',
			{ a: '$result' },
			{ result: { b: [1, null] } },
			{ a: { b: [1, null] } },
		],
		['within a text, a value is text', { a: 'You: $message!' }, { message: 'hi' }, { a: 'You: hi!' }],
		['within a text, an object is JSON', { a: 'x $result' }, { result: { b: 1 } }, { a: 'x {"b":1}' }],
		['two placeholders in one text', '$name ($url)', { name: 'n', url: 'u' }, 'n (u)'],
		[
			'null, false, 0 and an empty text are values',
			['$a', '$b', '$c', '$d'],
			{ a: null, b: false, c: 0, d: '' },
			[null, false, 0, ''],
		],
		['an absent value removes its key', { a: '$session', b: 1 }, {}, { b: 1 }],
		['an absent value removes its list entry', ['a', '$session', 'b'], {}, ['a', 'b']],
		['an absent value removes the text around it', { a: 'thread/$session', b: 1 }, {}, { b: 1 }],
		[
			'an absent value removes objects and lists that become empty',
			{ a: { b: { c: '$session' } }, d: [['$session']], e: 1 },
			{},
			{ e: 1 },
		],
		['what was already empty is kept', { a: {}, b: [], c: '' }, {}, { a: {}, b: [], c: '' }],
		['an absent value may leave nothing', { a: '$session' }, {}, undefined],
		[
			'a dollar sign',
			['$$', 'a$$b', '$$message', '$$$message', '5$', '$5'],
			{ message: 'hi' },
			['$', 'a$b', '$message', '$hi', '5$', '$5'],
		],
		['a choice if there is a stream', { a: '$stream(sse, sync)' }, { stream: true }, { a: 'sse' }],
		['a choice if there is none', { a: 'm/$stream(sse, sync)' }, {}, { a: 'm/sync' }],
		['a choice of one word', { a: '$stream(yes,)', b: 1 }, {}, { b: 1 }],
		['a stream placeholder without a choice', { a: '$stream' }, { stream: true }, { a: true }],
		['keys are not placeholders', { $message: '$message' }, { message: 'hi' }, { $message: 'hi' }],
		[
			'an inserted value is not filled again',
			['$message', 'x$message'],
			{ message: '$session $$' },
			['$session $$', 'x$session $$'],
		],
		['other types are kept', [1, true, null], {}, [1, true, null]],
	])('%s', (_name, template, given, expected) => {
		expect(fill(template, given)).toEqual(expected);
	});

	test('names that every object inherits are treated like any others, in templates and in values', () => {
		const template = JSON.parse('{"__proto__":{"a":"$result"},"constructor":"$session"}') as Json;
		const result = JSON.parse('{"__proto__":{"polluted":1}}') as Json;
		const filled = fill(template, { result, session: 's' });
		expect(JSON.stringify(filled)).toBe('{"__proto__":{"a":{"__proto__":{"polluted":1}}},"constructor":"s"}');
		expect(Object.getPrototypeOf(filled)).toBe(Object.prototype);
		for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
			expect(fill({ a: `$${name}` })).toBeUndefined();
		}
	});

	const NAMES = ['message', 'session', 'files', 'result'] as const;
	const text = fc.oneof(
		fc.string(),
		fc.constantFrom(
			...NAMES.map((name) => `$${name}`),
			'$$',
			'$',
			'$stream(a,b)',
			'${process.exit()}',
			'={{ 1 }}',
		),
		fc.constantFrom('{{ $json.a }}', '`${1}`', '$message$session', 'x $result y', '$$message'),
	);
	const template = fc.letrec<{ node: Json }>((tie) => ({
		node: fc.oneof(
			{ maxDepth: 5 },
			text,
			fc.oneof(fc.integer(), fc.boolean(), fc.constant(null)),
			fc.array(tie('node'), { maxLength: 4 }),
			fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor')), tie('node'), {
				maxKeys: 4,
			}) as fc.Arbitrary<Json>,
		),
	})).node;

	test('replaces every placeholder, and leaves all else unchanged', () => {
		const mark = '\u0000here\u0000';
		fc.assert(
			fc.property(template, (given) => {
				const all = values(Object.fromEntries(NAMES.map((name) => [name, mark])));
				const filled = fillWith(given, all);
				const left = JSON.stringify(filled ?? null);
				const source = JSON.stringify(given);
				// A template without a dollar sign is unchanged.
				if (!source.includes('$')) expect(filled).toEqual(given);
				const wanted = [...placeholdersOf(given)].some((name) => name !== 'stream' && all.has(name));
				if (wanted && placeholdersOf(given).size === 1) expect(left).toContain('here');
				// No value is absent, so only literal dollar signs can remain.
				const again = [...placeholdersOf(filled ?? null)].filter((name) => all.has(name));
				if (!source.includes('$$')) expect(again).toEqual([]);
			}),
			{ numRuns: 2_000 },
		);
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

	test('changes nothing when it fills a constant template again', () => {
		fc.assert(
			fc.property(template, (given) => {
				const filled = fillWith(given, new Map());
				if (filled === undefined || JSON.stringify(given).includes('$')) return;
				expect(fillWith(filled, new Map())).toEqual(filled);
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
