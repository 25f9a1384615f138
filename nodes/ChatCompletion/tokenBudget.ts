import { NOT_SENT, type Failure } from '../shared/errors/failure';
import { budgetSpent, countTokens, unreportedTokens } from '../shared/usage/budgetMessages';

const OPTION = 'Token Budget';

/** Limits the tokens of a run. Answers are counted when they end, so those in progress may exceed the limit. */
export class TokenBudget {
	private used = 0;
	/** How many answers may be billed although they reported no tokens. */
	private unreported = 0;

	/** @param most how many tokens may be used; 0 = no limit */
	constructor(private readonly most: number) {}

	get isSet(): boolean {
		return this.most > 0;
	}

	/** @param usage in the form of the output; an answer that broke off may have one, too */
	count(usage: unknown): void {
		const tokens = countTokens(usage);
		if (tokens === undefined) this.unreported++;
		else this.used += tokens;
	}

	/** Counts an answer that failed, if any of it may be billed. */
	countFailed({ kind, details }: Failure): void {
		const hasBegun = details !== undefined && 'content' in details;
		if (hasBegun || kind === 'timedOut') this.count(details?.usage);
	}

	/** Why no further question may be asked; `undefined` if one may. Call it right before each question. */
	refusal(): Failure | undefined {
		const { most, used } = this;
		if (!this.isSet || used < most) return undefined;
		return {
			kind: 'notSubmitted',
			message: budgetSpent({ option: OPTION, most, unit: 'tokens', scope: 'a run', taken: used }),
			advice: `${NOT_SENT} Raise '${OPTION}' under 'Cost and Speed', or send the item again in another run.`,
			details: { budget: { per: 'run', unit: 'tokens', most, used } },
		};
	}

	/** A hint about answers that could not be counted; empty if there are none. */
	get hint(): string {
		const remedy =
			"Leave the option 'Include Usage' on, or limit the number of items if the platform reports no token counts.";
		return unreportedTokens(this.isSet ? this.unreported : 0, 'answer(s)', OPTION, remedy);
	}
}
