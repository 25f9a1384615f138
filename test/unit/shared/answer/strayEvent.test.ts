import { isKeepAlive, strayWords } from '../../../../nodes/shared/answer/strayEvent';

test.each([
	...['', ' ', 'ping', 'PING', ': ping', '[heartbeat]', 'keep-alive', 'keepalive', 'OPENROUTER PROCESSING'],
	...['ping - 2026-01-02 03:04:05', 'ping 2026-01-02T03:04:05Z', '1767323045', '1767323045123', '{}', '[]'],
	...['{"type":"ping"}', '{"event":"heartbeat","time":5}', '{"ping":1767323045}', '{"status":"processing"}'],
])('%j keeps a connection open', (data) => {
	expect(isKeepAlive({ data })).toBe(true);
});

test('an event named "ping" keeps a connection open whatever it contains, and one named "error" never', () => {
	expect(isKeepAlive({ name: 'ping', data: 'now' })).toBe(true);
	for (const data of ['', 'ping', '{}']) expect(isKeepAlive({ name: 'error', data })).toBe(false);
});

test.each([
	['upstream connect error', 'upstream connect error'],
	['processing failed', 'processing failed'],
	['shipping', 'shipping'],
	['null', 'null'],
	['500', '500'],
	['{"detail":"no credit"}', 'no credit'],
	['{"message":"down"}', 'down'],
	['{"errors":[{"message":"a"},{"message":"b"}]}', 'a; b'],
	['{"status":"error"}', '{"status":"error"}'],
	['{"success":false,"reason":"busy"}', '{"success":false,"reason":"busy"}'],
	['["failed"]', '["failed"]'],
	['<html><body>502</body></html>', 'a web page'],
])('%j does not only keep a connection open, and is told as %j', (data, words) => {
	expect(isKeepAlive({ data })).toBe(false);
	expect(strayWords(data)).toBe(words);
});

test.each(['x', ' ', '1', '<a ', 'ping ', '1234567890.1'])(
	'%j, millions of times, is none and does not overflow the stack',
	(piece) => {
		const data = `.${piece.repeat(33_000_000 / piece.length)}`;
		for (const text of [data, data.slice(1) + '.']) {
			expect(isKeepAlive({ data: text })).toBe(false);
			expect(strayWords(text).length).toBeGreaterThan(0);
		}
	},
);
