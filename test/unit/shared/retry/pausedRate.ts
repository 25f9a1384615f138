import { AdaptiveRate } from '../../../../nodes/shared/retry/adaptiveRate';
import { TestClock } from '../../testClock';

/** The rate of an account whose service has just refused two requests and asked for a pause. */
export async function pausedRate(askedMs: number): Promise<AdaptiveRate> {
	const clock = new TestClock();
	const rate = new AdaptiveRate();
	const { signal } = new AbortController();
	const wait = { clock, signal, deadlineMs: Infinity, isFresh: false };
	for (let refusals = 0; refusals < 2; refusals++) {
		rate.refused(await clock.run(rate.whenDue('work', wait)), clock.now(), askedMs);
	}
	return rate;
}
