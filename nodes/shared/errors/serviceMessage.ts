import { isJsonObject, objectsIn, parseJson, type Json, type JsonObject } from '../text/json';

/** Keys under which services put the message of an error, the likeliest first. */
const KEYS = ['msg', 'message', 'error', 'detail', 'errors', 'exception_message'] as const;
const MOST_MISTAKES = 5;

/** The message in an error that a service sent as JSON, not redacted; of a list, the first five. May be empty. */
export function errorWords(error: Json | undefined): string {
	if (Array.isArray(error)) return wordsIn(objectsIn(error));
	if (!isJsonObject(error)) return '';
	for (const key of KEYS) {
		const words = wordsIn(error[key]);
		if (words) return [words, causeIn(error)].filter(Boolean).join(': ');
	}
	return '';
}

/** What the server behind a gateway said, which some gateways put next to their own message. */
function causeIn({ metadata }: JsonObject): string {
	const raw = isJsonObject(metadata) && typeof metadata.raw === 'string' ? metadata.raw.trim() : '';
	return errorWords(parseJson(raw)) || raw;
}

function wordsIn(value: Json | undefined): string {
	if (typeof value === 'string') return value.trim() && value;
	if (!Array.isArray(value)) return errorWords(value);
	const mistakes = value.slice(0, MOST_MISTAKES).map((one) => {
		const words = typeof one === 'string' ? one.trim() : errorWords(one);
		const location = isJsonObject(one) && words ? locationIn(one.loc) : '';
		return `${location}${words}`;
	});
	return mistakes.filter(Boolean).join('; ');
}

/** Where in the request a mistake is, as Python validators report it: `["body", "workflow_id"]`. */
function locationIn(loc: Json | undefined): string {
	const list = Array.isArray(loc) ? loc : [];
	const steps = list.filter((step) => typeof step === 'string' || typeof step === 'number');
	return steps.length > 0 ? `${steps.join('.')}: ` : '';
}
