import { readStream, type StreamEvent } from '../../../../nodes/shared/http/sse';
import type { ByteStream } from '../../../../nodes/shared/http/body';

interface Body extends ByteStream {
	destroyed: number;
}

function bodyOf(pieces: readonly (string | Uint8Array)[], failsWith?: Error): Body {
	return {
		destroyed: 0,
		destroy() {
			this.destroyed++;
		},
		async *[Symbol.asyncIterator]() {
			for (const piece of pieces) yield await Promise.resolve(Buffer.from(piece));
			if (failsWith) throw failsWith;
		},
	};
}

async function readAll(body: ByteStream, hasLines = false) {
	const events: StreamEvent[] = [];
	try {
		for await (const some of readStream(body, hasLines)) events.push(...some);
	} catch (error) {
		return { events, error };
	}
	return { events, error: undefined };
}

const event = (data: string, name?: string) => ({ name, data, isWholeBody: false });
const document = (data: string) => ({ name: undefined, data, isWholeBody: true });

test.each<[string, string[], object[]]>([
	['events', ['data: a\n\nda', 'ta: b\n\n'], [event('a'), event('b')]],
	['an event name', ['event: done\ndata: a\n\n'], [event('a', 'done')]],
	['a line of the field "error"', ['data: a\n\nerror: {"b":1}\n'], [event('a'), event('{"b":1}', 'error')]],
	[
		'a line that is an error object',
		['data: a\n\n{"error":{"b":1}}'],
		[event('a'), event('{"error":{"b":1}}')],
	],
	[
		'an error that has several lines of its own',
		['data: a\n\n{\n "error": {\n  "b": 1 }', '\n}\ndata: [DONE]\n\n'],
		[event('a'), event('{\n "error": {\n  "b": 1 }\n}'), event('[DONE]')],
	],
	[
		'lines of text and of a page',
		['data: a\n\nError: no upstream\n\n<html>\n<p>502', '</p>\n\ndata: [DONE]\n\n'],
		[event('a'), event('Error: no upstream'), event('<html>\n<p>502</p>'), event('[DONE]')],
	],
	[
		"a vendor's field next to data, but not one alone",
		['a: 1\ndata: b\n\na: 1\n\n'],
		[event('b'), event('a: 1')],
	],
	['an event "error" without data', ['data: a\n\nevent: error\n\n'], [event('a'), event('', 'error')]],
	[
		'an object before the events',
		['{"error":1}\n\n', 'data: [DONE]\n\n'],
		[event('{"error":1}'), event('[DONE]')],
	],
	['other events without data', ['event: done\nid: 1\n\ndata: a\n\n'], [event('a')]],
	['an event without its end', ['data: a\n\ndata: b'], [event('a'), event('b')]],
	['an event whose data is cut off', ['data: a\n\nevent: done\ndata: '], [event('a')]],
	['a complete event without data', ['event: done\ndata:\n\n'], [event('', 'done')]],
	[
		'an event whose JSON is cut off',
		['data: {"a":1}\n\ndata: {"b'],
		[event('{"a":1}'), { ...event('{"b'), isCutOff: true }],
	],
	['an event without the empty line after it', ['data: {"a":1}'], [event('{"a":1}')]],
	['an event that is cut off within its line end', ['data: a\r\n\r'], [event('a')]],
	['an object', [' {"a"', ':1} '], [document('{"a":1} ')]],
	['an array', ['[', ']'], [document('[]')]],
	['a JSON string', ['"a"'], [document('"a"')]],
	['an HTML page', ['\n<html>'], [document('<html>')]],
	['plain text', ['Error: no', ' healthy\nupstream'], [document('Error: no healthy\nupstream')]],
	['a number', ['42'], [document('42')]],
	['plain text that begins like a field', ['dat', 'abase'], [document('database')]],
	['an undefined field before events', ['trace: 1\n', 'data: a\n\n'], [event('a')]],
	['nothing but comments', [': kept alive\n\n'], []],
	['a line of 9,000 characters before an event', ['a'.repeat(9_000), '\ndata: a\n\n'], [event('a')]],
	['a byte order mark and white space', ['\uFEFF', ' \r\n\t', '\uFEFF', '\n{}'], [document('{}')]],
	['white space before events', ['\uFEFF \n', '\n', 'data: a\n\n'], [event('a')]],
	['white space within a document', ['{', '  ', '\n}'], [document('{  \n}')]],
	[
		'white space within events',
		['data: a\n', '\n', '\n\n', 'data:   b', '  ', '\n\n'],
		[event('a'), event('  b  ')],
	],
	['only white space', [' \n', '\n'], [document('')]],
	['nothing', [], [document('')]],
])('reads %s', async (_name, pieces, events) => {
	expect(await readAll(bodyOf(pieces))).toEqual({ events, error: undefined });
});

test.each<[string, string[], object[]]>([
	[
		'several lines',
		['{"a":1}\n\n{"b', '":2}\r\n"c"\n'],
		[event('{"a":1}'), event('{"b":2}\r'), event('"c"')],
	],
	['a last line without its end', ['{"a":1}\n{"b":2}'], [event('{"a":1}'), event('{"b":2}')]],
	['a line alone', ['{"a":1}', '\n', ' \n'], [document('{"a":1}\n')]],
	['JSON over several lines', ['{\n"a":1\n', '}\n'], [document('{\n"a":1\n}\n')]],
	['events', ['data: a\n\n'], [event('a')]],
	[
		'events without empty lines',
		['data: {"a":1}\ndata: {"b"', ':2}\ndata: [DONE]\n'],
		[event('{"a":1}'), event('{"b":2}'), event('[DONE]')],
	],
	[
		'an event of several lines',
		['data: {"a":\ndata: {"b":1}\ndata: }\n\n', 'data: {}\ndata: b\n\n'],
		[event('{"a":\n{"b":1}\n}'), event('{}\nb')],
	],
])('reads %s if each line may be an event', async (_name, pieces, events) => {
	expect(await readAll(bodyOf(pieces), true)).toEqual({ events, error: undefined });
});

test('a line that never ends is too large, just as an event that never ends', async () => {
	const body = bodyOf(['{}\n{', ...Array.from({ length: 40 }, () => 'x'.repeat(1024 * 1024))]);
	const { events, error } = await readAll(body, true);
	expect([events[0], error]).toMatchObject([event('{}'), { code: 'ERR_TOO_LARGE' }]);
});

test('a line is returned as soon as it is complete', async () => {
	const given: string[] = [];
	async function* pieces() {
		for (const piece of ['{"a":1}\n', '{"b":2}\n', '{"c":3}\n']) {
			yield await Promise.resolve(Buffer.from(piece));
			given.push('next');
		}
	}
	const body = { destroy: () => undefined, [Symbol.asyncIterator]: pieces };
	for await (const some of readStream(body, true)) given.push(...some.map(({ data }) => data));
	expect(given).toEqual(['next', '{"a":1}', '{"b":2}', 'next', '{"c":3}', 'next']);
});

test('a character that is split between pieces is returned whole', async () => {
	const bytes = Buffer.from('data: \u{1F98A}\n\n');
	const pieces = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
	expect((await readAll(bodyOf(pieces))).events).toEqual([event('\u{1F98A}')]);
});

test('megabytes of white space before a body are scanned only once', async () => {
	// Scanning everything again with each of so many pieces would take many minutes.
	const blanks = Array.from({ length: 300_000 }, (_, index) => (index % 2 ? ' \n\n  \n ' : '\t\t\r\n    '));
	expect((await readAll(bodyOf([...blanks, 'data: a\n\n']))).events).toEqual([event('a')]);
	expect((await readAll(bodyOf([...blanks, '{}']))).events).toEqual([document('{}')]);
});

test('megabytes of line ends in one piece are scanned only once', async () => {
	// Scanning the rest again at each line end would take time that grows with the square of their number.
	for (const lines of [`${'\n'.repeat(2_000_000)}\r`, '\r'.repeat(2_000_000), 'data:\r'.repeat(200_000)]) {
		const { events, error } = await readAll(bodyOf([`data: a\n\n${lines}`, '\n\ndata: b\n\n']));
		expect([events[0], events.at(-1), error]).toEqual([event('a'), event('b'), undefined]);
	}
});

test.each([
	['an event', 'data: '],
	['a document', '{"a":"'],
	['a line of another kind', 'x'],
])('%s that never ends is given up', async (_name, start) => {
	const megabyte = 'x'.repeat(1024 * 1024);
	const body = bodyOf([start, ...Array.from({ length: 33 }, () => megabyte)]);
	expect(await readAll(body)).toMatchObject({ error: { code: 'ERR_TOO_LARGE' } });
	expect(body.destroyed).toBe(1);
});

test('a body that never ends is given up, however small its events are', async () => {
	const comments = `: ${'x'.repeat(1024 * 1024)}\n`;
	const body = bodyOf(Array.from({ length: 257 }, () => comments));
	expect(await readAll(body)).toMatchObject({ events: [], error: { code: 'ERR_TOO_LARGE' } });
});

test('what arrived before a body broke off is returned before the error', async () => {
	const error = new Error('reset');
	const body = bodyOf(['data: a\n\ndata: b'], error);
	expect(await readAll(body)).toEqual({ events: [event('a'), event('b')], error });
	expect(body.destroyed).toBe(1);
});

test('reading no further closes the connection', async () => {
	const body = bodyOf(['data: a\n\n', 'data: b\n\n']);
	for await (const events of readStream(body)) {
		expect(events).toEqual([event('a')]);
		break;
	}
	expect(body.destroyed).toBe(1);
});
