import pLimit, { type LimitFunction } from 'p-limit';

import { KeyedQueue } from '../run/keyedQueue';
import { keyText, NEVER_MS, storable } from '../dataTable/cells';
import { KeyReads, STEPS_TOGETHER_MS, type KeyReadsParts } from '../dataTable/keyRows';
import type { DataTable, TableRow } from '../dataTable/table';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { excerpt } from '../text/json';
import { sha256 } from '../text/sha256';
import { HeldClaim, type ClaimCells, type LedgerClaim } from './claim';
import { ClaimLock, type ClaimStatus } from './claimLock';
import { CLAIM_FRESH_MS, silenceSeenBy, stateOf } from './rows';
import type { Holder, IsSilent, KeyState, RowKind } from './rows';
import { LedgerWriter } from './writer';

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
 * - `mine`: claimed; send, then report the outcome to the claim
 * - `exists`: the request was carried out; `reference` is the task's ID, or an agent's saved answer
 * - `conflict`: the key was used for another payload
 * - `unknown`: the work was begun, and its outcome is unknown
 */
export type LedgerAnswer =
	| { readonly kind: 'mine'; readonly claim: LedgerClaim }
	| {
			readonly kind: 'exists';
			readonly reference: string;
			/** Whether the work is known to have succeeded; otherwise it may still be under way. */
			readonly finished: boolean;
			readonly by: Holder;
			/** Records how the work ended, because its owner may be gone. */
			ended(outcome: 'succeeded' | 'failed'): void;
	  }
	| { readonly kind: 'conflict' | 'unknown'; readonly by: Holder };

export interface LedgerSettings {
	/** The same key in another scope is another key. */
	readonly scope: string;
	readonly workflowId: string;
	readonly executionId: string;
	/** How long entries are valid, in ms; 0 = forever. */
	readonly ttlMs: number;
	readonly onUnknown: 'error' | 'again';
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
export type ClaimQueue = KeyedQueue<HeldClaim>;

interface LedgerParts extends KeyReadsParts {
	/** The Data Table that `LEDGER_TABLE` specifies. */
	readonly table: DataTable;
	/** Shared by the process; undefined if the run shares no queue. */
	readonly queue?: ClaimQueue;
}

/** How long after a claim the request may still be sent. */
const SEND_WITHIN_MS = 60_000;
/**
 * How long a claim waits to be written with others while more wait for a permit: each write is a sub-execution. It is
 * shorter than the writer's delay, so that outcomes are written with the claims that follow.
 */
const CLAIMS_TOGETHER_MS = 80;
/** How often a queued claim checks whether to stop waiting. */
const STOP_CHECK_MS = 1_000;
/** The shortest lifetime of entries, so that they outlive the claims of other runs, whatever lifetime was entered. */
const SHORTEST_LIFE_MS = 10 * 60_000;

interface Wanted extends LedgerEntry {
	readonly entryKey: string;
}

type Answer = Exclude<LedgerAnswer, { kind: 'mine' }>;
type Seen = ClaimStatus<Answer>;
type Claimed = Result<Answer | { readonly kind: 'mine'; readonly claim: HeldClaim }>;

/**
 * Ensures that paid work is done only once across items, executions and workers: the item that claims a key does the
 * work and records the outcome for the others.
 */
export class TableLedger {
	private readonly writer: LedgerWriter;
	private readonly reads: KeyReads;
	private readonly lock: ClaimLock;
	private readonly isSilent: IsSilent;
	private readonly flushing = new AbortController();
	private readonly queue: ClaimQueue;
	private readonly permits: LimitFunction;

	constructor(
		private readonly settings: LedgerSettings,
		private readonly parts: LedgerParts,
	) {
		const { table, clock } = parts;
		this.writer = new LedgerWriter(table, clock);
		this.queue = parts.queue ?? new KeyedQueue();
		this.isSilent = silenceSeenBy(clock);
		this.reads = new KeyReads(parts);
		this.lock = new ClaimLock(table, this.writer, this.reads, clock);
		this.permits = pLimit(settings.claimsAtOnce ?? Infinity);
	}

	/**
	 * Asks for the right to do what `entry` stands for. Waits while another run is doing it, until that run is presumed
	 * dead after a long silence. A failure, whatever its reason, means that nothing may be sent.
	 */
	async claim(entry: LedgerEntry): Promise<Result<LedgerAnswer>> {
		// JSON keeps scope and key apart.
		const entryKey = sha256(JSON.stringify([this.settings.scope, entry.key]));
		const wanted = { ...entry, entryKey };
		// Each workflow has its own queue, because another workflow may be in another project, in which the same key
		// means something else.
		const slot = this.queue.enter(`${this.settings.workflowId} ${entryKey}`);
		let claim: HeldClaim | undefined;
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
			claim = answer.ok && answer.value.kind === 'mine' ? answer.value.claim : undefined;
			return answer;
		} finally {
			if (claim) void this.settled(claim).then(() => slot.leave(claim));
			else slot.leave();
		}
	}

	/** Writes the rows that are still queued; must be called before the node ends, however it ends. */
	async flush(): Promise<Result<undefined>> {
		this.flushing.abort();
		return await this.writer.flush();
	}

	/** Waits until the outcome of the claim is known, the claim is no longer fresh, or the run ends. */
	private async settled(claim: HeldClaim): Promise<void> {
		const { clock, signal } = this.parts;
		await clock.sleep(CLAIM_FRESH_MS, AbortSignal.any([claim.settled, this.flushing.signal, signal]));
	}

	private async acquire(wanted: Wanted): Promise<Claimed> {
		for (let reads = 0; ; reads++) {
			const seen = await this.readKey(wanted, reads);
			if (!seen.ok) return seen;
			if (seen.value.kind === 'known') return ok(seen.value.answer);
			if (seen.value.kind === 'pending') continue;
			const claimed = await this.claimWithPermit(wanted);
			if (!claimed.ok) return claimed;
			// If the claim was lost, the key is read again, because the other claims may all have been removed.
			if (claimed.value) return ok({ kind: 'mine', claim: claimed.value });
		}
	}

	private async readKey(wanted: Wanted, reads: number): Promise<Result<Seen>> {
		const stop = this.whyStop(wanted);
		if (stop) return fail(stop);
		const { entryKey } = wanted;
		const rows = await (reads === 0 ? this.reads.read(entryKey) : this.reads.readLater(entryKey, reads));
		return rows.ok ? ok(this.statusOf(rows.value, wanted)) : fail(beforeAnything(rows.failure));
	}

	private statusOf(rows: readonly TableRow[], wanted: Wanted): Seen {
		const isSilent = this.settings.onUnknown === 'again' ? this.isSilent : undefined;
		const state = stateOf(rows, this.parts.clock.wallNow(), this.lock.abandoned, isSilent);
		return this.seenAs(state, wanted);
	}

	/** Claims once there is a permit, which is released when the claim is lost or settled. */
	private async claimWithPermit(wanted: Wanted): Promise<Result<HeldClaim | undefined>> {
		const { promise, resolve, reject } = Promise.withResolvers<Result<HeldClaim | undefined>>();
		const work = async (): Promise<void> => {
			const claimed = await this.claimNow(wanted);
			resolve(claimed);
			if (claimed.ok && claimed.value) await this.settled(claimed.value);
		};
		this.permits(work).catch(reject);
		return await promise;
	}

	/** @returns `undefined` if the claim is lost */
	private async claimNow(wanted: Wanted): Promise<Result<HeldClaim | undefined>> {
		const stop = this.whyStop(wanted);
		if (stop) return fail(stop);
		const sinceMs = this.parts.clock.now();
		const won = await this.lock.claim({
			entryKey: wanted.entryKey,
			claimRow: (owner) => this.row('claim', wanted, owner),
			statusOf: (rows) => this.statusOf(rows, wanted),
			whyStop: () => this.whyStop(wanted),
			withinMs: this.permits.pendingCount > 0 ? CLAIMS_TOGETHER_MS : STEPS_TOGETHER_MS,
		});
		if (!won.ok) return fail(beforeAnything(won.failure));
		return ok(won.value === undefined ? undefined : this.hold(wanted, won.value, sinceMs));
	}

	private seenAs(state: KeyState, wanted: Wanted): Seen {
		if (state.kind === 'free' || state.kind === 'pending') return state;
		const { owner, payloadHash, by } = state.attempt;
		// A person may have emptied the cell.
		if (payloadHash && payloadHash !== wanted.payloadHash) return known({ kind: 'conflict', by });
		if (state.kind === 'unknown') {
			return this.settings.onUnknown === 'error' ? known({ kind: 'unknown', by }) : { kind: 'free' };
		}
		const { reference, finished } = state;
		let isReported = finished;
		const ended = (outcome: 'succeeded' | 'failed'): void => {
			if (isReported) return;
			isReported = true;
			if (outcome === 'failed') this.lock.abandoned.add(owner);
			this.writer.add(this.row('done', wanted, owner, { outcome, reference }));
		};
		return known({ kind: 'exists', reference, finished, by, ended });
	}

	private hold(wanted: Wanted, owner: string, sinceMs: number): HeldClaim {
		const { workflowId, executionId } = this.settings;
		const by = { workflowId, executionId, atMs: this.parts.clock.wallNow() };
		const { payloadHash } = wanted;
		return new HeldClaim({ owner, payloadHash, by }, sinceMs + SEND_WITHIN_MS, {
			write: (kind, cells) => this.writer.add(this.row(kind, wanted, owner, cells)),
			takeBack: () => this.writer.takeBack(owner),
			abandon: () => this.lock.abandoned.add(owner),
		});
	}

	private row(
		kind: RowKind,
		{ key, entryKey, payloadHash }: Wanted,
		owner: string,
		cells: ClaimCells = {},
	): TableRow {
		const { scope, workflowId, executionId, ttlMs } = this.settings;
		const atMs = this.parts.clock.wallNow();
		return {
			keyText: keyText(key),
			reference: storable(cells.reference ?? ''),
			outcome: cells.outcome ?? '',
			kind,
			scope,
			entryKey,
			payloadHash,
			owner,
			workflowId,
			executionId,
			atMs,
			expiresAtMs: ttlMs > 0 ? atMs + Math.max(ttlMs, SHORTEST_LIFE_MS) : NEVER_MS,
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

function known(answer: Answer): Seen {
	return { kind: 'known', answer };
}

const NO_LONGER: Failure = {
	kind: 'notSubmitted',
	message: 'The run ended before this item could be submitted',
	advice: 'Nothing was submitted for this item. Run the node again with this item.',
	details: { status: 'notSubmitted' },
};

function beforeAnything(failure: Failure): Failure {
	return { ...failure, advice: `Nothing was submitted for this item. ${failure.advice}` };
}
