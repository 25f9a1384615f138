import { growingPauseMs, type PauseGrowth } from '../run/growingPause';
import { connectionWasRefused } from '../http/exchange';
import type { Outcome } from '../http/outcome';

/**
 * Which requests may be retried: a `read` (a poll, an upload, a chat question) even if it may have been carried out, a
 * `write` (a submit, by default an agent call) only if it cannot have been, because a second one would be billed, too.
 */
export type Repeatability = 'read' | 'write';

const BACKOFF: PauseGrowth = { firstMs: 500, factor: 2, longestMs: 20_000 };
/** A longer Retry-After is capped at this; beyond it, the node's own timeout decides. */
export const LONGEST_PAUSE_MS = 5 * 60_000;

/** Whether the same request may be sent once more after this outcome. */
export function mayRepeat(outcome: Outcome<unknown>, repeatability: Repeatability): boolean {
	switch (outcome.kind) {
		case 'busy':
			return true;
		case 'notSent':
			return connectionWasRefused(outcome.code);
		case 'unclear':
			return repeatability === 'read';
		default:
			return false;
	}
}

/**
 * How long to wait before the next try.
 *
 * @param asked what the service asked for, if anything
 * @param tries how many tries have been made, 1 or more
 * @param nowMs the time, for a Retry-After that is a date
 * @param random a number in [0, 1): full jitter, so that many workers do not retry at the same moment
 */
export function repeatDelayMs(
	asked: { readonly retryAfter?: string | undefined },
	tries: number,
	nowMs: number,
	random: () => number,
): number {
	const askedMs = retryAfterMs(asked.retryAfter, nowMs);
	// If the two clocks differ, a date may already be past; our own back-off then keeps the tries from running out.
	if (askedMs) return Math.min(askedMs, LONGEST_PAUSE_MS);
	return Math.round(random() * growingPauseMs(BACKOFF, tries));
}

/**
 * Reads a Retry-After header: seconds, or an HTTP date.
 * @returns milliseconds from `nowMs`, or `undefined` if the header is missing or unusable
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
	if (!header?.trim()) return undefined;
	const seconds = Number(header);
	if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
	// Date.parse makes a date of almost any text with a number in it; an HTTP date has a time of day.
	const dateMs = /\d:\d\d:\d\d/.test(header) ? Date.parse(header) : NaN;
	return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
