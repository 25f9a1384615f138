import { watchBody } from '../../../../nodes/shared/http/idleTimeout';
import type { ByteStream } from '../../../../nodes/shared/http/abortableStream';
import { TestClock } from '../../testClock';

const CHECK_MS = 500;

function open(limits: { idleMs: number; endByMs?: number; isRunOver?: boolean }) {
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
	const { clock, cuts } = open({ idleMs: 3_000 });
	await clock.advance(3_000);
	expect(cuts).toEqual([]);
	await clock.advance(CHECK_MS);
	expect(cuts[0]).toBe('ETIMEDOUT');
});

test('every reported activity restarts the idle timeout', async () => {
	const { clock, cuts, watched } = open({ idleMs: 3_000 });
	for (let second = 0; second < 20; second++) {
		await clock.advance(1_000);
		watched.received();
	}
	expect(cuts).toEqual([]);
	await clock.advance(3_500);
	expect(cuts[0]).toBe('ETIMEDOUT');
});

test('a body that never falls silent is aborted at the end of its time', async () => {
	const { clock, cuts, watched } = open({ idleMs: 3_000, endByMs: 10_000 });
	for (let second = 0; second < 10; second++) {
		await clock.advance(1_000);
		watched.received();
	}
	expect(cuts).toEqual([]);
	await clock.advance(CHECK_MS);
	expect(cuts[0]).toBe('ERR_TOO_LATE');
});

test('new limits apply from the moment they are set', async () => {
	const { clock, cuts, watched } = open({ idleMs: 60_000 });
	await clock.advance(50_000);
	watched.expect({ idleMs: 2_000, endByMs: Infinity });
	await clock.advance(2_000);
	expect(cuts).toEqual([]);
	await clock.advance(CHECK_MS);
	expect(cuts[0]).toBe('ETIMEDOUT');
});

test('a released body is left alone, and the checks stop once the run is over', async () => {
	const { clock, run, cuts, watched } = open({ idleMs: 1_000 });
	watched.release();
	await clock.advance(5_000);
	run.abort();
	await clock.advance(5_000);
	expect(cuts).toEqual([]);
	expect(clock.sleepers).toBe(0);
});

test.each([false, true])('the end of the run aborts a body; it begins only then: %j', async (isRunOver) => {
	const { clock, run, cuts } = open({ idleMs: 60_000, isRunOver });
	run.abort();
	await clock.advance(0);
	expect(cuts).toEqual(['ERR_CANCELED']);
});
