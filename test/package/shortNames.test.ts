import { build, type Plugin } from 'esbuild';

import { packageRoot } from './packageFiles';

type Search = (data: unknown, expression: string) => unknown;
type Validate = (value: unknown, schema: object) => ReadonlyArray<{ property: string; message: string }>;

interface Libraries {
	readonly search: Search;
	readonly validate: Validate;
}

const SOURCE = `
	import { search } from 'jmespath';
	import { Validator } from 'jsonschema';
	export { search };
	export const validate = (value, schema) =>
		new Validator().validate(value, schema, { nestedErrors: true, base: 'https://x.example/' }).errors
			.map(({ property, message }) => ({ property, message }));
`;

async function load(plugins: Plugin[]): Promise<Libraries> {
	const { outputFiles } = await build({
		stdin: { contents: SOURCE, resolveDir: packageRoot },
		...{ bundle: true, write: false, minify: true, format: 'cjs', platform: 'node', plugins },
	});
	const loaded = { exports: {} };
	// eslint-disable-next-line @typescript-eslint/no-implied-eval -- the bundle that was just made
	new Function('module', 'exports', 'require', outputFiles[0]!.text)(loaded, loaded.exports, require);
	return loaded.exports as Libraries;
}

const EXPRESSIONS = [
	...[
		'a',
		'a.b',
		'a[0]',
		'a[-1]',
		'a[1:3]',
		'a[::-1]',
		'a[*].b',
		'*.b',
		'a[]',
		'a[?b>`1`].c',
		"a[?b=='x']",
		'@',
	],
	...[
		'{x:a,y:b}',
		'[a,b]',
		'a||b',
		'a&&b',
		'!a',
		'a|b',
		"join(',',a)",
		'sort(a)',
		'sort_by(a,&b)',
		'map(&b,a)',
	],
	...[
		'max_by(a,&b)',
		'min_by(a,&b)',
		'not_null(a,b)',
		"contains(a,'x')",
		'keys(@)',
		'values(@)',
		'to_string(a)',
	],
	...[
		'to_number(a)',
		'to_array(a)',
		'type(a)',
		'merge(@,@)',
		'reverse(a)',
		'sum(a)',
		'avg(a)',
		'abs(a)',
		'ceil(a)',
	],
	...[
		'floor(a)',
		"starts_with(a,'x')",
		"ends_with(a,'x')",
		'min(a)',
		'max(a)',
		'length(a)',
		'a."b c"',
		"'raw'",
	],
	...['`{"x":1}`', 'a[', 'foo(', 'foo(a)', 'a == b', 'a != b', 'a >= b', 'a < b'],
];
const DATA = [
	...[{ a: [1, 2, 3], b: 2 }, { a: { b: { 'b c': 1 } } }, { a: ['x', 'y'], b: null }, { a: 'x1', b: 'x' }],
	{
		a: [
			{ b: 1, c: 'x' },
			{ b: 2, c: 'y' },
		],
	},
	...[{ a: -1.5 }, {}, [], [{ a: 1 }], null, 's', 3],
];
const SCHEMAS: readonly object[] = [
	...[{ type: 'string' }, { type: ['string', 'null'] }, { enum: [1, 'a'] }, { const: 3 }, { type: 'bogus' }],
	...[
		{ minimum: 2, maximum: 4, multipleOf: 0.5 },
		{ exclusiveMinimum: 2, exclusiveMaximum: 4 },
	],
	...[{ minLength: 2, maxLength: 3, pattern: '^a' }, { contains: { type: 'string' } }],
	{ items: { type: 'integer' }, minItems: 2, maxItems: 3, uniqueItems: true },
	{ items: [{ type: 'string' }], additionalItems: false },
	{
		properties: { a: { type: 'string' }, b: { $ref: '#/definitions/x' } },
		...{ required: ['a'], additionalProperties: false, minProperties: 1, maxProperties: 2 },
		definitions: { x: { type: 'integer' } },
	},
	{ patternProperties: { '^x': { type: 'number' } }, propertyNames: { maxLength: 2 } },
	...[{ additionalProperties: { type: 'number' } }, { dependencies: { a: ['b'], c: { required: ['d'] } } }],
	...[{ allOf: [{ type: 'string' }, { minLength: 3 }] }, { anyOf: [{ type: 'string' }, { type: 'number' }] }],
	...[{ oneOf: [{ type: 'number' }, { minimum: 0 }] }, { not: { type: 'string' } }],
	{ if: { type: 'string' }, then: { minLength: 2 }, else: { minimum: 3 } },
	...['email', 'date-time', 'uri', 'ipv4'].map((format) => ({ format })),
];
const VALUES = [
	...['a', 'ab', 'abc', 1, 2, 2.25, 3, 4, null, true, [], [1, 2], [1, 1], ['a'], ['a', 'b'], {}, { a: 1 }],
	...[{ a: 'x' }, { a: 'x', b: 1 }, { a: 'x', b: 'y' }, { x: 1 }, { xyz: 's' }, { c: 1 }, { a: 'x', q: {} }],
	...['me@x.de', '2020-01-01T00:00:00Z', 'https://x.y/z', '1.2.3.4'],
];

function told(work: () => unknown): string {
	try {
		return JSON.stringify(work());
	} catch (error) {
		return error instanceof Error ? error.message : 'failed';
	}
}

it('changes nothing of what the libraries do', async () => {
	const { shortNames } = jest.requireActual<{ shortNames: Plugin }>('../../scripts/shortNames.js');
	const [plain, short] = await Promise.all([load([]), load([shortNames])]);
	const all = ({ search, validate }: Libraries): string[] => [
		...EXPRESSIONS.flatMap((expression) =>
			DATA.map((data) => `${expression}: ${told(() => search(data, expression))}`),
		),
		...SCHEMAS.flatMap((schema) =>
			VALUES.map((value) => `${JSON.stringify(schema)}: ${told(() => validate(value, schema))}`),
		),
	];
	expect(all(short)).toEqual(all(plain));
});
