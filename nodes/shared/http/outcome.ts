import type { JsonObject } from '../text/json';

/**
 * What happened to a request: just enough to decide whether to send it again. Each protocol classifies its own
 * exchanges and words its own failures.
 *
 * - `answered`: it is settled, whatever the answer says, so it must not be sent again
 * - `busy`: it was not carried out; try again later
 * - `refused`: the service refused it and did nothing
 * - `unclear`: no usable answer came, so it may have been carried out
 * - `notSent`: it never arrived
 * - `redirected`: the service is at another URL
 * - `cancelled`: it was not sent, because the execution was stopped, its deadline has passed, or its caller withheld it
 */
export type Outcome<T> = { readonly kind: 'answered'; readonly data: T } | FailedOutcome;

export type FailedOutcome =
	| {
			readonly kind: 'busy';
			readonly retryAfter: string | undefined;
			readonly text: string;
			readonly status?: number | undefined;
	  }
	| {
			readonly kind: 'refused';
			readonly status: number;
			/** The service's own error code, if it gave one. */
			readonly code: number | null;
			readonly text: string;
			/** Whether only the HTTP status, which may come from a gateway, says that the request was refused. */
			readonly wordless?: boolean;
	  }
	| {
			readonly kind: 'unclear';
			readonly text: string;
			readonly status?: number | undefined;
			readonly code?: string;
			readonly retryAfter?: string | undefined;
			/** Whether the answer is in the service's envelope; a gateway that gave up waiting may use it, too. */
			readonly inItsForm?: boolean;
			/** What the error output shows besides the message. */
			readonly details?: JsonObject;
	  }
	| { readonly kind: 'notSent'; readonly code: string; readonly text: string }
	| { readonly kind: 'redirected'; readonly status: number; readonly location: string }
	| { readonly kind: 'cancelled' };

/** A redirect to the result of a write. */
const SEE_OTHER = 303;
/**
 * Statuses of refusals before any work is done: because of a request's credentials, path, method, size or type, or because
 * there are too many.
 */
export const BEFORE_ANY_WORK: ReadonlySet<number> = new Set([401, 403, 404, 405, 413, 415, 429]);

/** Changes to `unclear` every outcome that leaves open whether a write was carried out. */
export function ofWrite<T>(outcome: Outcome<T>): Outcome<T> {
	if (outcome.kind === 'cancelled') {
		return { kind: 'unclear', code: 'ERR_CANCELED', text: 'the execution was stopped meanwhile' };
	}
	if (outcome.kind === 'redirected' && outcome.status === SEE_OTHER) {
		return { kind: 'unclear', status: SEE_OTHER, text: 'a redirect to something else' };
	}
	if (outcome.kind === 'refused' && outcome.wordless && !BEFORE_ANY_WORK.has(outcome.status)) {
		return { kind: 'unclear', status: outcome.status, text: outcome.text };
	}
	return outcome;
}
