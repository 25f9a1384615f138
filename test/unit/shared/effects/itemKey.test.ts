import { readKey } from '../../../../nodes/shared/effects/itemKey';
import { failureOf, valueOf } from '../../results';

const keyOf = (value: unknown, entered?: string): string => valueOf(readKey('Session Key', value, entered));

describe('a key that different persons would share', () => {
	test.each([
		'undefined',
		'null',
		'NaN',
		'[object Object]',
		'customer-[object Object]',
		'undefined-7',
		'shop:null',
		'a_NaN',
		'(undefined)',
		'[null,7]',
		'Invalid DateTime',
		['shop', null],
		{ shop: 1, customer: null },
	])('is refused: %j', (value) => {
		const { message, advice } = failureOf(readKey('Session Key', value));
		expect(message).toMatch(/^'Session Key' is ".+" for this item: ".+" stands where a value should be$/);
		expect(advice).toContain('would share this key');
	});

	test.each([
		[[null]],
		[[undefined, '']],
		[{ a: null }],
		[{ a: [{}] }],
		[{}],
		[[]],
		[null],
		[undefined],
		[NaN],
	])('counts as none if it holds no value: %j', (value) => expect(keyOf(value)).toBe(''));

	test.each([
		['customer-', '=customer-{{ $json.id }}'],
		[' customer: ', '= customer: {{ $json.id }}'],
		['-', '={{ $json.a }}-{{ $json.b }}'],
	])('counts as none if only the fixed part of its field is left: %j', (value, entered) => {
		expect(keyOf(value, entered)).toBe('');
	});
});

test.each(['Nullmeier', 'null@example.com', 'nan-jing', 'Annul', { shop: 1, customer: 0 }])(
	'%j is a key',
	(value) => {
		expect(keyOf(value)).toBe(typeof value === 'string' ? value : JSON.stringify(value));
	},
);

test.each([
	['customer-', 'customer-'],
	['all', '=all'],
	['all', "={{ 'all' }}"],
	['customer-7', '=customer-{{ $json.id }}'],
])('%j is a key if the field is %j', (value, entered) => expect(keyOf(value, entered)).toBe(value));
