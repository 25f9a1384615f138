import { isJsonObject } from '../text/json';
import { numberOf } from '../text/textOf';

/** A budget that is used up. */
export interface SpentBudget {
	/** The label of the option that holds the budget. */
	readonly option: string;
	readonly most: number;
	readonly unit: 'tasks' | 'turns' | 'tokens';
	/** What the budget is for, e.g. `a run`. */
	readonly scope: string;
	readonly taken: number;
	/** What `taken` counts. */
	readonly ofThem?: string;
}

/** Why nothing more is sent, as a sentence without its full stop. */
export function budgetSpent(budget: SpentBudget): string {
	const { option, most, unit, scope, taken, ofThem = 'used so far' } = budget;
	const allowed = `${most} ${most === 1 ? unit.slice(0, -1) : unit}`;
	return `"${option}" allows ${allowed} ${scope}; ${ofThem}: ${taken}`;
}

/**
 * Tokens that were not reported are not guessed: the budget counts none and says so. Empty if there is nothing to say.
 */
export function unreportedTokens(count: number, what: string, option: string, remedy: string): string {
	if (count === 0) return '';
	return `${count} ${what} reported no tokens, so "${option}" counts none for them. ${remedy}`;
}

const TOTALS = ['total_tokens', 'totalTokens'];
/** The names that are customary in usage. */
const PAIRS = [
	['input_tokens', 'output_tokens'],
	['prompt_tokens', 'completion_tokens'],
	['promptTokens', 'completionTokens'],
] as const;

/**
 * The tokens that a usage tells of, or a number that stands for it: the total, else the sum of its parts. A total of 0
 * beside other counts is none.
 * @returns undefined where it tells of no tokens; what is negative or no number tells nothing
 */
export function countTokens(usage: unknown): number | undefined {
	if (!isJsonObject(usage)) return countOf(usage);
	const counts = (names: readonly string[]): number[] =>
		names.map((name) => countOf(usage[name])).filter((count) => count !== undefined);
	const [total] = counts(TOTALS);
	if (total) return total;
	const parts = partsOf(usage);
	return parts ? parts.input + parts.output : total;
}

interface TokenParts {
	readonly input: number;
	readonly output: number;
}

/** The tokens that were read and written. A usage that tells only their sum has it as `input`. */
export function tokenParts(usage: unknown): TokenParts | undefined {
	const parts = isJsonObject(usage) ? partsOf(usage) : undefined;
	if (parts) return parts;
	const total = countTokens(usage);
	return total === undefined ? undefined : { input: total, output: 0 };
}

function partsOf(usage: Readonly<Record<string, unknown>>): TokenParts | undefined {
	const pairs = PAIRS.map(([input, output]) => [countOf(usage[input]), countOf(usage[output])] as const);
	const told = pairs.find(([input, output]) => input !== undefined || output !== undefined);
	return told && { input: told[0] ?? 0, output: told[1] ?? 0 };
}

function countOf(value: unknown): number | undefined {
	const count = numberOf(value);
	return count !== undefined && count >= 0 ? count : undefined;
}
