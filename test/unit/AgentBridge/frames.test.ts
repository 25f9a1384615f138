import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';

import {
	belongs,
	createEventFilter,
	readIncoming,
	nameAt,
	readPath,
	RecentIds,
	withValueAt,
	type EventFilter,
	type Path,
} from '../../../nodes/AgentBridge/frames';
import { parseJson, type JsonObject } from '../../../nodes/shared/text/json';
import { valueAt } from '../../../nodes/shared/form/expression';
import { redactor } from '../../../nodes/shared/text/redact';
import { valueOf } from '../results';

const filterOf = (path: string, list: string): EventFilter => valueOf(createEventFilter(path, list));

const pathOf = (path: string): Path | undefined => valueOf(readPath('ID Path', path));

const jsonObject = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => value as JsonObject);

describe('readIncoming', () => {
	const redact = redactor(['wst_ab/cd']);
	const parseFrame = (text: string): JsonObject | undefined => {
		const incoming = readIncoming(text, redact);
		return incoming.ok ? incoming.value : undefined;
	};

	test('hides the token with the escapes of JSON, in values and in keys', () => {
		const text = String.raw`{"a":["wst_ab\/cd"],"wst\u005fab\/cd":{"b":"\u0077st_ab\u002fcd!"}}`;
		expect(parseFrame(text)).toEqual({ a: ['[hidden]'], '[hidden]': { b: '[hidden]!' } });
	});

	test('keeps all digits of an ID', () => {
		expect(parseFrame('{"id":12345678901234567891,"n":17}')).toEqual({ id: '12345678901234567891', n: 17 });
	});

	test.each([
		['too deep', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'nested too deeply'],
		['too deep to be JSON', '{"a":'.repeat(3_000_000), 'nested too deeply'],
		['not an object', '[]', 'not a JSON object'],
	])('refuses a frame that is %s, and says why', (_what, text, why) => {
		expect(readIncoming(text, redact)).toMatchObject({ ok: false, failure: expect.stringContaining(why) });
	});

	test('accepts any JSON object with all of its content', () => {
		fc.assert(
			fc.property(jsonObject, (frame) => {
				const text = JSON.stringify(frame);
				expect(JSON.stringify(parseFrame(text))).toBe(JSON.stringify(parseJson(text)));
			}),
		);
	});

	test('does not throw, whatever the text', () => {
		fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parseFrame(text)));
	});
});

describe('paths', () => {
	const frame = { type: 'message', data: { 'a.b': 1, list: [{ id: 7 }], empty: '' }, ok: false, none: null };

	test('lead to a name if the value is a text, a number or a boolean', () => {
		expect(
			['type', 'data.list[0].id', 'ok', 'data."a.b"'].map((path) => nameAt(pathOf(path), frame)),
		).toEqual(['message', '7', 'false', '1']);
		expect(
			['data', 'data.list', 'none', 'data.empty', 'gone', 'type.length'].map((path) =>
				nameAt(pathOf(path), frame),
			),
		).toEqual(Array(6).fill(undefined));
	});

	test('lead to the value set there, in a copy of the frame', () => {
		const names = fc.array(fc.stringMatching(/^[a-z]{1,4}$/), { minLength: 1, maxLength: 4 });
		fc.assert(
			fc.property(jsonObject, names, fc.string(), (given, steps, value) => {
				const before = JSON.stringify(given);
				const changed = withValueAt(given, steps.join('.'), value);
				expect(JSON.stringify(given)).toBe(before);
				if (changed.ok)
					expect(valueAt(pathOf(steps.join('.'))?.at, changed.value)).toBe(value === '' ? '' : value);
			}),
		);
	});

	test.each(['message-id', '$.type', 'data["a.b"]', 'data.list.0.id', 'größe', 'data.', 'constructor'])(
		'that are no JMESPath are refused, with the cure: %j',
		(path) => {
			const read = readPath('ID Path', path);
			expect(read).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
			const { message, advice } = read.ok ? { message: '', advice: '' } : read.failure;
			expect(message).toContain(`'ID Path' is not a valid path: "${path}"`);
			expect(message).not.toContain('undefined');
			expect(advice).toContain('data."message-id"');
		},
	);

	test('with quotation marks name any field, to read and to set', () => {
		const path = 'data."message-id"."größe"';
		expect(withValueAt({}, path, 'x')).toEqual({
			ok: true,
			value: { data: { 'message-id': { größe: 'x' } } },
		});
		expect(nameAt(pathOf(path), { data: { 'message-id': { größe: 'x' } } })).toBe('x');
	});

	test.each(['', '__proto__', 'type.below', 'data.list.id', '__proto__.polluted', 'data[0]', 'a || b'])(
		'that cannot hold a value are refused: %j',
		(path) => {
			expect(withValueAt(frame, path, 'x')).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
			expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
		},
	);
});

describe('event filter', () => {
	test('accepts every frame without a list, and otherwise those that name a listed event', () => {
		expect(filterOf('type', '').accepts({})).toBe(true);
		const filter = filterOf('data.event', ' message,interrupt\n tool ');
		const taken = ['message', 'interrupt', 'tool', 'messages', ''].map((event) =>
			filter.accepts({ data: { event } }),
		);
		expect(taken).toEqual([true, true, true, false, false]);
		expect(filter.accepts({ type: 'message' })).toBe(false);
		expect([filterOf('type', ',').isOpen, filter.isOpen]).toEqual([true, false]);
	});

	test('refuses a list without a path', () => {
		expect(createEventFilter(' ', 'message')).toMatchObject({ ok: false });
	});
});

test('distinguishes IDs of several megabytes without storing them', () => {
	setFlagsFromString('--expose-gc');
	const collectGarbage = runInNewContext('gc') as () => void;
	const seen = new RecentIds(100);
	const long = 'x'.repeat(5_000_000);
	seen.add(`${long}1`, 'd');
	expect([seen.digestOf(`${long}1`), seen.digestOf(`${long}2`)]).toEqual(['d', undefined]);
	collectGarbage();
	const before = process.memoryUsage().heapUsed;
	for (let id = 0; id < 60; id++) seen.add(JSON.stringify({ id }).repeat(400_000), 'd');
	collectGarbage();
	expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
	seen.remove(`${long}1`);
	expect(seen.digestOf(`${long}1`)).toBeUndefined();
});

test('remembers only the newest IDs, up to the limit', () => {
	fc.assert(
		fc.property(fc.array(fc.integer({ min: 0, max: 30 })), fc.integer({ min: 1, max: 10 }), (ids, limit) => {
			const seen = new RecentIds(limit);
			for (const id of ids) seen.add(String(id), `of ${id}`);
			const newest = [...new Set([...ids].reverse())].slice(0, limit);
			for (let id = 0; id <= 30; id++) {
				expect(seen.digestOf(String(id))).toBe(newest.includes(id) ? `of ${id}` : undefined);
			}
		}),
	);
});

describe('replies', () => {
	const filter = filterOf('type', 'message, interrupt');
	const at = pathOf('correlation_id');
	const rule = { id: at && { at, value: 'm-1' }, filter, isOneMessage: true, silenceMs: 0 };

	test.each([
		[{ type: 'tool_event', correlation_id: 'm-1' }, true],
		[{ type: 'message', correlation_id: 'm-2' }, false],
		[{ type: 'message' }, false],
	])('%j belongs to the request: %j', (frame, ofIt) => {
		expect(belongs(frame, rule)).toBe(ofIt);
	});
});
