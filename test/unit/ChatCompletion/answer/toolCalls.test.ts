import fc from 'fast-check';

import type { Json } from '../../../../nodes/shared/text/json';
import { ToolCallJoiner } from '../../../../nodes/ChatCompletion/answer/toolCalls';
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

const CALL = { id: 'c1', name: 'weather', arguments: { city: 'Oslo' } };
const SECOND = { id: 'c2', name: 'time', arguments: { zone: 'CET' } };

test.each<[string, Piece[], object[]]>([
	[
		'by index',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '' },
			{ index: 0, args: '{"city":' },
			{ index: 0, args: '"Oslo"}' },
		],
		[CALL],
	],
	[
		'starting at index 1',
		[
			{ index: 1, id: 'c1', name: 'weather', args: '{"city"' },
			{ index: 1, args: ':"Oslo"}' },
		],
		[CALL],
	],
	[
		'without an index',
		[{ id: 'c1', name: 'weather', args: '' }, { args: '{"city":' }, { args: '"Oslo"}' }],
		[CALL],
	],
	[
		'a null index',
		[
			{ index: null, id: 'c1', name: 'weather' },
			{ index: null, args: '{"city":"Oslo"}' },
		],
		[CALL],
	],
	[
		'an empty ID after the first piece',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{"city":' },
			{ index: 0, id: '', name: '', args: '"Oslo"}' },
		],
		[CALL],
	],
	[
		'a null ID after the first piece',
		[
			{ id: 'c1', name: 'weather', args: '{"city":' },
			{ id: null, name: null, args: '"Oslo"}' },
		],
		[CALL],
	],
	[
		'the ID with every piece',
		[
			{ id: 'c1', name: 'weather', args: '{"city":' },
			{ id: 'c1', args: '"Oslo"}' },
		],
		[CALL],
	],
	[
		'the name with every piece',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{"city":' },
			{ index: 0, id: 'c1', name: 'weather', args: '"Oslo"}' },
			{ index: 0, id: 'c1', name: 'weather', args: '' },
		],
		[CALL],
	],
	[
		'the name with every piece, without index and ID',
		[
			{ name: 'weather', args: '{"city":' },
			{ name: 'weather', args: '"Oslo"}' },
		],
		[{ ...CALL, id: '' }],
	],
	[
		'the name in pieces',
		[
			{ index: 0, id: 'c1', name: 'wea' },
			{ index: 0, name: 'ther' },
			{ index: 0, args: '{"city":"Oslo"}' },
		],
		[CALL],
	],
	['arguments as an object', [{ index: 0, id: 'c1', name: 'weather', args: { city: 'Oslo' } }], [CALL]],
	[
		'empty arguments before the real ones',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{}' },
			{ index: 0, args: '{"city":"Oslo"}' },
		],
		[CALL],
	],
	['no arguments', [{ index: 0, id: 'c1', name: 'weather' }], [{ ...CALL, arguments: {} }]],
	[
		'arguments that are cut off',
		[{ index: 0, id: 'c1', name: 'weather', args: '{"city":"Os' }],
		[{ ...CALL, arguments: '{"city":"Os' }],
	],
	[
		'an index only after the first piece',
		[
			{ id: 'c1', name: 'weather' },
			{ index: 0, args: '{"city":"Oslo"}' },
		],
		[CALL],
	],
	[
		'two by index, alternating',
		[
			{ index: 0, id: 'c1', name: 'weather' },
			{ index: 1, id: 'c2', name: 'time' },
			{ index: 0, args: '{"city":' },
			{ index: 1, args: '{"zone":' },
			{ index: 0, args: '"Oslo"}' },
			{ index: 1, args: '"CET"}' },
		],
		[CALL, SECOND],
	],
	[
		'two by ID, alternating',
		[
			{ id: 'c1', name: 'weather', args: '{"city":' },
			{ id: 'c2', name: 'time', args: '{"zone":' },
			{ id: 'c1', args: '"Oslo"}' },
			{ id: 'c2', args: '"CET"}' },
		],
		[CALL, SECOND],
	],
	[
		'two with the same index and different IDs',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{"city":"Oslo"}' },
			{ index: 0, id: 'c2', name: 'time', args: '{"zone":' },
			{ index: 0, args: '"CET"}' },
		],
		[CALL, SECOND],
	],
	[
		'two with the same index and no IDs',
		[
			{ index: 0, name: 'weather', args: '{"city":"Oslo"}' },
			{ index: 0, name: 'time', args: '{"zone":"CET"}' },
		],
		[
			{ ...CALL, id: '' },
			{ ...SECOND, id: '' },
		],
	],
	[
		'the same tool twice with the same index and no IDs',
		[
			{ index: 0, name: 'weather', args: '{"city":"Oslo"}' },
			{ index: 0, name: 'weather', args: '{"city":"Rome"}' },
		],
		[
			{ ...CALL, id: '' },
			{ ...CALL, id: '', arguments: { city: 'Rome' } },
		],
	],
	[
		'the same tool twice with the same index, the first call cut off',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{"city":' },
			{ index: 0, id: 'c2', name: 'weather', args: '{"city":"Oslo"}' },
		],
		[
			{ ...CALL, arguments: '{"city":' },
			{ ...CALL, id: 'c2' },
		],
	],
	[
		'the ID and the name with every piece, and more after a whole object',
		[
			{ id: 'c1', name: 'weather', args: '{"city":"Oslo"}' },
			{ id: 'c1', name: 'weather', args: '}' },
		],
		[{ ...CALL, arguments: '{"city":"Oslo"}}' }],
	],
	[
		'the name with every piece, and a second, incomplete object',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{"city":"Oslo"}' },
			{ index: 0, args: '{"city":' },
			{ index: 0, name: 'weather', args: '1' },
		],
		[{ ...CALL, arguments: '{"city":"Oslo"}{"city":1' }],
	],
	[
		'the name with every piece, and empty arguments before the real ones',
		[
			{ index: 0, id: 'c1', name: 'weather', args: '{}' },
			{ index: 0, name: 'weather', args: '{"city":"Oslo"}' },
		],
		[CALL],
	],
	[
		'two without index and ID',
		[
			{ name: 'weather', args: '{"city":"Oslo"}' },
			{ name: 'time', args: '{"zone":"CET"}' },
		],
		[
			{ ...CALL, id: '' },
			{ ...SECOND, id: '' },
		],
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
