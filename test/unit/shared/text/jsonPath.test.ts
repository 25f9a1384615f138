import fc from 'fast-check';

import { pathSteps, readPath } from '../../../../nodes/shared/text/jsonPath';
import { hostileJson, hostileName } from '../../FlowTask/hostileJson';

const frame = { type: 'message', data: { 'a.b': 1, list: [{ id: 7 }], empty: '' }, ok: false, none: null };

test.each([
	['type', ['type']],
	[' data.list[0].id ', ['data', 'list', '0', 'id']],
	['$.data["a.b"]', ['data', 'a.b']],
	["data['x y'].z", ['data', 'x y', 'z']],
	['', []],
	['...', []],
])('splits %j into the steps %j', (path, steps) => {
	expect(pathSteps(path)).toEqual(steps);
});

test.each([
	['type', 'message'],
	['data.list[0].id', 7],
	['data.list.0.id', 7],
	['data["a.b"]', 1],
	['none', null],
	['', undefined],
	['type.length', undefined],
	['data.list.length', undefined],
	['constructor', undefined],
	['__proto__', undefined],
	['missing.deeper', undefined],
])('finds at %j the value %j', (path, value) => {
	expect(readPath(frame, path)).toEqual(value);
});

test('never throws, and finds only what the value contains', () => {
	fc.assert(
		fc.property(hostileJson(), fc.oneof(hostileName(), fc.string()), (value, path) => {
			const found = readPath(value, path);
			if (found !== undefined) expect(JSON.stringify(value)).toContain(JSON.stringify(found));
		}),
	);
});
