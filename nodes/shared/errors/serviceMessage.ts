import { isJsonObject, type Json } from '../text/json';

/** Where services put the message of an error, the likeliest first. */
const KEYS = ['msg', 'message', 'error', 'detail', 'errors', 'exception_message'] as const;
/** Errors are nested in errors; a hostile one is nested deeper than any stack. */
const MOST_LEVELS = 1_000;
/** Nobody reads more mistakes than this. */
const MOST_MISTAKES = 5;

/** The words of an error that a service sent as JSON, neither cut nor redacted; empty where there are none. */
export function errorWords(error: Json | undefined, levels = MOST_LEVELS): string {
	if (!isJsonObject(error) || levels === 0) return '';
	for (const key of KEYS) {
		const words = wordsIn(error[key], levels);
		if (words) return words;
	}
	return '';
}

function wordsIn(value: Json | undefined, levels: number): string {
	if (typeof value === 'string') return value.trim() && value;
	if (!Array.isArray(value)) return errorWords(value, levels - 1);
	const mistakes = value.slice(0, MOST_MISTAKES).map((one) => {
		const words = typeof one === 'string' ? one.trim() : errorWords(one, levels - 1);
		const location = isJsonObject(one) && words ? locationIn(one.loc) : '';
		return `${location}${words}`;
	});
	return mistakes.filter(Boolean).join('; ');
}

/** Where in the request a mistake is, as validators of Python services say it: `["body", "workflow_id"]`. */
function locationIn(loc: Json | undefined): string {
	const list = Array.isArray(loc) ? loc : [];
	const steps = list.filter((step) => typeof step === 'string' || typeof step === 'number');
	return steps.length > 0 ? `${steps.join('.')}: ` : '';
}
