import { CLAIM_COLUMNS, holdingsIn, notTaken, type Holding } from '../dataTable/claims';
import { CLOCKS_APART_MS } from '../dataTable/lifetime';
import type { TableRow, TableSpec } from '../dataTable/table';
import { excerpt } from '../text/json';
import { numberOf, textOrNumber } from '../text/textOf';

/*
 * The ledger's rows and what they say about a key. The ledger adds and removes rows and never changes them, but people
 * may edit the table in n8n, so no cell is trusted.
 */

/** One n8n Data Table per project. All rows of one `holder` are one attempt at a side effect. */
export const LEDGER_TABLE: TableSpec = {
	name: 'flow_task_ledger',
	columns: [
		{ name: 'keyText', type: 'string' }, // the key, for people who read the table
		{ name: 'state', type: 'string' }, // see RowState
		{ name: 'reference', type: 'string' }, // the task's ID, or the saved answer
		{ name: 'scope', type: 'string' },
		{ name: 'payloadHash', type: 'string' },
		{ name: 'workflowId', type: 'string' },
		{ name: 'executionId', type: 'string' },
		{ name: 'atMs', type: 'number' },
		{ name: 'expiresAtMs', type: 'number' },
		...CLAIM_COLUMNS,
	],
};

/**
 * How far an attempt has come, in this order, and only forward: its furthest row counts, wherever it stands.
 *
 * - `claimed`: no other attempt may be made, and nothing is known to have been sent
 * - `unclear`: the side effect was requested, but no answer said whether it happened
 * - `sent`: the side effect happened
 * - `failed`: the work failed, as a task may, and the key is free again
 * - `succeeded`: the work succeeded
 */
export type RowState = 'claimed' | 'unclear' | 'sent' | 'failed' | 'succeeded';

/** Who made an attempt, if the rows say so. */
export interface AttemptedBy {
	readonly executionId: string;
	/** When the key was claimed or the work submitted, in ms since the epoch; `undefined` if the table does not say. */
	readonly atMs: number | undefined;
}

export interface Attempt {
	readonly holder: string;
	readonly payloadHash: string;
	readonly by: AttemptedBy;
	/** Its rows as read; none if this run made the attempt. */
	readonly rowKeys: readonly string[];
}

/**
 * - `free`: any run may claim the key
 * - `held`: the key is claimed, and its living holder may be doing the work right now
 * - `made`: the side effect happened; `reference` names its result; `finished` if the work is known to have succeeded
 * - `unclear`: the side effect may have happened: the holder died before an answer came, or no answer came
 */
export type KeyState =
	| { readonly kind: 'free' }
	| { readonly kind: 'held'; readonly attempt: Attempt; readonly firstId?: number }
	| { readonly kind: 'unclear'; readonly attempt: Attempt; readonly holders: readonly string[] }
	| {
			readonly kind: 'made';
			readonly attempt: Attempt;
			readonly reference: string;
			readonly finished: boolean;
	  };

/**
 * Reads the state of a key from its rows, in any order. If attempts differ, `made` takes precedence over `held`, and
 * `held` over `unclear`, because waiting costs nothing. Of several that were made, one that another replaces counts
 * last.
 *
 * @param nowMs time of day
 * @param ignored holders to ignore, see `ClaimLock.ignored`
 * @param isDead whether a holder that has only claimed has been silent for so long that it must be dead
 */
export function stateOf(
	rows: readonly TableRow[],
	nowMs: number,
	ignored: ReadonlySet<string>,
	isDead: (holding: Holding) => boolean,
): KeyState {
	const attempts = holdingsIn(rows)
		.filter(({ holder }) => !ignored.has(holder))
		.map((holding) => ({ ...holding, state: attemptState(holding, nowMs, isDead) }))
		.filter(({ state }) => state.kind !== 'free');
	const made = attempts.filter(({ state }) => state.kind === 'made');
	const left = notTaken(attempts);
	const [first] = [
		...notTaken(made),
		...made,
		...left.filter(({ state }) => state.kind === 'held'),
		...left.filter(({ state }) => state.kind === 'unclear'),
	];
	if (first?.state.kind !== 'unclear') return first?.state ?? { kind: 'free' };
	return { ...first.state, holders: left.map(({ holder }) => holder) };
}

function isIn({ state }: TableRow, wanted: RowState): boolean {
	return textOrNumber(state).trim().toLowerCase() === wanted;
}

/** A row whose expiry cannot be read never expires, because it may stand for paid work. */
function isExpired({ expiresAtMs }: TableRow, nowMs: number): boolean {
	const atMs = numberOf(expiresAtMs);
	return atMs !== undefined && atMs <= nowMs;
}

/** The hash and the reference are read from the last row that has one; who and when from the first that has one. */
function attemptState(holding: Holding, nowMs: number, isDead: (holding: Holding) => boolean): KeyState {
	const { holder, rows: all, firstId } = holding;
	const onlyClaims = all.every((row) => isIn(row, 'claimed'));
	// A claim may be held although it looks expired, because clocks differ.
	const rows = all.filter((row) => !isExpired(row, onlyClaims ? nowMs - CLOCKS_APART_MS : nowMs));
	if (rows.length === 0) return FREE;
	const has = (state: RowState): boolean => rows.some((row) => isIn(row, state));
	if (has('failed') && !has('succeeded')) return FREE;
	const times = rows.flatMap(({ atMs }) => timeOf(atMs) ?? []);
	const attempt: Attempt = {
		holder,
		payloadHash: cells(rows, 'payloadHash').at(-1)?.trim() ?? '',
		by: {
			executionId: excerpt(cells(rows, 'executionId')[0] ?? ''),
			atMs: times[0],
		},
		rowKeys: cells(all, 'rowKey'),
	};
	const reference = cells(rows, 'reference').at(-1) ?? '';
	if (reference) return { kind: 'made', attempt, reference, finished: has('succeeded') };
	// Asked in any case, so that the silence is measured. A claim older than clocks can differ need not be watched.
	const isSilent = isDead(holding) || times.every((atMs) => Math.abs(nowMs - atMs) >= CLOCKS_APART_MS);
	if (!onlyClaims || isSilent) return { kind: 'unclear', attempt, holders: [holder] };
	return { kind: 'held', attempt, firstId };
}

const FREE: KeyState = { kind: 'free' };

/** The non-empty cells of a column. */
function cells(rows: readonly TableRow[], column: string): string[] {
	return rows.map((row) => textOrNumber(row[column])).filter((text) => text.trim());
}

/** The latest time that a Date can hold. */
const LAST_MS = 8.64e15;

function timeOf(cell: unknown): number | undefined {
	const atMs = numberOf(cell);
	return atMs !== undefined && atMs >= 0 && atMs <= LAST_MS ? atMs : undefined;
}
