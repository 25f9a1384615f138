import { badInput, fail, ok, type Failure, type Result } from '../errors/failure';
import { excerpt, type JsonObject } from '../text/json';
import type { HeldKey } from './heldKey';
import type { AttemptedBy } from './ledgerRows';
import type { Ledger, LedgerAnswer, LedgerEntry } from './ledger';

/*
 * The protocol of everything that is paid for or must not happen twice. An engine asks `due` right before it requests an
 * effect, and tells the ticket what became of it; which books are kept is not its concern.
 */

/** What a node run remembers of an effect for its own retries. */
export interface EffectMemory {
	/** @param isReused whether another run, or another item, requested it */
	sent?(reference: string, atMs: number, isReused?: boolean): void;
	/** @param said what is known of it */
	unclear(said?: string): void;
	/** @param answer what a retry outputs again */
	done(outcome: 'succeeded' | 'failed', answer?: object): void;
}

/** What is known of a request. `sent` and `done` may follow one another; each call returns at once. */
export class Ticket {
	constructor(
		private readonly memory: EffectMemory | undefined,
		/** The idempotency key that the effect holds, or whose effect it reuses. */
		private readonly key?: Pick<HeldKey, 'ended'> & Partial<HeldKey>,
	) {}

	/** Asked before each attempt to send; if false, nothing may be sent, and `due` must be asked again. */
	readonly maySend = (): boolean => this.key?.maySend?.() !== false;

	/** The request was carried out; `reference` names the result. */
	sent(reference: string, atMs: number): void {
		this.memory?.sent?.(reference, atMs);
		this.key?.sent?.(reference);
	}

	/** The request was sent, but no answer said whether it was carried out. */
	unclear(said?: string): void {
		this.memory?.unclear(said);
		this.key?.unclear?.();
	}

	/** Nothing was sent, or the request was refused. */
	refused(): void {
		this.key?.refused?.();
	}

	/**
	 * The work ended.
	 * @param reference what the key then names, if not what `sent` named
	 * @param answer what a retry of this run outputs again
	 */
	done(outcome: 'succeeded' | 'failed', reference?: string, answer?: object): void {
		this.key?.ended(outcome, reference);
		this.memory?.done(outcome, answer);
	}

	/** The run has what it asked for, although the work goes on. */
	delivered(): void {
		this.memory?.done('succeeded');
	}
}

/** An effect of the same key: what was carried out, by whom, and whether it is known to have succeeded. */
export type Reused = Extract<LedgerAnswer, { kind: 'exists' }>;

export type Due =
	{ readonly kind: 'go'; readonly ticket: Ticket } | { readonly kind: 'reuse'; readonly known: Reused };

/** How a node tells why a key lets nothing happen. */
export interface KeyWords {
	/** What else the key was used for, e.g. `another message`. */
	readonly otherUse: string;
	readonly conflictAdvice: string;
	readonly unknown: (key: string, who: string) => string;
	readonly unknownAdvice: string;
	readonly unknownDetails: JsonObject;
}

interface DueQuestion {
	/** Undefined if the effect has no idempotency key. */
	readonly entry: LedgerEntry | undefined;
	/** Asks the limit per day and writes the log; called last, so that it counts only what is about to be sent. */
	readonly admit: (() => Promise<Result<undefined>>) | undefined;
	readonly memory: EffectMemory | undefined;
	readonly words: KeyWords;
}

/** Asks whether an effect may be requested now. A failure, whatever its reason, means that nothing may be sent. */
export async function due(ledger: Ledger | undefined, question: DueQuestion): Promise<Result<Due>> {
	const { entry, admit, memory, words } = question;
	const claimed = entry && (await ledger?.claim(entry));
	if (claimed?.ok === false) return claimed;
	const answer = claimed?.value;
	if (answer?.kind === 'exists') return ok({ kind: 'reuse', known: answer });
	const held = answer?.kind === 'mine' ? answer.held : undefined;
	if (entry && answer && 'by' in answer) return fail(whyNot(entry.key, answer, words));
	const ticket = new Ticket(memory, held);
	const admitted = await admit?.();
	if (admitted?.ok !== false) return ok({ kind: 'go', ticket });
	ticket.refused();
	return admitted;
}

/** Who used a key, as messages name it. */
export function nameOfUser({ executionId }: AttemptedBy): string {
	return executionId ? `execution ${executionId}` : 'another execution';
}

export function shownKey(key: string): string {
	return excerpt(key, 80);
}

function whyNot(
	key: string,
	{ kind, by }: Extract<LedgerAnswer, { kind: 'conflict' | 'unknown' }>,
	words: KeyWords,
): Failure {
	const shown = shownKey(key);
	const who = nameOfUser(by);
	const details = { idempotencyKey: shown, executionId: by.executionId };
	if (kind === 'conflict') {
		const message = `The idempotency key "${shown}" was used by ${who} for ${words.otherUse}`;
		return badInput(message, words.conflictAdvice, details);
	}
	return {
		kind: 'unclear',
		message: words.unknown(shown, who),
		advice: words.unknownAdvice,
		details: { ...details, ...words.unknownDetails },
	};
}
