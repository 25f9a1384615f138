import fc from 'fast-check';

import { compileExpression, valueAt } from '../../../../nodes/shared/form/expression';
import type { Json } from '../../../../nodes/shared/text/json';
import { JsonTemplates } from '../../../../nodes/shared/text/jsonTemplate';

const templates = new JsonTemplates({ hasPaths: true, choice: 'stream' });

const ITEM: Json = {
	text: 'Hello',
	count: 3,
	done: false,
	nothing: null,
	'order-id': 'A-1',
	'a.b': 'dotted',
	größe: 'L',
	list: [{ id: 7 }, 'two'],
};

function fill(template: Json): Json | undefined {
	return templates.fill(template, ({ name, path, words }) => {
		if (name === 'stream') return words[0] ?? true;
		if (name !== 'json') return undefined;
		if (path === '') return ITEM;
		const at = compileExpression(path);
		return at.ok ? valueAt(at.value, ITEM) : undefined;
	});
}

test.each<[template: Json, filled: Json | undefined]>([
	['$json', ITEM],
	['$json.text', 'Hello'],
	['$json.count', 3],
	['$json.done', false],
	['$json.nothing', undefined],
	['$json.list', [{ id: 7 }, 'two']],
	['$json.list[0].id', 7],
	['$json."a.b"', 'dotted'],
	['$json.größe', 'L'],
	['$json.order-id', 'A-1'],
	['$json.missing', undefined],
])('fills %j with a value of its own type', (template, filled) => {
	expect(fill(template)).toEqual(filled);
});

test.each<[template: string, filled: string | undefined]>([
	['Re: $json.text!', 'Re: Hello!'],
	['$json.text-$json.count', 'Hello-3'],
	['$json.text.', 'Hello.'],
	['$json.list, $json.done', '[{"id":7},"two"], false'],
	['$json.text and $json.missing', undefined],
	['$$json.text', '$json.text'],
	['$$$json.count', '$3'],
	['5 $ or $5', '5 $ or $5'],
	['$$', '$'],
	['', ''],
])('fills the text %j with text', (template, filled) => {
	expect(fill(template)).toBe(filled);
});

test('an absent value removes its key or list entry, and nothing else', () => {
	const template: Json = {
		a: '$json.missing',
		b: { c: 'with $json.missing', d: '$json.text' },
		e: ['$json.missing', '$json.list', 1, null],
		f: true,
	};
	expect(fill(template)).toEqual({ b: { d: 'Hello' }, e: [[{ id: 7 }, 'two'], 1, null], f: true });
});

test('a choice is filled with one of its words', () => {
	expect(fill({ mode: '$stream(streaming, blocking)', plain: '$stream' })).toEqual({
		mode: 'streaming',
		plain: true,
	});
	expect(templates.placeholdersIn(['$stream(streaming, blocking)'])).toEqual([
		{
			written: '$stream(streaming, blocking)',
			name: 'stream',
			path: '',
			words: ['streaming', 'blocking'],
		},
	]);
});

test('all placeholders are found, but not keys and double dollars', () => {
	const template: Json = { $key: ['$json.a[0]', { b: 'x $other.y and $$z' }], c: 1 };
	expect(templates.placeholdersIn(template).map(({ written }) => written)).toEqual([
		'$json.a[0]',
		'$other.y',
	]);
});

test('filled-in values are data: their placeholders and keys have no meaning', () => {
	const value: Json = JSON.parse('{"__proto__":{"x":1},"text":"$json.text $$"}');
	expect(
		JSON.stringify(
			templates.fill({ a: '$json', b: 'it is $json.text' }, ({ path }) => (path ? '$json' : value)),
		),
	).toBe('{"a":{"__proto__":{"x":1},"text":"$json.text $$"},"b":"it is $json"}');
	expect(JSON.stringify(templates.fill(JSON.parse('{"__proto__":"$json"}'), () => 1))).toBe(
		'{"__proto__":1}',
	);
});

test('JSON without dollars is unchanged', () => {
	fc.assert(
		fc.property(fc.jsonValue(), (value) => {
			const plain: Json = JSON.parse(JSON.stringify(value).replaceAll('$', 'S'));
			expect(templates.fill(plain, () => 'never')).toEqual(plain);
			expect(templates.placeholdersIn(plain)).toEqual([]);
		}),
	);
});

test('any text is preserved if its dollars are doubled', () => {
	fc.assert(
		fc.property(fc.string({ unit: fc.constantFrom('$', 'a', '.', '[', '(', ' ', '1') }), (text) => {
			expect(templates.fill(text.replaceAll('$', '$$$$'), () => undefined)).toBe(text);
		}),
	);
});

test('without paths, the rest after a name is text, and only the choice accepts words', () => {
	const plain = new JsonTemplates({ choice: 'stream' });
	const lookup = ({ name, words }: { name: string; words: readonly string[] }): Json => words[1] ?? name;
	expect(plain.fill(['$a.b', '$a[0]', '$a($b)', '$stream(x, y)', '$stream(x)'], lookup)).toEqual([
		...['a.b', 'a[0]', 'a(b)', 'y', 'stream(x)'],
	]);
});

test('emptied lists and objects are removed only if that is configured', () => {
	const template: Json = { a: { b: ['$none'] }, c: {}, d: [] };
	const kept = templates.fill(template, () => undefined);
	expect(kept).toEqual({ a: { b: [] }, c: {}, d: [] });
	const dropping = new JsonTemplates({ dropsEmptied: true });
	expect(dropping.fill(template, () => undefined)).toEqual({ c: {}, d: [] });
});
