import type { Attempt, KeyState, RowKind, RowOutcome } from './rows';

/**
 * The right to do something once. One of `submitted`, `unanswered`, `ended` and `released` must be called, else
 * others take the claim for one whose owner died. All return at once; what they say is written in the background.
 */
export interface LedgerClaim {
	/** Nothing may be sent after this time, by the clock's `now()`: release the claim and claim again. */
	readonly sendByMs: number;
	/** It is done, and it is called `reference` from now on. */
	submitted(reference: string): void;
	/** It was sent, and no answer tells whether it was done. */
	unanswered(): void;
	/** How it ended. `failed` frees the key. */
	ended(outcome: 'succeeded' | 'failed', reference?: string): void;
	/** Nothing was sent, or it was refused: the key is free again. */
	released(): void;
	/** Keeps the claim alive while a long answer comes in: to be called once a minute. */
	renew(): void;
}

export interface ClaimCells {
	readonly reference?: string;
	readonly outcome?: RowOutcome;
}

/** What a claim does to the ledger. */
interface ClaimEffects {
	write(kind: RowKind, cells: ClaimCells): void;
	takeBack(): void;
	/** The attempt came to nothing: it stands in nobody's way any more. */
	over(): void;
}

/** A claim that was won, with what is known of it before it can be read in the table. */
export class HeldClaim implements LedgerClaim {
	private readonly settling = new AbortController();
	private known: KeyState;

	constructor(
		private readonly attempt: Attempt,
		readonly sendByMs: number,
		private readonly effects: ClaimEffects,
	) {
		this.known = { kind: 'pending', attempt };
	}

	get state(): KeyState {
		return this.known;
	}

	/** Aborted once it is told what came of the claim. */
	get settled(): AbortSignal {
		return this.settling.signal;
	}

	submitted(reference: string): void {
		if (this.known.kind !== 'pending' && this.known.kind !== 'unknown') return;
		this.become({ kind: 'made', attempt: this.attempt, reference, finished: false });
		this.effects.write('submitted', { reference });
	}

	unanswered(): void {
		if (this.known.kind !== 'pending') return;
		this.become({ kind: 'unknown', attempt: this.attempt });
		this.effects.write('done', { outcome: 'unanswered' });
	}

	ended(outcome: 'succeeded' | 'failed', answer?: string): void {
		const reference = answer ?? (this.known.kind === 'made' ? this.known.reference : '');
		if (this.known.kind === 'free' || (this.known.kind === 'made' && this.known.finished)) return;
		if (outcome === 'failed') this.giveUp();
		else this.become({ kind: 'made', attempt: this.attempt, reference, finished: true });
		this.effects.write('done', { outcome, reference });
	}

	released(): void {
		if (this.known.kind !== 'pending') return;
		this.giveUp();
		this.effects.takeBack();
	}

	renew(): void {
		if (this.known.kind === 'pending') this.effects.write('claim', {});
	}

	private giveUp(): void {
		this.effects.over();
		this.become({ kind: 'free' });
	}

	private become(state: KeyState): void {
		this.known = state;
		this.settling.abort();
	}
}
