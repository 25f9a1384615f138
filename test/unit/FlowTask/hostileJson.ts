import fc from 'fast-check';

import type { Json } from '../../../nodes/shared/text/json';

/** Names of prototype properties, halves of characters, and names that the readers look for. */
const KEYS = [
	...[
		'__proto__',
		'constructor',
		'toString',
		'hasOwnProperty',
		'',
		' ',
		'a.b',
		'a/b',
		'🦊',
		'\uD800',
		'\uDC00x',
	],
	...['3', '57:43', '538_531', '0', 'prompt', 'workflow', 'output', 'data', 'nodes', 'links', 'version'],
	...['class_type', 'inputs', '_meta', 'meta', 'title', 'spec', 'list', 'options', 'enum', 'min', 'max'],
	...['default', 'parameters', 'params', 'seed', 'text'],
];

/** Any JSON, most of it close to what the readers expect. Do not rely on the order of its entries. */
export function hostileJson(): fc.Arbitrary<Json> {
	return fc.letrec<{ value: Json }>((tie) => ({
		value: fc.oneof(
			{ depthSize: 'medium', withCrossShrink: true },
			leaf(),
			fc.array(tie('value'), { maxLength: 3 }),
			object(tie('value')),
			object(tie('value')),
			exportNode(tie('value')),
			fc.record({ spec: tie('value') }),
			fc.tuple(fc.string(), fc.integer()).map((link): Json => link),
			tie('value').map((value) => JSON.stringify(value)),
		),
	})).value;
}

/** A value that may be pasted or returned by an expression. */
export function hostileSource(): fc.Arbitrary<unknown> {
	return fc.oneof(
		hostileJson(),
		hostileJson().map((value) => JSON.stringify(value)),
		// The text is cut off.
		fc.tuple(hostileJson(), fc.nat(60)).map(([value, cut]) => JSON.stringify(value).slice(0, -1 - cut)),
		fc.string({ unit: 'binary' }),
	);
}

/** A JSON text that is nested deeper than `JSON.stringify` can follow. */
export function deeplyNested(kind: 'list' | 'object', depth = 20_000): string {
	return kind === 'list'
		? `${'['.repeat(depth)}${']'.repeat(depth)}`
		: `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
}

/** A name of a node or of a parameter. */
export function hostileName(): fc.Arbitrary<string> {
	return fc.oneof(fc.constantFrom(...KEYS), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));
}

function leaf(): fc.Arbitrary<Json> {
	return fc.oneof(
		fc.constantFrom<Json[]>(null, true, false, 0, -0, 2 ** 53, 1.8446744073709552e19, '{}', '{{ $json.a }}'),
		fc.double({ noNaN: true, noDefaultInfinity: true }),
		fc.string({ unit: 'binary' }),
		hostileName(),
	);
}

function object(value: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
	return fc
		.array(fc.tuple(hostileName(), value), { maxLength: 5 })
		.map((entries) => Object.fromEntries(entries));
}

function exportNode(value: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
	return fc.record(
		{ class_type: fc.oneof(fc.string(), value), inputs: object(value), _meta: value },
		{ requiredKeys: ['class_type'] },
	);
}
