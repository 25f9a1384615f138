import { fail, failInput, ok, type Result } from '../errors/failure';
import { excerpt, excessIn, isJsonObject, isTooDeep, parseJson, type JsonObject } from '../text/json';
import { isBlank } from '../text/textOf';
import { refuseLossyJson } from './pastedJson';

/**
 * Reads "Extra Body": JSON text, or an object from an expression. It must not replace a field that the form sets,
 * because the form would then show something other than what is sent.
 * @param setBy names what already sets a field, if anything does
 */
export function readExtraBody(
	value: unknown,
	example: string,
	setBy: (name: string) => string | undefined,
): Result<JsonObject> {
	if (isBlank(value)) return ok({});
	const parsed = typeof value === 'string' ? parseJson(value) : value;
	const isTooLarge =
		typeof value === 'string' ? excessIn(value) !== '' : isJsonObject(value) && isTooDeep(value);
	if (!isJsonObject(parsed) || isTooLarge) {
		return failInput(
			`'Extra Body' is ${isTooLarge ? 'too large or nested too deeply' : 'not a JSON object'}`,
			`Enter fields and values, e.g. ${example}, or leave it empty.`,
		);
	}
	const lost = refuseLossyJson('Extra Body', value);
	if (lost) return fail(lost);
	for (const name of Object.keys(parsed)) {
		const owner = setBy(name);
		if (owner === undefined) continue;
		const message = `'Extra Body' sets "${excerpt(name, 60)}", which ${owner} already sets`;
		return failInput(message, `Remove "${excerpt(name, 60)}" from 'Extra Body'.`);
	}
	return ok(parsed);
}
