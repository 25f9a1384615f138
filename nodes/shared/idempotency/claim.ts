import type { Attempt, KeyState, RowKind, RowOutcome } from './rows';

export interface ClaimCells {
	readonly reference?: string;
	readonly outcome?: RowOutcome;
}

/** What a claim does to the ledger. */
interface ClaimEffects {
	write(kind: RowKind, cells?: ClaimCells): void;
	takeBack(): void;
	/** Gives up the attempt: its rows no longer count. */
	abandon(): void;
}

/**
 * The right to do something once. Call `submitted`, `unanswered`, `ended` or `released`, or other runs will presume its
 * owner dead. All of these return at once and write in the background.
 */
export type LedgerClaim = Pick<
	HeldClaim,
	'sendByMs' | 'submitted' | 'unanswered' | 'ended' | 'released' | 'renew'
>;

/** A claim that was won, and its outcome before the table shows it. */
export class HeldClaim {
	private readonly settling = new AbortController();
	readonly settled = this.settling.signal;
	state: KeyState;

	/** @param sendByMs after this time, by the clock's `now()`, nothing may be sent: release the claim and claim again */
	constructor(
		private readonly attempt: Attempt,
		readonly sendByMs: number,
		private readonly effects: ClaimEffects,
	) {
		this.state = { kind: 'pending', attempt };
	}

	/** Records that the request was carried out; `reference` names the result. */
	submitted(reference: string): void {
		if (this.state.kind !== 'pending' && this.state.kind !== 'unknown') return;
		this.settle({ kind: 'made', attempt: this.attempt, reference, finished: false });
		this.effects.write('submitted', { reference });
	}

	/** Records that the request was sent, but no answer said whether it was carried out. */
	unanswered(): void {
		if (this.state.kind !== 'pending') return;
		this.settle({ kind: 'unknown', attempt: this.attempt });
		this.effects.write('done', { outcome: 'unanswered' });
	}

	/** Records how the work ended; `failed` frees the key. */
	ended(outcome: 'succeeded' | 'failed', answer?: string): void {
		const { state, attempt } = this;
		if (state.kind === 'free' || (state.kind === 'made' && state.finished)) return;
		const reference = answer ?? (state.kind === 'made' ? state.reference : '');
		this.settle(outcome === 'failed' ? FREE : { kind: 'made', attempt, reference, finished: true });
		this.effects.write('done', { outcome, reference });
	}

	/** Frees the key, because nothing was sent or the request was refused. */
	released(): void {
		if (this.state.kind !== 'pending') return;
		this.settle(FREE);
		this.effects.takeBack();
	}

	/** Keeps the claim alive during a long answer; to be called once a minute. */
	renew(): void {
		if (this.state.kind === 'pending') this.effects.write('claim');
	}

	private settle(state: KeyState): void {
		if (state.kind === 'free') this.effects.abandon();
		this.state = state;
		this.settling.abort();
	}
}

const FREE: KeyState = { kind: 'free' };
