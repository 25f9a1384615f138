/** A budget that is used up. */
export interface SpentBudget {
	/** The label of the option that holds the budget. */
	readonly option: string;
	readonly most: number;
	readonly unit: 'turns' | 'tokens';
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

/** Tokens that nobody told are not guessed: a budget counts none for them and says so. Empty if there is nothing to say. */
export function untoldTokens(count: number, what: string, option: string, remedy: string): string {
	if (count === 0) return '';
	return `${count} ${what} told nothing of their tokens, so "${option}" counts none for them. ${remedy}`;
}
