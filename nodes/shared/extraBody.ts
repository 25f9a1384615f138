import { badInput, fail, ok, type Result } from './failure';
import {
	excerpt,
	isJsonObject,
	isTextTooDeep,
	isTooDeep,
	jsonText,
	parseJson,
	type JsonObject,
} from './json';
import { lostDigits } from './pastedJson';

/**
 * Reads "Extra Body": JSON as text, or an object that an expression gave.
 * @param value nothing, or an empty text, stands for no fields
 * @param example of what may be entered, in JSON
 * @returns or else why it cannot be sent as it was meant
 */
export function readExtraBody(value: unknown, example: string): Result<JsonObject> {
	if (value === undefined || value === null || value === '') return ok({});
	const parsed = typeof value === 'string' ? parseJson(value) : value;
	const isDeep = typeof value === 'string' ? isTextTooDeep(value) : isJsonObject(value) && isTooDeep(value);
	if (!isJsonObject(parsed) || isDeep) {
		return fail(
			badInput(
				`"Extra Body" is ${isDeep ? 'nested too deeply' : 'no JSON object'}`,
				`Enter fields and values, e.g. ${example}, or leave it empty.`,
			),
		);
	}
	const lost = lostDigits(typeof value === 'string' ? value : (jsonText(value) ?? ''));
	if (lost === undefined) return ok(parsed);
	return fail(
		badInput(
			`"Extra Body" holds the number ${excerpt(lost, 40)}, of which digits would be lost`,
			`Enter a number up to ${Number.MAX_SAFE_INTEGER}, or a text, in quotation marks, where the platform takes one.`,
		),
	);
}
