import type { JsonObject } from '../text/json';

/** Why an item, a request or a file failed. */
export type FailureKind =
	| 'badInput' // the operator's input or settings are at fault
	| 'credential' // the key, its kind or its permissions are at fault
	| 'refused' // the service refused and did nothing
	| 'unreachable' // the request never reached the service
	| 'unclear' // no usable answer came; a write may or may not have been carried out
	| 'taskFailed' // the task itself ended as failed (§3.1)
	| 'taskDenied' // the task itself ended as denied (§3.1)
	| 'taskUnknown' // the platform does not know the task
	| 'agentFailed' // the agent ran and failed
	| 'timedOut' // we stopped waiting; the task may still be running
	| 'stalled' // we stopped waiting because there was no progress; the task may still be running
	| 'notSubmitted' // the batch stopped, or a limit was reached, before this item was sent
	| 'file' // a result or input file could not be transferred
	| 'cancelled'; // the execution was stopped, or its time was up

/**
 * A failure as data: protocol code returns it, and only `nodeError.ts` turns it into an n8n error. `message` says what
 * happened, `advice` what to do about it; `details` go to the error output.
 */
export interface Failure {
	readonly kind: FailureKind;
	readonly message: string;
	readonly advice: string;
	readonly details?: JsonObject;
}

export type Result<T, F = Failure> =
	{ readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: F };

/** Ends what a refused item is told. */
export const NOT_SENT = 'Nothing was sent for this item.';

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
	return { ok: true, value };
}

export function fail<F>(failure: F): { readonly ok: false; readonly failure: F } {
	return { ok: false, failure };
}

export function badInput(message: string, advice: string, details?: JsonObject): Failure {
	return { kind: 'badInput', message, advice, ...(details && { details }) };
}

export function failInput(...input: Parameters<typeof badInput>) {
	return fail(badInput(...input));
}
