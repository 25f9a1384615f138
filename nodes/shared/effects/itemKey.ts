import { fail, failInput, ok, NOT_SENT, type Result } from '../errors/failure';
import { excerpt, parseJson, type Json } from '../text/json';
import { textOrJson } from '../text/textOf';
import { refuseRounded } from '../form/pastedJson';

/** What may stand between the parts of a key. */
const BETWEEN = String.raw`[\s:;,|/_#()[\]{}-]`;
/** What JavaScript writes into a text for a missing value or an object, as a part of its own. */
const NO_VALUE = new RegExp(
	String.raw`\[object [A-Z]\w*\]|(?<=^|${BETWEEN})(?:undefined|null|NaN|Invalid Date(?:Time)?)(?=$|${BETWEEN})`,
);

/**
 * Reads a key, which must differ wherever what it stands for differs: items without a value must not share one.
 * @param entered the field as it was entered, with its expressions
 * @returns the key; empty if the item has none
 */
export function readKey(label: string, value: unknown, entered: unknown = ''): Result<string> {
	const read = readText(label, value);
	if (!read.ok) return read;
	const { value: text } = read;
	const isNone = typeof value === 'object' && !holdsValue(parseJson(text) ?? text);
	if (isNone || isOnlyFixed(text, entered)) return ok('');
	// A boolean is what an expression such as {{ $json.user && $json.user.id }} returns without a value.
	const [missing] = typeof value === 'boolean' ? [text] : (NO_VALUE.exec(text) ?? []);
	if (missing === undefined) return read;
	return failInput(
		`'${label}' is "${excerpt(text, 60)}" for this item: "${missing}" stands where a value should be`,
		`All items without the value, or with an object there, would share this key. Check the fields in its expression. ${NOT_SENT}`,
	);
}

/** Reads words, an ID or a key; an object becomes JSON text. */
export function readText(label: string, value: unknown): Result<string> {
	// A rounded ID or key would name another conversation.
	const rounded = refuseRounded(label, value);
	if (rounded) return fail(rounded);
	const text = textOrJson(value);
	if (text !== undefined) return ok(text);
	return failInput(`'${label}' is nested too deeply`, `Pass text. ${NOT_SENT}`);
}

/** Whether only the fixed part of a field such as `customer-{{ $json.id }}` is left, because its expressions are empty. */
export function isOnlyFixed(text: string, entered: unknown): boolean {
	if (typeof entered !== 'string' || !entered.startsWith('=') || !entered.includes('{{')) return false;
	return (
		entered
			.slice(1)
			.replace(/\{\{[\s\S]*?\}\}/g, '')
			.trim() === text.trim()
	);
}

function holdsValue(json: Json): boolean {
	if (typeof json === 'object' && json !== null) return Object.values(json).some(holdsValue);
	return json !== null && json !== '';
}
