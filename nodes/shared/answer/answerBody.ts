import { errorWords } from '../errors/serviceMessage';
import { isJsonObject, objectsIn, type Json, type JsonObject } from '../text/json';
import { textOf } from '../text/textOf';

export interface ServiceError {
	readonly text: string;
	/** The HTTP status that the error names or implies, if any. */
	readonly status: number | undefined;
}

/**
 * An error in a body or a chunk: `{ error: { message, code } }`, `{ error: "…" }`, `{ object: "error", message }` (or
 * `type` for `object`), `{ base_resp: { status_code, status_msg } }`, the envelope of §7.1 with a `code` other than 0,
 * or an array that begins with one of these.
 */
export function errorIn(body: Json): ServiceError | undefined {
	const json = Array.isArray(body) ? body[0] : body;
	if (!isJsonObject(json)) return undefined;
	const error = errorOf(json) ?? errorInStatus(json.base_resp);
	if (error) return error;
	if (json.object === 'error' || json.type === 'error')
		return { text: messageIn(json), status: statusIn(json) };
	const hasAnswer = 'choices' in json || (isJsonObject(json.data) && 'choices' in json.data);
	const hasCode = 'code' in json && json.code !== null && numberIn(json.code) !== 0;
	const isEnvelope = hasCode && ('msg' in json || 'message' in json);
	return isEnvelope && !hasAnswer ? { text: messageIn(json), status: statusIn(json) } : undefined;
}

/** The error in an event, if there is one. The data of an event named "error" may have any form. */
export function errorInEvent(
	name: string | undefined,
	json: Json | undefined,
	text: string,
): ServiceError | undefined {
	const error = errorIn(json ?? null);
	if (error !== undefined || name !== 'error') return error;
	return errorIn({ error: json ?? text }) ?? { text: text || WORDLESS, status: undefined };
}

/** An error in the first choice or in `x_groq`, where gateways report a failed model. */
export function errorInChunk({ choices, x_groq: vendor }: JsonObject): ServiceError | undefined {
	const [error] = objectsIn([objectsIn(choices)[0], vendor])
		.map(errorOf)
		.filter(Boolean);
	return error;
}

function errorInStatus(status: Json | undefined): ServiceError | undefined {
	if (!isJsonObject(status) || !numberIn(status.status_code)) return undefined;
	const text = textOf(status.status_msg) || `status code ${numberIn(status.status_code)}`;
	return { text, status: statusIn({ code: text }) };
}

function errorOf(json: JsonObject): ServiceError | undefined {
	const { error } = json;
	if (typeof error === 'string' && error) return { text: error, status: statusIn(json) };
	// Some gateways send an empty error with every chunk.
	if (!isJsonObject(error) || Object.values(error).every((value) => !value)) return undefined;
	return { text: messageIn(error), status: statusIn(error) ?? statusIn(json) };
}

/** NaN for anything but numbers and text: `Number` would throw for an object with its own "toString". */
function numberIn(value: Json | undefined): number {
	return typeof value === 'number' || typeof value === 'string' ? Number(value) : NaN;
}

const WORDLESS = 'an error without a message';

function messageIn(error: JsonObject): string {
	const words = errorWords(error);
	if (words) return words;
	for (const key of ['reason', 'type', 'code']) {
		const value = error[key];
		if (typeof value === 'string' && value.trim()) return value;
	}
	return WORDLESS;
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

/** The answer itself: some gateways wrap it in the envelope of the other interfaces (§7.1). */
export function answerIn(json: JsonObject): JsonObject {
	return !('choices' in json) && isJsonObject(json.data) && 'choices' in json.data ? json.data : json;
}

const LENGTH_REASONS: ReadonlySet<string> = new Set([
	...['length', 'max_tokens', 'model_length', 'model_context_window_exceeded'],
]);

/** Whether an answer was cut off because it reached the maximum number of tokens. */
export function isCutByLength(reason: string): boolean {
	return LENGTH_REASONS.has(reason.toLowerCase());
}
