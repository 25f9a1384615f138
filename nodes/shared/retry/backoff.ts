import { growingPauseMs, type PauseGrowth } from '../time/growingPause';
import { certificateWasRejected } from '../http/exchange';
import type { Outcome } from '../http/outcome';

/**
 * Which requests may be retried: a `read` (a poll, an upload or a chat question) even if it may have been carried out;
 * a `write` (a submit or, by default, an agent call) only if it cannot have been: a second would be billed, too.
 */
export type Repeatability = 'read' | 'write';

const BACKOFF: PauseGrowth = { firstMs: 500, factor: 2, longestMs: 20_000 };
/** A longer Retry-After is cut to this. */
const LONGEST_PAUSE_MS = 5 * 60_000;

/** Whether the same request may be sent once more after this outcome. */
export function mayRepeat(outcome: Outcome<unknown>, repeatability: Repeatability): boolean {
	// Without a code, n8n itself refused to send it.
	if (outcome.kind === 'notSent') return outcome.code !== '' && !certificateWasRejected(outcome.code);
	return outcome.kind === 'busy' || (outcome.kind === 'unclear' && repeatability === 'read');
}

/**
 * The pause before the next try if the service asks for none.
 * @param tries how many tries have been made, 1 or more
 * @param random in [0, 1): full jitter, so that many workers do not retry at the same moment
 */
export function backoffMs(tries: number, random: () => number): number {
	return Math.round(random() * growingPauseMs(BACKOFF, tries));
}

/** The pause that a service asks for, capped; 0 if it asks for none. */
export function askedPauseMs(retryAfter: string | undefined, nowMs: number): number {
	return Math.min(retryAfterMs(retryAfter, nowMs), LONGEST_PAUSE_MS);
}

/**
 * Reads a Retry-After header: seconds, or an HTTP date.
 * @returns milliseconds from `nowMs`; 0 if the header is missing or unusable, or its date is past because clocks differ
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number {
	if (!header?.trim()) return 0;
	const seconds = Number(header);
	if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
	// Date.parse makes a date of almost any text with a number in it; an HTTP date has a time of day.
	const dateMs = /\d:\d\d:\d\d/.test(header) ? Date.parse(header) : NaN;
	return Number.isNaN(dateMs) ? 0 : Math.max(0, dateMs - nowMs);
}
