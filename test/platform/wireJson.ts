/**
 * An integer above 2^53 in JSON, such as a sampler's seed, which may be as large as 2^64 - 1. A JavaScript number cannot
 * represent it, so it is kept as its own literal, which JSON.stringify writes back digit by digit.
 */
export interface RawInteger {
	readonly rawJSON: string;
}

declare global {
	interface JSON {
		rawJSON(literal: string): RawInteger;
		isRawJSON(value: unknown): value is RawInteger;
	}
}

export type JsonRecord = Record<string, unknown>;

export function isRecord(value: unknown): value is JsonRecord {
	return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

const INTEGER_LITERAL = /^-?\d+$/;

function keepLongInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
	const source = context?.source;
	if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value;
	return INTEGER_LITERAL.test(source) ? JSON.rawJSON(source) : value;
}

/** Throws a SyntaxError like JSON.parse. The reviver takes time, so it is only used for texts with a long number. */
export function parseWireJson(text: string): unknown {
	return /\d{16}/.test(text) ? JSON.parse(text, keepLongInteger) : JSON.parse(text);
}

/** Returns an integer of any length, as a number if that is exact. */
export function integerOf(value: bigint): number | RawInteger {
	const number = Number(value);
	return Number.isSafeInteger(number) ? number : JSON.rawJSON(value.toString());
}

/** Returns the exact integer of a value; undefined if it is not an integer. */
export function exactInteger(value: unknown): bigint | undefined {
	if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
	if (typeof value === 'object' && value !== null && JSON.isRawJSON(value)) return BigInt(value.rawJSON);
	return undefined;
}

/** Returns the same text for the same content, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
	if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
	if (!isRecord(value)) return value === undefined ? 'null' : JSON.stringify(value);
	const entries = Object.keys(value)
		.sort()
		.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
	return `{${entries.join(',')}}`;
}
