import { fail, ok, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, jsonText, type Json } from '../../shared/text/json';
import { numberOf } from '../../shared/text/textOf';
import { isLongInteger } from '../../shared/workflow/definition';
import type { ParameterSpec } from '../../shared/workflow/parameterView';

/** What an input accepts. `loose` is a number, or any text that is not one. */
export type Kind = 'number' | 'integer' | 'boolean' | 'text' | 'list' | 'object' | 'loose' | 'any';

/**
 * @param model the value in the export
 * @param isSeed whether the input is a number even if the export has text for it
 */
export function kindOf(model: Json | undefined, spec: ParameterSpec = {}, isSeed: boolean): Kind {
	// The view may know the type where the export has only text or nothing.
	const isOpen = model === undefined || model === null || typeof model === 'string';
	// Only numbers have limits (§2.2).
	const isNumeric = (spec.min ?? spec.max) !== undefined || spec.type === 'INT' || spec.type === 'FLOAT';
	if (typeof model === 'number' || (isOpen && isNumeric)) return spec.type === 'INT' ? 'integer' : 'number';
	if (typeof model === 'boolean' || (isOpen && spec.type === 'BOOLEAN')) return 'boolean';
	if (typeof model === 'string') return isSeed || isLongInteger(model) ? 'loose' : 'text';
	if (Array.isArray(model)) return 'list';
	if (isJsonObject(model)) return 'object';
	return spec.type === 'STRING' ? 'text' : 'any';
}

/** @returns the converted value if nothing is lost, or what it must be */
export function convertTo(kind: Kind, value: Json): Result<Json, string> {
	switch (kind) {
		case 'number':
			return convertToNumber(value);
		case 'integer': {
			const number = convertToNumber(value);
			return number.ok && !Number.isInteger(number.value) ? fail('a whole number') : number;
		}
		case 'loose':
			return typeof value === 'string' && numberOf(value) === undefined ? ok(value) : convertToNumber(value);
		case 'boolean': {
			const word = typeof value === 'object' ? '' : String(value).trim().toLowerCase();
			return word === 'true' || word === 'false' ? ok(word === 'true') : fail('true or false');
		}
		case 'text':
			return value === null || typeof value === 'object' ? fail('text') : convertTo('any', String(value));
		case 'list':
			return Array.isArray(value) ? ok(value) : fail('an array');
		case 'object':
			return isJsonObject(value) ? ok(value) : fail('an object');
		case 'any':
			// What n8n makes of an object between words: a poster for {{ $json.product }}.
			return typeof value === 'string' && value.includes('[object Object]')
				? fail('text without an object in it')
				: ok(value);
	}
}

/** Another seed makes another image, so a number that would lose digits is refused. */
function convertToNumber(value: Json): Result<Json, string> {
	const number = numberOf(value);
	if (number === undefined) return fail('a number');
	const isLong = typeof value === 'string' && /^[+-]?\d+$/.test(value.trim());
	return isLong && !Number.isSafeInteger(number)
		? fail(`a number up to ${Number.MAX_SAFE_INTEGER}, beyond which digits are lost`)
		: ok(number);
}

/** A value, shortened to fit in a sentence. */
export function showValue(value: Json): string {
	const text = typeof value === 'string' ? `"${value}"` : jsonText(value);
	return excerpt(text ?? 'nested too deeply', 80);
}
