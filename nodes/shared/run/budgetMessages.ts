import { isJsonObject, type Json } from '../text/json';
import { numberOf } from '../text/textOf';

export interface SpentBudget {
	/** The label of the option that sets the limit. */
	readonly option: string;
	readonly most: number;
	readonly unit: 'tasks' | 'turns' | 'tokens';
	/** What the limit applies to, e.g. `a run`. */
	readonly scope: string;
	/** How much is used or in progress. */
	readonly taken: number;
}

/** Why nothing more is sent, as a sentence without its full stop. */
export function budgetSpent(budget: SpentBudget): string {
	const { option, most, unit, scope, taken } = budget;
	const allowed = `${most} ${most === 1 ? unit.slice(0, -1) : unit}`;
	return `'${option}' allows ${allowed} ${scope}; used so far: ${taken}`;
}

/** Says that the budget counts no tokens where none were reported; empty if all were reported. */
export function unreportedTokens(count: number, what: string, option: string, remedy: string): string {
	if (count === 0) return '';
	return `${count} ${what} reported no tokens, so '${option}' counts none for them. ${remedy}`;
}

const TOTALS = ['total_tokens', 'totalTokens'];
const PAIRS = [
	['input_tokens', 'output_tokens'],
	['prompt_tokens', 'completion_tokens'],
	['promptTokens', 'completionTokens'],
] as const;

/**
 * The total of a usage, or the sum of its parts if the total is missing or 0.
 * @param usage an object, or the total itself
 * @returns undefined if it contains no valid count
 */
export function countTokens(usage: unknown): number | undefined {
	if (!isJsonObject(usage)) return countOf(usage);
	const [total] = TOTALS.map((name) => countOf(usage[name])).filter((count) => count !== undefined);
	if (total) return total;
	const parts = partsOf(usage);
	return parts ? parts.input + parts.output : total;
}

/** The input and output tokens of a usage. If a usage has only their sum, the sum is its `input`. */
export function tokenParts(usage: unknown) {
	const parts = isJsonObject(usage) ? partsOf(usage) : undefined;
	if (parts) return parts;
	const total = countTokens(usage);
	return total === undefined ? undefined : { input: total, output: 0 };
}

/** The valid counts of a usage, under the names that it gives them; null if it has none. */
export function tokenCounts(usage: unknown): Json {
	if (!isJsonObject(usage)) return countOf(usage) ?? null;
	const names = [...TOTALS, ...PAIRS.flat()].filter((name) => countOf(usage[name]) !== undefined);
	return names.length > 0 ? Object.fromEntries(names.map((name) => [name, usage[name] ?? null])) : null;
}

function partsOf(usage: Readonly<Record<string, unknown>>) {
	const pairs = PAIRS.map(([input, output]) => [countOf(usage[input]), countOf(usage[output])] as const);
	const given = pairs.find(([input, output]) => input !== undefined || output !== undefined);
	return given && { input: given[0] ?? 0, output: given[1] ?? 0 };
}

function countOf(value: unknown): number | undefined {
	const count = numberOf(value);
	return count !== undefined && count >= 0 ? count : undefined;
}
