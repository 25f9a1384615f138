import type { Claim } from '../dataTable/claims';
import type { Attempt, KeyState, RowState } from './ledgerRows';

/** What the holder of a key does to the ledger. */
interface KeyEffects {
	write(state: RowState, reference?: string): void;
	/** Removes the claim, because nothing was done. */
	giveBack(): void;
	/** Lets others of this run have the key at once. */
	free(): void;
}

/**
 * The right to do something once. Call `sent`, `unclear`, `ended` or `refused`, or other runs will presume its holder
 * dead. All of these return at once and write in the background.
 */
export class HeldKey {
	private readonly settling = new AbortController();
	/** Aborted once the outcome is known, even if the table does not show it yet. */
	readonly settled = this.settling.signal;
	state: KeyState;

	constructor(
		private readonly attempt: Attempt,
		private readonly claim: Pick<Claim, 'isFresh'>,
		private readonly effects: KeyEffects,
	) {
		this.state = { kind: 'held', attempt };
	}

	/** Asked before each attempt to send: if false, nothing may be sent, and the key must be claimed again. */
	readonly maySend = (): boolean => this.claim.isFresh;

	/** Records that the request was carried out; `reference` names the result. */
	sent(reference: string): void {
		if (this.state.kind !== 'held' && this.state.kind !== 'unclear') return;
		this.settle({ kind: 'made', attempt: this.attempt, reference, finished: false });
		this.effects.write('sent', reference);
	}

	/** Records that the request was sent, but no answer said whether it was carried out. */
	unclear(): void {
		if (this.state.kind !== 'held') return;
		const { attempt } = this;
		this.settle({ kind: 'unclear', attempt, holders: [attempt.holder] });
		this.effects.write('unclear');
	}

	/** Records how the work ended; `failed` frees the key. */
	ended(outcome: 'succeeded' | 'failed', answer?: string): void {
		const { state, attempt } = this;
		if (state.kind === 'free' || (state.kind === 'made' && state.finished)) return;
		const reference = answer ?? (state.kind === 'made' ? state.reference : '');
		this.settle(outcome === 'failed' ? FREE : { kind: 'made', attempt, reference, finished: true });
		this.effects.write(outcome, reference);
	}

	/** Frees the key, because nothing was sent or the request was refused. */
	refused(): void {
		if (this.state.kind !== 'held') return;
		this.settle(FREE);
		this.effects.giveBack();
	}

	private settle(state: KeyState): void {
		if (state.kind === 'free') this.effects.free();
		this.state = state;
		this.settling.abort();
	}
}

const FREE: KeyState = { kind: 'free' };
