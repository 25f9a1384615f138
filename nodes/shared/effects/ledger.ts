import pLimit, { type LimitFunction } from 'p-limit';

import { keyText, NEVER_MS, storable } from '../dataTable/cells';
import { ClaimLock, type ClaimStatus, type LockParts, type Mine, type Tried } from '../dataTable/claimLock';
import { Claim } from '../dataTable/claims';
import { STEPS_TOGETHER_MS } from '../dataTable/keyReads';
import type { TableRow } from '../dataTable/table';
import { fail, ok, NOT_SENT, type Failure, type Result } from '../errors/failure';
import { KeyedQueue } from '../time/keyedQueue';
import { excerpt } from '../text/json';
import { digestOf } from '../text/sha256';
import { textOrNumber } from '../text/textOf';
import { HeldKey } from './heldKey';
import { stateOf, type Attempt, type AttemptedBy, type KeyState, type RowState } from './ledgerRows';

/** Work that must not happen twice. */
export interface LedgerEntry {
	/** The key as the operator entered it. */
	readonly key: string;
	/** The hash of what will be sent: the same key with another hash is a mistake. */
	readonly payloadHash: string;
	/** The reason to give up before the claim is won, if there is one. */
	readonly whyStop?: () => Failure | undefined;
}

/**
 * - `mine`: claimed; send, then report the outcome to the key
 * - `exists`: the request was carried out; `reference` is the task's ID, or an agent's saved answer
 * - `conflict`: the key was used for another payload
 * - `unknown`: the work was begun, and its outcome is unknown
 */
export type LedgerAnswer =
	| { readonly kind: 'mine'; readonly held: HeldKey }
	| {
			readonly kind: 'exists';
			readonly reference: string;
			/** Whether the work is known to have succeeded; otherwise it may still be under way. */
			readonly finished: boolean;
			readonly by: AttemptedBy;
			/** Records how the work ended, because its holder may be gone. */
			ended(outcome: 'succeeded' | 'failed'): void;
	  }
	| { readonly kind: 'conflict' | 'unknown'; readonly by: AttemptedBy };

export interface LedgerSettings {
	/** The same key in another scope is another key. */
	readonly scope: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long entries are valid, in ms; 0 = forever. */
	readonly ttlMs: number;
	/** Whether work whose outcome is unknown may be done again. */
	readonly sendAgain: boolean;
	/** When to stop waiting, by the clock's `now()`. */
	readonly deadlineMs: number;
	/**
	 * The most claims at a time whose outcome is unknown; undefined if the caller limits them. If it is the number of
	 * requests that may be under way at once, a process that dies leaves behind no more claims than requests.
	 */
	readonly claimsAtOnce?: number;
}

/**
 * Queues the claims of each key within one n8n process. Only the first competes for the key with other processes; the
 * others learn the outcome from its claim, without reading the table. Otherwise, four executions with the same fifty
 * keys would each spend seconds on futile claims.
 */
export type ClaimQueue = KeyedQueue<HeldKey>;

interface LedgerParts extends LockParts {
	/** Shared by the process; undefined if the run shares no queue. */
	readonly queue?: ClaimQueue;
}

/**
 * How long a claim waits to be written with others while more wait for a permit: each write is a sub-execution. It is
 * shorter than the writer's delay, so that outcomes are written with the claims that follow.
 */
const CLAIMS_TOGETHER_MS = 80;
/** How often a queued claim checks whether to stop waiting. */
const STOP_CHECK_MS = 1_000;
/** The shortest lifetime of entries, so that they outlive the claims of other runs, whatever lifetime was entered. */
const SHORTEST_KEY_LIFE_MS = 10 * 60_000;

interface Wanted extends LedgerEntry {
	readonly entryKey: string;
}

type Answer = Exclude<LedgerAnswer, { kind: 'mine' }>;
type Seen = ClaimStatus<Answer>;

/**
 * Ensures that paid work is done only once across items, executions and workers: the item that claims a key does the
 * work and records the outcome for the others. Each claim in `won` has a permit until its key is settled.
 */
export class TableLedger {
	private readonly lock: ClaimLock;
	private readonly flushing = new AbortController();
	private readonly queue: ClaimQueue;
	private readonly permits: LimitFunction;
	/** The claims of this run that were won. */
	private readonly won = new Map<Claim, HeldKey>();

	constructor(
		private readonly settings: LedgerSettings,
		private readonly parts: LedgerParts,
	) {
		this.queue = parts.queue ?? new KeyedQueue();
		this.lock = new ClaimLock(parts);
		this.permits = pLimit(settings.claimsAtOnce ?? Infinity);
	}

	/**
	 * Asks for the right to do what `entry` stands for. Waits while another run is doing it, until that run is presumed
	 * dead after a long silence. A failure, whatever its reason, means that nothing may be sent.
	 */
	async claim(entry: LedgerEntry): Promise<Result<LedgerAnswer>> {
		const entryKey = digestOf(this.settings.scope, entry.key);
		const wanted = { ...entry, entryKey };
		// Each workflow has its own queue, because another workflow may be in another project, in which the same key
		// means something else.
		const slot = this.queue.enter(`${this.settings.workflowId} ${entryKey}`);
		let held: HeldKey | undefined;
		try {
			const { clock, signal } = this.parts;
			while (!slot.isFirst) {
				const stop = this.whyStop(wanted);
				if (stop) return fail(stop);
				await slot.wait(STOP_CHECK_MS, clock, signal);
			}
			const seen = slot.lastWord && this.seenAs(slot.lastWord.state, wanted);
			if (seen?.kind === 'known') return ok(seen.answer);
			const answer = await this.acquire(wanted);
			held = answer.ok && answer.value.kind === 'mine' ? answer.value.held : undefined;
			return answer;
		} finally {
			if (held) void this.settled(held).then(() => slot.leave(held));
			else slot.leave();
		}
	}

	/** Writes the rows that are still queued; must be called before the node ends, however it ends. */
	async flush(): Promise<Result<undefined>> {
		this.flushing.abort();
		return await this.lock.flush();
	}

	/** Waits until the outcome of the claim is known, or the run ends. */
	private async settled({ settled }: HeldKey): Promise<void> {
		const { clock, signal } = this.parts;
		await clock.sleep(Infinity, AbortSignal.any([settled, this.flushing.signal, signal]));
	}

	private async acquire(wanted: Wanted): Promise<Result<LedgerAnswer>> {
		const acquired = await this.lock.acquire<Answer>({
			entryKey: wanted.entryKey,
			cells: () => this.cells('claimed', wanted),
			statusOf: (rows) => this.statusOf(rows, wanted),
			whyStop: () => this.whyStop(wanted),
			withinMs: () => (this.permits.pendingCount > 0 ? CLAIMS_TOGETHER_MS : STEPS_TOGETHER_MS),
			permit: async (claiming) => await this.withPermit(wanted, claiming),
		});
		if (!acquired.ok)
			return acquired.failure.kind === 'badInput' ? fail(beforeAnything(acquired.failure)) : acquired;
		if (acquired.value.kind === 'known') return ok(acquired.value.answer);
		return ok({ kind: 'mine', held: this.hold(wanted, acquired.value) });
	}

	/** Claims once there is a permit, which is released when the claim is lost or settled. */
	private async withPermit(
		wanted: Wanted,
		claiming: () => Promise<Result<Tried<Answer>>>,
	): Promise<Result<Tried<Answer>>> {
		const { promise, resolve, reject } = Promise.withResolvers<Result<Tried<Answer>>>();
		const work = async (): Promise<void> => {
			const stop = this.whyStop(wanted);
			const tried = stop ? fail(stop) : await claiming();
			resolve(tried);
			if (tried.ok && tried.value?.kind === 'mine') await this.settled(this.hold(wanted, tried.value));
		};
		this.permits(work).catch(reject);
		return await promise;
	}

	private hold(wanted: Wanted, { claim, rows }: Mine): HeldKey {
		const known = this.won.get(claim);
		if (known) return known;
		const { executionId } = this.settings;
		const by = { executionId, atMs: this.parts.clock.wallNow() };
		const { holder } = claim;
		const held = new HeldKey({ holder, payloadHash: wanted.payloadHash, by, rowKeys: [] }, claim, {
			write: (state, reference) => {
				this.lock.end(claim);
				// What is known now replaces what dead holders left unknown.
				if (state !== 'unclear')
					for (const rowKey of rowKeysOf(rows, claim.takenFrom)) claim.standing.add(rowKey);
				this.lock.writer.add(claim, this.cells(state, wanted, reference));
			},
			giveBack: () => void this.lock.giveBack(claim),
			free: () => this.lock.ignored.add(holder),
		});
		this.won.set(claim, held);
		return held;
	}

	private statusOf(rows: readonly TableRow[], wanted: Wanted): Seen {
		const { lock, parts } = this;
		const state = stateOf(rows, parts.clock.wallNow(), lock.ignored, (holding) => lock.isDead(holding));
		return this.seenAs(state, wanted);
	}

	private seenAs(state: KeyState, wanted: Wanted): Seen {
		if (state.kind === 'free') return { kind: 'free', dead: [] };
		if (state.kind === 'held') return state;
		const { payloadHash, by } = state.attempt;
		// A person may have emptied the cell.
		if (payloadHash && payloadHash !== wanted.payloadHash) return known({ kind: 'conflict', by });
		if (state.kind === 'unclear') {
			if (!this.settings.sendAgain) return known({ kind: 'unknown', by });
			return { kind: 'free', dead: state.holders };
		}
		const { reference, finished, attempt } = state;
		let isReported = finished;
		const ended = (outcome: 'succeeded' | 'failed'): void => {
			if (isReported) return;
			isReported = true;
			this.endFor(attempt, wanted, outcome, reference);
		};
		return known({ kind: 'exists', reference, finished, by, ended });
	}

	/** Writes the end of another run's attempt. */
	private endFor(
		{ holder, rowKeys }: Attempt,
		wanted: Wanted,
		outcome: 'succeeded' | 'failed',
		reference: string,
	): void {
		if (outcome === 'failed') this.lock.ignored.add(holder);
		const cells = this.cells(outcome, wanted, reference);
		const claim = new Claim(wanted.entryKey, holder, [], () => cells);
		for (const rowKey of rowKeys) claim.standing.add(rowKey);
		this.lock.writer.add(claim, cells);
	}

	private cells(state: RowState, { key, payloadHash }: Wanted, reference = ''): TableRow {
		const { scope, workflowId, executionId, ttlMs } = this.settings;
		const atMs = this.parts.clock.wallNow();
		return {
			keyText: keyText(key),
			state,
			reference: storable(reference),
			scope,
			payloadHash,
			workflowId,
			executionId,
			atMs,
			expiresAtMs: ttlMs > 0 ? atMs + Math.max(ttlMs, SHORTEST_KEY_LIFE_MS) : NEVER_MS,
		};
	}

	private whyStop({ key, whyStop }: LedgerEntry): Failure | undefined {
		const { clock, signal } = this.parts;
		const stop = whyStop?.();
		if (stop) return stop;
		if (signal.aborted) return { ...NO_LONGER, kind: 'cancelled' };
		if (clock.now() < this.settings.deadlineMs) return undefined;
		const message = `The key "${excerpt(key, 60)}" could not be claimed before the timeout; another execution may still be working on it`;
		return { ...NO_LONGER, message };
	}
}

export type Ledger = Pick<TableLedger, 'claim' | 'flush'>;

function rowKeysOf(rows: readonly TableRow[], holders: readonly string[]): string[] {
	return rows
		.filter(({ holder }) => holders.includes(textOrNumber(holder)))
		.map(({ rowKey }) => textOrNumber(rowKey));
}

function known(answer: Answer): Seen {
	return { kind: 'known', answer };
}

const NO_LONGER: Failure = {
	kind: 'notSubmitted',
	message: 'The run ended before this item could be sent',
	advice: `${NOT_SENT} Run the node again with this item.`,
	details: { status: 'notSubmitted' },
};

function beforeAnything(failure: Failure): Failure {
	return { ...failure, advice: `${NOT_SENT} ${failure.advice}` };
}
