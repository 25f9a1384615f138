import { adviceOnPath } from '../../credentials/baseUrl';
import type { Failure } from '../shared/errors/failure';
import { isJsonObject, objectsIn, type Json, type JsonObject } from '../shared/text/json';
import type { FailedOutcome } from '../shared/http/outcome';
import { explainCall, quote, type CallAdvice, type CallFacts } from '../shared/platform/failures';

/** An error that the service reports in a body, with any HTTP status. */
export interface ServiceError {
	readonly text: string;
	/** The HTTP status that the error corresponds to, if it names one. */
	readonly status: number | undefined;
}

/**
 * An error in a body or a chunk: `{ error: { message, code } }`, `{ error: "…" }`, `{ object: "error", message }`
 * or the envelope of §7.1 with a `code` other than 0.
 */
export function errorIn(json: Json): ServiceError | undefined {
	if (!isJsonObject(json)) return undefined;
	const error = errorOf(json);
	if (error) return error;
	if (json.object === 'error' || json.type === 'error')
		return { text: messageIn(json), status: statusIn(json) };
	const hasAnswer = 'choices' in json || (isJsonObject(json.data) && 'choices' in json.data);
	const hasCode = 'code' in json && json.code !== null && numberIn(json.code) !== 0;
	const isEnvelope = hasCode && ('msg' in json || 'message' in json);
	return isEnvelope && !hasAnswer ? { text: messageIn(json), status: statusIn(json) } : undefined;
}

/** An error within the first choice, which is how gateways report a failed model. */
export function errorInChoice({ choices }: JsonObject): ServiceError | undefined {
	const [first] = objectsIn(choices);
	return first && errorOf(first);
}

function errorOf(json: JsonObject): ServiceError | undefined {
	const { error } = json;
	if (typeof error === 'string' && error) return { text: error, status: statusIn(json) };
	// Some gateways send an empty error with every chunk.
	if (!isJsonObject(error) || Object.values(error).every((value) => !value)) return undefined;
	return { text: messageIn(error), status: statusIn(error) ?? statusIn(json) };
}

/** NaN for an object, because `Number` would throw for one with its own "toString". */
function numberIn(value: Json | undefined): number {
	return typeof value === 'number' || typeof value === 'string' ? Number(value) : NaN;
}

function messageIn(error: JsonObject): string {
	for (const key of ['message', 'msg', 'detail', 'reason', 'type', 'code']) {
		const value = error[key];
		if (typeof value === 'string' && value.trim()) return value;
	}
	return 'an error without a message';
}

/** Words that some servers use instead of a status number. */
const STATUS_WORDS: readonly (readonly [RegExp, number])[] = [
	[/rate.?limit|too.?many/i, 429],
	[/overload|unavailable|capacity/i, 503],
	[/server.?error|internal/i, 500],
	[/timeout|timed.?out/i, 504],
];

function statusIn(error: JsonObject): number | undefined {
	for (const key of ['status', 'status_code', 'http_status', 'code']) {
		const status = numberIn(error[key]);
		if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
	}
	const words = [error.code, error.type].filter((value) => typeof value === 'string').join(' ');
	return STATUS_WORDS.find(([pattern]) => pattern.test(words))?.[1];
}

const PAYMENT_REQUIRED = 402;

/**
 * Codes that OpenAI-compatible servers send with HTTP 429 for an account without credit, for which waiting does not
 * help.
 */
const OUT_OF_CREDIT: ReadonlySet<Json | undefined> = new Set([
	'insufficient_quota',
	'billing_hard_limit_reached',
	'exceeded_current_quota_error',
]);

export function isOutOfCredit(body: Json | undefined): boolean {
	const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
	return OUT_OF_CREDIT.has(error.code) || OUT_OF_CREDIT.has(error.type);
}

/** The outcome of an error that came instead of an answer. `httpStatus` is used if the error names no status. */
export function outcomeOfError({ text, status }: ServiceError, httpStatus: number): FailedOutcome {
	if (status === 429) return { kind: 'busy', retryAfter: undefined, text };
	if (status !== undefined && (status === 408 || status >= 500)) {
		return { kind: 'unclear', status, text, inItsForm: true };
	}
	// Without a code, a missing model would be mistaken for a wrong base URL.
	return { kind: 'refused', status: status ?? httpStatus, code: status ?? null, text };
}

const OF_QUESTION: CallAdvice = {
	busy: 'Lower "Concurrency" in the node\'s options, or run the workflow later.',
	rightful: 'Use a key of an account that may use this model.',
	check:
		"Compare the model's ID, the messages and the options of this node, and the Base URL in the credential, with what the platform says.",
};

/** Explains a failed call; messages about the key and the base URL are shared with the other interfaces. */
export function explainChat(outcome: FailedOutcome, facts: CallFacts): Failure {
	const isOfQuestion =
		outcome.kind === 'refused' &&
		outcome.status !== 401 &&
		outcome.status !== 403 &&
		(outcome.code !== null || outcome.status < 400 || outcome.status === PAYMENT_REQUIRED);
	if (!isOfQuestion) return explainCall(outcome, facts, OF_QUESTION);
	const said = quote(facts.redact, outcome.text);
	return {
		kind: 'refused',
		message: `The platform refused the question: ${said}`,
		advice: adviceFor(outcome.status, said, facts.baseUrl),
		// An error in an HTTP 200 response may have no status.
		details: outcome.status >= 400 ? { httpStatus: outcome.status } : {},
	};
}

function adviceFor(status: number, said: string, baseUrl: string): string {
	if (status === 429 || status === PAYMENT_REQUIRED)
		return 'Check the credit and the limits of the account, or use a key of another account.';
	// Checked first, because the property may have any name, such as "thinking".
	if (/additionalProperties|\brequired\W+is required/i.test(said)) {
		return 'Name every property under "required" and set "additionalProperties": false in each object of "JSON Schema". Or keep the schema as it is and wrap it: { "name": "answer", "strict": false, "schema": … }.';
	}
	if (/thinking|reasoning/i.test(said)) {
		return 'Set "Reasoning" to Default, or choose its switch under "Reasoning Control".';
	}
	if (/stream_options|include_usage/i.test(said)) {
		return 'Turn "Include Usage" off in the node\'s options: this deployment does not support it.';
	}
	if (/response_format|json_schema/i.test(said)) {
		return 'Set "Response Format" to Text and ask for JSON in the message, or choose another model.';
	}
	if (/context|too (?:long|large)|maximum|max_tokens/i.test(said) || status === 413) {
		return 'Send less text or fewer images, or lower "Max Tokens" in the node\'s options.';
	}
	if (status === 404 && !/model/i.test(said)) {
		return `${adviceOnPath(baseUrl)} Check the model's ID, too.`;
	}
	if (/model/i.test(said)) {
		return "Check the model's ID: it is the one that the platform's console shows, upper and lower case included.";
	}
	return 'Compare the messages and the options of this node with what the platform says.';
}
