/**
 * How a figure counts:
 *
 * - `count`: a whole number or a share that is the same on every machine; a missed one fails the bench
 * - `time`: seconds, bytes or CPU, or a ratio of them; machines are shared and noisy, so it never fails the bench
 * - `told`: additional information without a target
 */
export type FigureKind = 'count' | 'time' | 'told';

export interface Figure {
	readonly what: string;
	readonly kind: FigureKind;
	readonly measured: number;
	readonly unit: string;
	/** The target in words, with the number. */
	readonly target: string;
	readonly isMet: boolean;
	/** The runs of which `measured` is the median or the largest. */
	readonly runs?: readonly number[];
}

interface Meaning {
	readonly what: string;
	readonly kind: FigureKind;
	readonly unit?: string;
	readonly runs?: readonly number[];
}

export function atMost(limit: number, measured: number, meaning: Meaning): Figure {
	const { unit = '' } = meaning;
	return { ...meaning, unit, measured, target: `≤ ${limit}${unit}`, isMet: measured <= limit };
}

export function atLeast(limit: number, measured: number, meaning: Meaning): Figure {
	const { unit = '' } = meaning;
	return { ...meaning, unit, measured, target: `≥ ${limit}${unit}`, isMet: measured >= limit };
}

export function none(measured: number, what: string): Figure {
	return { what, kind: 'count', unit: '', measured, target: '0', isMet: measured === 0 };
}

export function told(measured: number, what: string, unit = '', runs?: readonly number[]): Figure {
	return { what, kind: 'told', unit, measured, target: '', isMet: true, ...(runs && { runs }) };
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((left, right) => left - right);
	const middle = Math.floor(sorted.length / 2);
	const upper = sorted[middle] ?? Number.NaN;
	return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Rounds to three significant digits, but no further than to a whole number. */
export function rounded(value: number): number {
	if (!Number.isFinite(value)) return value;
	return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

export function describe({ kind, measured, target, unit, isMet }: Figure): Record<string, string> {
	const verdict = kind === 'told' ? '' : isMet ? 'met' : 'MISSED';
	return { measured: `${rounded(measured)}${unit}`, target, '': verdict };
}
