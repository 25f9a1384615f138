import type { JsonObject } from '../text/json';
import type { Unanswered } from './exchange';

/**
 * What happened to a request: just enough to decide whether to send it again. Each protocol classifies its own
 * exchanges and words its own failures.
 *
 * - `answered`: settled, whatever the answer says; sending it again would repeat it
 * - `busy`: nothing was carried out, come back later
 * - `refused`: the service said no, nothing was carried out
 * - `unclear`: no usable answer came, the request may have been carried out
 * - `notSent`: the request never arrived
 * - `redirected`: the service lives elsewhere
 * - `cancelled`: the execution was stopped
 */
export type Outcome<T> = { readonly kind: 'answered'; readonly data: T } | FailedOutcome;

export type FailedOutcome =
	| {
			readonly kind: 'busy';
			/** The header as it came. */
			readonly retryAfter: string | undefined;
			readonly text: string;
			readonly status?: number | undefined;
			/** Only the subject of this request is busy: other requests may go on, and the caller does its own waiting. */
			readonly sparesOthers?: boolean;
			/** More facts for the error output. */
			readonly details?: JsonObject;
	  }
	| {
			readonly kind: 'refused';
			readonly status: number;
			/** The service's own error code; `null` if it gave none. */
			readonly code: number | null;
			readonly text: string;
			/** Only the status says no, and any gateway may have sent it. */
			readonly wordless?: boolean;
	  }
	| {
			readonly kind: 'unclear';
			readonly text: string;
			/** The HTTP status, if an answer came. */
			readonly status?: number | undefined;
			/** The network error's code, if none came. */
			readonly code?: string;
			/** The header as it came. */
			readonly retryAfter?: string | undefined;
			/** The answer has the service's own form. Gateways that gave up waiting may use it, too. */
			readonly inItsForm?: boolean;
	  }
	| { readonly kind: 'notSent'; readonly code: string; readonly text: string }
	| { readonly kind: 'redirected'; readonly status: number; readonly location: string }
	| { readonly kind: 'cancelled' };

/** The outcome of a request without an answer. */
export function ofUnanswered(exchange: Unanswered): FailedOutcome {
	if (exchange.kind === 'cancelled') return exchange;
	const { sent, code, reason: text } = exchange;
	return sent === 'no' ? { kind: 'notSent', code, text } : { kind: 'unclear', code, text };
}

/** A redirect to the result of a write. */
const SEE_OTHER = 303;
/** Every server checks credentials, address and size before any work. */
const BEFORE_ANY_WORK: ReadonlySet<number> = new Set([401, 403, 404, 405, 413]);

/** The outcome of a write, which counts as not carried out only if that is certain. */
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
