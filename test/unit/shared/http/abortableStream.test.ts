import { Readable } from 'node:stream';

import { createIdleTimeouts } from '../../../../nodes/shared/http/idleTimeout';
import { cuttable, type ByteStream } from '../../../../nodes/shared/http/abortableStream';
import { BodyEnded, readBody } from '../../../../nodes/shared/http/request';
import { readStream, type StreamEvent } from '../../../../nodes/shared/http/sse';
import { TestClock } from '../../testClock';

/** A body like that of the request client: one piece, and then a generator that waits forever. */
function silent(first = 'data: a\n\ndata: b'): Readable {
	return Readable.from(
		(async function* () {
			yield Buffer.from(first);
			await new Promise(() => undefined);
		})(),
		{ objectMode: false },
	);
}

async function readAll(body: ByteStream) {
	const events: StreamEvent[] = [];
	try {
		for await (const some of readStream(body)) events.push(...some);
		return { events, error: undefined };
	} catch (error) {
		return { events, error };
	}
}

test('a silent body ends at once with the reason for which it was destroyed', async () => {
	let closed = 0;
	const body = cuttable(silent(), () => closed++);
	const reading = readAll(body);
	await new Promise((resolve) => setImmediate(resolve));
	body.destroy(new BodyEnded('ETIMEDOUT', 'it went silent'));
	body.destroy(new BodyEnded('ERR_TOO_LATE', 'too late'));
	const { events, error } = await reading;
	expect(events.map(({ data }) => data)).toEqual(['a', 'b']);
	expect(error).toMatchObject({ code: 'ETIMEDOUT' });
	expect(closed).toBe(1);
});

test('a reader that stops early closes the connection', async () => {
	let closed = 0;
	for await (const piece of cuttable(silent(), () => closed++)) {
		expect(piece.byteLength).toBeGreaterThan(0);
		break;
	}
	expect(closed).toBe(1);
});

test('a body that was destroyed before it is read ends', async () => {
	const body = cuttable(silent(), () => undefined);
	body.destroy();
	expect(await readAll(body)).toMatchObject({ error: undefined });
});

test('reading a whole body times out if it does not end', async () => {
	await expect(readBody(silent(), 20, 1_000)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
});

describe('the idle timeout', () => {
	function watched(idleMs: number, endByMs = Infinity) {
		const clock = new TestClock();
		const ending = new AbortController();
		const cuts: unknown[] = [];
		const body: ByteStream = {
			destroy: (error) => cuts.push((error as BodyEnded | undefined)?.code),
			[Symbol.asyncIterator]: () => ({
				next: async () => await Promise.resolve({ done: true, value: undefined }),
			}),
		};
		const watch = createIdleTimeouts(clock, 100, ending.signal);
		const entry = watch.watch(body, {
			idleMs,
			endByMs: endByMs === Infinity ? endByMs : clock.now() + endByMs,
		});
		return { clock, cuts, entry, ending };
	}

	test('aborts a body when it has been silent for too long, and not before', async () => {
		const { clock, cuts, entry, ending } = watched(1_000);
		await clock.advance(900);
		entry.received();
		await clock.advance(1_000);
		expect(cuts).toEqual([]);
		await clock.advance(200);
		expect(cuts[0]).toBe('ETIMEDOUT');
		ending.abort();
	});

	test('aborts a body that continues beyond the timeout of the whole answer', async () => {
		const { clock, cuts, entry, ending } = watched(1_000, 2_000);
		for (let step = 0; step < 25; step++) {
			entry.received();
			await clock.advance(100);
		}
		expect(cuts[0]).toBe('ERR_TOO_LATE');
		ending.abort();
	});

	test('leaves a released body alone, and aborts the rest at the end of the run', async () => {
		const released = watched(1_000);
		released.entry.release();
		await released.clock.advance(5_000);
		released.ending.abort();
		const other = watched(1_000);
		other.ending.abort();
		await other.clock.advance(0);
		expect([released.cuts, other.cuts]).toEqual([[], ['ERR_CANCELED']]);
		expect(other.clock.sleepers).toBe(0);
	});

	test('applies new limits at once', async () => {
		const { clock, cuts, entry, ending } = watched(60_000);
		entry.expect({ idleMs: 300, endByMs: Infinity });
		await clock.advance(600);
		expect(cuts[0]).toBe('ETIMEDOUT');
		ending.abort();
	});
});
