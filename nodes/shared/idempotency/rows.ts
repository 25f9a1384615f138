import type { Clock } from '../run/clock';
import { CLOCKS_APART_MS } from '../dataTable/lifetime';
import type { TableRow, TableSpec } from '../dataTable/table';
import { excerpt } from '../text/json';
import { numberOf, textOrNumber } from '../text/textOf';

/*
 * The ledger's rows and what they say about a key. The ledger adds and removes rows and never changes them, but people
 * may edit the table in n8n, so no cell is trusted.
 */

/**
 * One n8n Data Table per project. All rows of one `owner` are one attempt at a side effect:
 *
 * - `claim`: no other attempt may be made; the owner adds more during a long answer, and removes all if nothing was done
 * - `submitted`: the side effect happened; `reference` is the task's ID
 * - `done`: the attempt ended; `outcome` says how, and `reference` is the task's ID or the saved answer, if any
 */
export const LEDGER_TABLE: TableSpec = {
	name: 'flow_task_ledger',
	columns: [
		{ name: 'keyText', type: 'string' }, // the key, for people who read the table
		{ name: 'kind', type: 'string' },
		{ name: 'reference', type: 'string' },
		{ name: 'outcome', type: 'string' },
		{ name: 'scope', type: 'string' },
		{ name: 'entryKey', type: 'string' }, // digest of scope and key: what is looked up
		{ name: 'payloadHash', type: 'string' },
		{ name: 'owner', type: 'string' }, // unique to the attempt
		{ name: 'workflowId', type: 'string' },
		{ name: 'executionId', type: 'string' },
		{ name: 'atMs', type: 'number' },
		{ name: 'expiresAtMs', type: 'number' },
	],
};

export type RowKind = 'claim' | 'submitted' | 'done';

/**
 * - `succeeded`: the work succeeded
 * - `failed`: the work failed, as a task may, and the key is free again
 * - `unanswered`: the side effect was requested, but no answer said whether it happened
 */
export type RowOutcome = 'succeeded' | 'failed' | 'unanswered';

/** Who made an attempt, if the rows say so. */
export interface Holder {
	readonly executionId: string;
	readonly workflowId: string;
	/** When the key was claimed or the work submitted, in ms since the epoch; `undefined` if the table does not say. */
	readonly atMs: number | undefined;
}

export interface Attempt {
	readonly owner: string;
	readonly payloadHash: string;
	readonly by: Holder;
}

/**
 * - `free`: any run may claim the key
 * - `pending`: the key is claimed, and the owner of the claim may be doing the work right now
 * - `made`: the side effect happened; `reference` names its result; `finished` if the work is known to have succeeded
 * - `unknown`: the side effect may have happened: the owner died before an answer came, or no answer came
 */
export type KeyState =
	| { readonly kind: 'free' }
	| { readonly kind: 'pending'; readonly attempt: Attempt; readonly firstId?: number }
	| { readonly kind: 'unknown'; readonly attempt: Attempt }
	| {
			readonly kind: 'made';
			readonly attempt: Attempt;
			readonly reference: string;
			readonly finished: boolean;
	  };

/**
 * How long a claim counts as alive without a new row. Its owner sends within 60 s of claiming. Within another 120 s
 * (60 s for the response headers, 60 s for the body), it gets an answer, gives up or renews the claim; the rest allows
 * for slow databases and clocks that differ.
 */
export const CLAIM_FRESH_MS = 200_000;

/** Whether a claim has had no new row for `CLAIM_FRESH_MS`. @param lastId the ID of the claim's last row */
export type IsSilent = (owner: string, lastId: number) => boolean;

/** Measures silence from when the run first saw the row, so that wall clocks do not matter. */
export function silenceSeenBy(clock: Pick<Clock, 'now'>): IsSilent {
	const firstSeenMs = new Map<string, number>();
	return (owner, lastId) => {
		const row = `${owner} ${lastId}`;
		const sinceMs = firstSeenMs.get(row) ?? clock.now();
		firstSeenMs.set(row, sinceMs);
		return clock.now() - sinceMs >= CLAIM_FRESH_MS;
	};
}

/**
 * Reads the state of a key from its rows, in any order. If attempts differ, `made` takes precedence over `pending`, and
 * `pending` over `unknown`, because waiting costs nothing.
 *
 * @param nowMs time of day
 * @param own owners to ignore, see `ClaimLock.abandoned`
 * @param isSilent asked before a claim younger than `CLOCKS_APART_MS` counts as dead, because a wrong wall clock can
 *   make it look old; not needed if a dead claim does not free the key
 */
export function stateOf(
	rows: readonly TableRow[],
	nowMs: number,
	own: ReadonlySet<string>,
	isSilent: IsSilent = () => true,
): KeyState {
	const sorted = [...rows].sort((a, b) => Number(a.id) - Number(b.id));
	const attempts = Map.groupBy(sorted, ({ owner, id }) => textOrNumber(owner) || `row ${String(id)}`);
	const states = [...attempts]
		.filter(([owner]) => !own.has(owner))
		.map(([owner, ofOwner]) => attemptState(owner, ofOwner, nowMs, isSilent));
	for (const kind of ['made', 'pending', 'unknown'] as const) {
		const state = states.find((one) => one.kind === kind);
		if (state) return state;
	}
	return { kind: 'free' };
}

/** A row whose expiry cannot be read never expires, because it may stand for paid work. */
function isExpired({ expiresAtMs }: TableRow, nowMs: number): boolean {
	const atMs = numberOf(expiresAtMs);
	return atMs !== undefined && atMs <= nowMs;
}

/**
 * @param all the rows of an attempt, by ID: outcome, hash and reference are read from the last row that has one;
 *   execution, workflow and time from the first that has one
 */
function attemptState(owner: string, all: readonly TableRow[], nowMs: number, isSilent: IsSilent): KeyState {
	const onlyClaims = all.every(({ kind }) => textOrNumber(kind).trim().toLowerCase() === 'claim');
	// A claim may be held although it looks expired, because clocks differ.
	const rows = all.filter((row) => !isExpired(row, onlyClaims ? nowMs - CLOCKS_APART_MS : nowMs));
	if (rows.length === 0) return { kind: 'free' };
	const outcome = lastOf(rows, 'outcome').trim().toLowerCase();
	if (outcome === 'failed') return { kind: 'free' };
	const times = rows.flatMap(({ atMs }) => timeOf(atMs) ?? []);
	const attempt: Attempt = {
		owner,
		payloadHash: lastOf(rows, 'payloadHash').trim(),
		by: {
			executionId: excerpt(cells(rows, 'executionId')[0] ?? ''),
			workflowId: excerpt(cells(rows, 'workflowId')[0] ?? ''),
			atMs: times[0],
		},
	};
	const reference = lastOf(rows, 'reference');
	if (reference) return { kind: 'made', attempt, reference, finished: outcome === 'succeeded' };
	// A claim from the far future is not fresh: otherwise a wrong clock would hold the key until then.
	const ageMs = Math.min(...times.map((atMs) => Math.abs(nowMs - atMs)));
	const isDead = (): boolean =>
		ageMs >= CLAIM_FRESH_MS && (ageMs >= CLOCKS_APART_MS || isSilent(owner, Number(rows.at(-1)?.id)));
	if (!onlyClaims || outcome || isDead()) return { kind: 'unknown', attempt };
	return { kind: 'pending', attempt, firstId: Number(rows[0]?.id) };
}

/** The non-empty cells of a column. */
function cells(rows: readonly TableRow[], column: string): string[] {
	return rows.map((row) => textOrNumber(row[column])).filter((text) => text.trim());
}

function lastOf(rows: readonly TableRow[], column: string): string {
	return cells(rows, column).at(-1) ?? '';
}

/** The latest time that a Date can hold. */
const LAST_MS = 8.64e15;

function timeOf(cell: unknown): number | undefined {
	const atMs = numberOf(cell);
	return atMs !== undefined && atMs >= 0 && atMs <= LAST_MS ? atMs : undefined;
}
