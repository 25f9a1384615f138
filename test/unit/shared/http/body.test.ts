import { Readable } from 'node:stream';
import {
	BodyEnded,
	cuttable,
	readBody,
	watchBody,
	type ByteStream,
} from '../../../../nodes/shared/http/body';
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
	body.destroy(new BodyEnded('ETIMEDOUT', 'the connection went silent'));
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

const CHECK_MS = 500;

function watch(limits: { idleMs: number; endByMs?: number; isRunOver?: boolean }) {
	const clock = new TestClock();
	const run = new AbortController();
	if (limits.isRunOver) run.abort();
	const cuts: unknown[] = [];
	const body: ByteStream = {
		destroy: (error) => {
			cuts.push(error && 'code' in error ? error.code : error);
		},
		async *[Symbol.asyncIterator]() {
			// The body is never read.
		},
	};
	const endByMs = limits.endByMs === undefined ? Infinity : clock.now() + limits.endByMs;
	const watched = watchBody(body, { idleMs: limits.idleMs, endByMs }, clock, run.signal);
	return { clock, run, cuts, watched };
}

test('a body is aborted once it has been silent for longer than allowed, and not before', async () => {
	const { clock, cuts } = watch({ idleMs: 3_000 });
	await clock.advance(3_000);
	expect(cuts).toEqual([]);
	await clock.advance(CHECK_MS);
	expect(cuts[0]).toBe('ETIMEDOUT');
});

test('every reported activity restarts the idle timeout', async () => {
	const { clock, cuts, watched } = watch({ idleMs: 3_000 });
	for (let second = 0; second < 20; second++) {
		await clock.advance(1_000);
		watched.received();
	}
	expect(cuts).toEqual([]);
	await clock.advance(3_500);
	expect(cuts[0]).toBe('ETIMEDOUT');
});

test('a body that never falls silent is aborted at the end of its time', async () => {
	const { clock, cuts, watched } = watch({ idleMs: 3_000, endByMs: 10_000 });
	for (let second = 0; second < 10; second++) {
		await clock.advance(1_000);
		watched.received();
	}
	expect(cuts).toEqual([]);
	await clock.advance(CHECK_MS);
	expect(cuts[0]).toBe('ERR_TOO_LATE');
});

test('new limits apply from the moment they are set', async () => {
	const { clock, cuts, watched } = watch({ idleMs: 60_000 });
	await clock.advance(50_000);
	watched.expect({ idleMs: 2_000, endByMs: Infinity });
	await clock.advance(2_000);
	expect(cuts).toEqual([]);
	await clock.advance(CHECK_MS);
	expect(cuts[0]).toBe('ETIMEDOUT');
});

test('a released body is left alone, and the checks stop once the run is over', async () => {
	const { clock, run, cuts, watched } = watch({ idleMs: 1_000 });
	watched.release();
	await clock.advance(5_000);
	run.abort();
	await clock.advance(5_000);
	expect(cuts).toEqual([]);
	expect(clock.sleepers).toBe(0);
});

test.each([false, true])('the end of the run aborts a body; it begins only then: %j', async (isRunOver) => {
	const { clock, run, cuts } = watch({ idleMs: 60_000, isRunOver });
	run.abort();
	await clock.advance(0);
	expect(cuts).toEqual(['ERR_CANCELED']);
});
