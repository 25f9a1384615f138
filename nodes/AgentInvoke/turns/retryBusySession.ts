import { retryAfterMs } from '../../shared/retry/backoff';
import type { Clock } from '../../shared/run/clock';
import { growingPauseMs, type PauseGrowth } from '../../shared/run/growingPause';
import type { Result } from '../../shared/errors/failure';
import type { Invoked } from '../api/api';
import type { AgentFailure } from '../api/failures';
import type { WaitLimit } from '../sessions/waitLimit';

const PAUSES: PauseGrowth = { firstMs: 500, factor: 1.5, longestMs: 5_000 };

/**
 * Repeats the call while the session is busy with another message; nothing has run then. Between calls, neither a
 * permit of the run nor one of the rate limiter is held.
 * @param random a number in [0, 1)
 */
export async function retryBusySession(
	call: () => Promise<Result<Invoked, AgentFailure>>,
	waitLimit: WaitLimit,
	clock: Clock,
	random: () => number,
): Promise<Result<Invoked, AgentFailure>> {
	const isStopped = (): boolean => waitLimit.signal.aborted;
	let tries = 0;
	for (let calls = 1; ; calls++) {
		const invoked = await call();
		if (invoked.ok) return { ok: true, value: { ...invoked.value, tries: tries + invoked.value.tries } };
		const { busySession } = invoked.failure;
		const leftMs = waitLimit.untilMs - clock.now();
		if (!busySession || leftMs <= 0 || isStopped()) return invoked;
		tries += busySession.tries;
		waitLimit.pause();
		const askedMs = retryAfterMs(busySession.retryAfter, clock.wallNow()) ?? 0;
		await clock.sleep(Math.min(leftMs, askedMs || pauseMs(calls, random)), waitLimit.signal);
		if (isStopped()) return invoked;
	}
}

/** Growing, random pauses, so that those who collided at a session do not return at the same time. */
function pauseMs(calls: number, random: () => number): number {
	const step = growingPauseMs(PAUSES, calls);
	return Math.round(step / 2 + (random() * step) / 2);
}
