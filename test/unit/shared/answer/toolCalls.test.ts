import fc from 'fast-check';

import type { Json } from '../../../../nodes/shared/text/json';
import { ToolCallJoiner } from '../../../../nodes/shared/answer/toolCalls';
import { deeplyNested, hostileJson } from '../../FlowTask/hostileJson';

function join(...deltas: Json[]) {
	const joiner = new ToolCallJoiner();
	for (const delta of deltas) joiner.add(delta);
	return joiner.calls();
}

interface Piece {
	index?: number | null;
	id?: string | null;
	name?: string | null;
	args?: Json;
}

function delta({ index, id, name, args }: Piece): Json {
	return [
		{
			...(index !== undefined && { index }),
			...(id !== undefined && { id }),
			type: 'function',
			function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) },
		},
	];
}

test.each([[''], [' \n'], ['{"city":"Oslo"}']])(
	'a call to be carried out has arguments and an ID: %j',
	(args) => {
		const joiner = new ToolCallJoiner();
		joiner.add(delta({ name: 'weather', args }));
		joiner.complete();
		expect(joiner.raw()).toEqual([
			{
				id: expect.stringMatching(/^call_[0-9a-f]{32}$/),
				type: 'function',
				function: { name: 'weather', arguments: args.trim() || '{}' },
			},
		]);
	},
);

const CALL = { id: 'c1', name: 'weather', arguments: { city: 'Oslo' } };
const SECOND = { id: 'c2', name: 'time', arguments: { zone: 'CET' } };
const OSLO = '{"city":"Oslo"}';

/** The piece that begins CALL. */
const begin = (args?: Json, over: Piece = {}): Piece => ({
	index: 0,
	id: 'c1',
	name: 'weather',
	args,
	...over,
});
/** The piece that begins SECOND. */
const second = (args?: Json, over: Piece = {}): Piece =>
	begin(args, { index: 1, id: 'c2', name: 'time', ...over });
const more = (args?: Json, over: Piece = {}): Piece => ({ index: 0, args, ...over });
const UNNUMBERED = { index: undefined };
const NO_ID = { id: undefined };
const BARE = { ...UNNUMBERED, ...NO_ID };

test.each<[string, Piece[], object[]]>([
	['by index', [begin(''), more('{"city":'), more('"Oslo"}')], [CALL]],
	['starting at index 1', [begin('{"city"', { index: 1 }), more(':"Oslo"}', { index: 1 })], [CALL]],
	['without an index', [begin('', UNNUMBERED), more('{"city":', BARE), more('"Oslo"}', BARE)], [CALL]],
	['a null index', [begin(undefined, { index: null }), more(OSLO, { index: null })], [CALL]],
	['an empty ID after the first piece', [begin('{"city":'), more('"Oslo"}', { id: '', name: '' })], [CALL]],
	[
		'a null ID after the first piece',
		[begin('{"city":', UNNUMBERED), more('"Oslo"}', { index: undefined, id: null, name: null })],
		[CALL],
	],
	[
		'the ID with every piece',
		[begin('{"city":', UNNUMBERED), more('"Oslo"}', { index: undefined, id: 'c1' })],
		[CALL],
	],
	['the name with every piece', [begin('{"city":'), begin('"Oslo"}'), begin('')], [CALL]],
	[
		'the name with every piece, without index and ID',
		[begin('{"city":', BARE), begin('"Oslo"}', BARE)],
		[{ ...CALL, id: '' }],
	],
	[
		'another ID with every piece',
		[begin(''), more('{"city":', { id: 'x1' }), more('"Oslo"}', { id: 'x2', name: null })],
		[CALL],
	],
	[
		'another ID after the first piece, for two calls',
		[
			...[begin('{"city":'), more('"Oslo"}', { id: 'x1' })],
			...[second('{"zone":'), more('"CET"}', { index: 1, id: 'x2', name: '' })],
		],
		[CALL, SECOND],
	],
	[
		'the name in pieces',
		[begin(undefined, { name: 'wea' }), more(undefined, { name: 'ther' }), more(OSLO)],
		[CALL],
	],
	['arguments as an object', [begin({ city: 'Oslo' })], [CALL]],
	['empty arguments before the real ones', [begin('{}'), more(OSLO)], [CALL]],
	['no arguments', [begin()], [{ ...CALL, arguments: {} }]],
	['arguments that are cut off', [begin('{"city":"Os')], [{ ...CALL, arguments: '{"city":"Os' }]],
	['an index only after the first piece', [begin(undefined, UNNUMBERED), more(OSLO)], [CALL]],
	[
		'two by index, alternating',
		[
			...[begin(), second(), more('{"city":'), more('{"zone":', { index: 1 })],
			...[more('"Oslo"}'), more('"CET"}', { index: 1 })],
		],
		[CALL, SECOND],
	],
	[
		'two by ID, alternating',
		[
			...[begin('{"city":', UNNUMBERED), second('{"zone":', UNNUMBERED)],
			...[more('"Oslo"}', { index: undefined, id: 'c1' }), more('"CET"}', { index: undefined, id: 'c2' })],
		],
		[CALL, SECOND],
	],
	[
		'two with the same index and different IDs',
		[begin(OSLO), second('{"zone":', { index: 0 }), more('"CET"}')],
		[CALL, SECOND],
	],
	[
		'two with the same index and no IDs',
		[begin(OSLO, NO_ID), second('{"zone":"CET"}', { index: 0, ...NO_ID })],
		[CALL, SECOND].map((call) => ({ ...call, id: '' })),
	],
	[
		'the same tool twice with the same index and no IDs',
		[begin(OSLO, NO_ID), begin('{"city":"Rome"}', NO_ID)],
		['Oslo', 'Rome'].map((city) => ({ ...CALL, id: '', arguments: { city } })),
	],
	[
		'the same tool twice with the same index, the first call cut off',
		[begin('{"city":'), begin(OSLO, { id: 'c2' })],
		[
			{ ...CALL, arguments: '{"city":' },
			{ ...CALL, id: 'c2' },
		],
	],
	[
		'the ID and the name with every piece, and more after a whole object',
		[begin(OSLO, UNNUMBERED), begin('}', UNNUMBERED)],
		[{ ...CALL, arguments: '{"city":"Oslo"}}' }],
	],
	[
		'the name with every piece, and a second, incomplete object',
		[begin(OSLO), more('{"city":'), begin('1', NO_ID)],
		[{ ...CALL, arguments: '{"city":"Oslo"}{"city":1' }],
	],
	[
		'the name with every piece, and empty arguments before the real ones',
		[begin('{}'), begin(OSLO, NO_ID)],
		[CALL],
	],
	[
		'two with the same ID and no index',
		[begin(OSLO, UNNUMBERED), second('{"zone":"CET"}', { ...UNNUMBERED, id: 'c1' })],
		[CALL, { ...SECOND, id: 'c1' }],
	],
	[
		'two with the same ID, in pieces',
		[
			begin('', UNNUMBERED),
			more('{"city":', BARE),
			more('"Oslo"}', BARE),
			second('{"zone":"CET"}', { ...UNNUMBERED, id: 'c1' }),
		],
		[CALL, { ...SECOND, id: 'c1' }],
	],
	['the arguments once more, whole', [begin('{"city":'), more('"Oslo"}'), more(OSLO)], [CALL]],
	['the call once more, whole', [begin('{"city":'), more('"Oslo"}'), begin(OSLO)], [CALL]],
	['the call once more, without an index', [begin(OSLO, UNNUMBERED), begin(OSLO, UNNUMBERED)], [CALL]],
	['growing arguments', [begin('{"ci'), more('{"city":"O'), more(OSLO), more(OSLO)], [CALL]],
	[
		'growing arguments, with everything in each piece',
		[begin('{"ci'), begin('{"city":"O'), begin(OSLO)],
		[CALL],
	],
	[
		'two without index and ID',
		[begin(OSLO, BARE), second('{"zone":"CET"}', BARE)],
		[CALL, SECOND].map((call) => ({ ...call, id: '' })),
	],
])('joins tool calls: %s', (_name, pieces, expected) => {
	expect(join(...pieces.map(delta))).toEqual(expected);
});

test('keeps a numeric ID, so that the call can be answered', () => {
	const call = {
		index: 0,
		id: 7,
		type: 'function',
		function: { name: 'weather', arguments: '{"city":"Oslo"}' },
	};
	expect(join([call])).toEqual([{ ...CALL, id: '7' }]);
	const pieces: Json[] = [
		{ index: 0, id: 'c1', function: { name: 'weather', arguments: '{"city":' } },
		{ index: 0, id: 0, function: { arguments: '"Oslo"}' } },
	];
	expect(join(...pieces.map((piece) => [piece]))).toEqual([CALL]);
});

test('reads several calls in one delta, and one that is not in a list', () => {
	expect(
		join([
			...(delta({ index: 0, ...one(CALL) }) as Json[]),
			...(delta({ index: 1, ...one(SECOND) }) as Json[]),
		]),
	).toEqual([CALL, SECOND]);
	expect(join((delta(one(CALL)) as Json[])[0] ?? null)).toEqual([CALL]);
});

test('two calls of one list are two, even if they are alike and have no index', () => {
	const listed = (...calls: Piece[]): Json => calls.flatMap((call) => delta(call) as Json[]);
	expect(join(listed(begin(OSLO, UNNUMBERED), begin(OSLO, UNNUMBERED)))).toEqual([CALL, CALL]);
	const bare = join(
		listed(begin(undefined, { ...BARE, name: 'bash' }), begin(undefined, { ...BARE, name: 'get_time' })),
	);
	expect(bare.map(({ name }) => name)).toEqual(['bash', 'get_time']);
});

test('completed calls have IDs of their own in the answer and in the conversation', () => {
	const joiner = new ToolCallJoiner(new Set(['c2']));
	joiner.add([...(delta(begin(OSLO)) as Json[]), ...(delta(second('{}', { id: 'c1' })) as Json[])]);
	joiner.add(delta({ index: 2, id: 'c2', name: 'x' }));
	expect(joiner.complete()).toBe(true);
	const ids = joiner.calls().map(({ id }) => id);
	const own = expect.stringMatching(/^call_[0-9a-f]{32}$/) as string;
	expect(ids).toEqual(['c1', own, own]);
	expect(new Set(ids).size).toBe(3);
});

test('arguments that are JSON within JSON text are decoded, and other text is kept', () => {
	for (const [args, expected] of [
		[JSON.stringify(OSLO), { city: 'Oslo' }],
		['"words"', 'words'],
		['"5"', '5'],
	] as const) {
		const joiner = new ToolCallJoiner();
		joiner.add(delta(begin(args)));
		joiner.complete();
		expect(joiner.calls()[0]?.arguments).toEqual(expected);
	}
});

function one({ id, name, arguments: args }: typeof CALL | typeof SECOND): Piece {
	return { id, name, args: JSON.stringify(args) };
}

test('keeps arguments that n8n could not serialize as text', () => {
	const args = deeplyNested('object');
	expect(join(delta({ id: 'c1', name: 'weather', args }))).toEqual([{ ...CALL, arguments: args }]);
});

test('hostile deltas never cause an exception', () => {
	const hostileDelta = fc.oneof(
		hostileJson(),
		fc.array(
			fc.record(
				{
					index: hostileJson(),
					id: hostileJson(),
					name: hostileJson(),
					function: fc.oneof(hostileJson(), fc.record({ name: hostileJson(), arguments: hostileJson() })),
				},
				{ requiredKeys: [] },
			),
			{ maxLength: 3 },
		),
	);
	fc.assert(
		fc.property(fc.array(hostileDelta, { maxLength: 4 }), (deltas) => {
			expect(Array.isArray(join(...(deltas as Json[])))).toBe(true);
		}),
		{ numRuns: 500 },
	);
});

test('finds the call of a piece without searching the others', () => {
	const joiner = new ToolCallJoiner();
	for (let index = 0; index < 1_000; index++) joiner.add(delta({ index, id: `c${index}`, name: 'weather' }));
	const walks = [
		jest.spyOn(Array.prototype, 'find'),
		jest.spyOn(Array.prototype, 'findLast'),
		jest.spyOn(Array.prototype, 'findIndex'),
	];
	joiner.add(delta({ index: 0, args: '{}' }));
	joiner.add(delta({ id: 'c0', args: '' }));
	const called = walks.flatMap((walk) => walk.mock.calls);
	jest.restoreAllMocks();
	expect(called).toEqual([]);
	expect(joiner.calls()).toHaveLength(1_000);
});
