/**
 * JSON whose integers beyond 2^53 survive. A sampler's seed goes up to 2^64 - 1, which a JavaScript number cannot
 * hold, so such an integer is kept as its own literal: JSON.stringify writes it back digit by digit.
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

/** Throws a SyntaxError like JSON.parse. The reviver costs time, so only texts with a long number pay for it. */
export function parseWireJson(text: string): unknown {
	return /\d{16}/.test(text) ? JSON.parse(text, keepLongInteger) : JSON.parse(text);
}

/** An integer of any length, as the number where that is exact. */
export function integerOf(value: bigint): number | RawInteger {
	const number = Number(value);
	return Number.isSafeInteger(number) ? number : JSON.rawJSON(value.toString());
}

/** The exact integer that a value holds, or undefined where it is not an integer. */
export function exactInteger(value: unknown): bigint | undefined {
	if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
	if (typeof value === 'object' && value !== null && JSON.isRawJSON(value)) return BigInt(value.rawJSON);
	return undefined;
}

/** The same text for the same content, in whatever order its keys came. */
export function canonicalJson(value: unknown): string {
	if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
	if (!isRecord(value)) return value === undefined ? 'null' : JSON.stringify(value);
	const entries = Object.keys(value)
		.sort()
		.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
	return `{${entries.join(',')}}`;
}
