import fc from 'fast-check';
import type { TableRow } from '../../../../nodes/shared/dataTable/table';
import {
	CLAIM_FRESH_MS,
	LEDGER_TABLE,
	stateOf,
	type KeyState,
} from '../../../../nodes/shared/idempotency/rows';

const NOW = Date.UTC(2030, 0, 1);
const NOBODY = new Set<string>();

let lastId = 0;
/** A row as the ledger writes it, with the cells in `over` replaced. */
function row(kind: string, over: TableRow = {}): TableRow {
	return {
		id: ++lastId,
		keyText: 'order 1',
		kind,
		reference: '',
		outcome: '',
		scope: 'task',
		entryKey: 'e',
		payloadHash: 'p',
		owner: 'A',
		workflowId: 'w',
		executionId: '7',
		atMs: NOW - 1_000,
		expiresAtMs: NOW + 1_000_000,
		...over,
	};
}

/** A short description of the state: its kind, its owner and its task. */
function told(rows: readonly TableRow[], own: ReadonlySet<string> = NOBODY): string {
	const state = stateOf(rows, NOW, own);
	if (state.kind === 'free') return 'free';
	const what = state.kind === 'made' ? ` ${state.reference}${state.finished ? ' finished' : ''}` : '';
	return `${state.kind} ${state.attempt.owner}${what}`;
}

const stale = { atMs: NOW - CLAIM_FRESH_MS };
const task = { reference: 't1' };
const gone = { expiresAtMs: NOW };
const B = { owner: 'B' };

it.each<[string, TableRow[], string]>([
	['no rows', [], 'free'],
	['a fresh claim', [row('claim')], 'pending A'],
	['a claim almost too old', [row('claim', { atMs: NOW - CLAIM_FRESH_MS + 1 })], 'pending A'],
	['a claim too old', [row('claim', stale)], 'unknown A'],
	['an old claim, renewed', [row('claim', stale), row('claim')], 'pending A'],
	['a claim by a clock slightly ahead', [row('claim', { atMs: NOW + 5_000 })], 'pending A'],
	['a claim by a clock far ahead', [row('claim', { atMs: NOW + CLAIM_FRESH_MS })], 'unknown A'],
	['a task', [row('claim', stale), row('submitted', task)], 'made A t1'],
	['a task whose claim is gone', [row('submitted', task)], 'made A t1'],
	[
		'a task that succeeded',
		[row('claim'), row('submitted', task), row('done', { ...task, outcome: 'succeeded' })],
		'made A t1 finished',
	],
	[
		'a task that failed',
		[row('claim'), row('submitted', task), row('done', { ...task, outcome: 'failed' })],
		'free',
	],
	['the outcome alone', [row('done', { ...task, outcome: 'succeeded' })], 'made A t1 finished'],
	['no answer to a submit', [row('claim'), row('done', { outcome: 'unanswered' })], 'unknown A'],
	[
		'no answer at first',
		[row('claim'), row('done', { outcome: 'unanswered' }), row('submitted', task)],
		'made A t1',
	],
	['an outcome without a reference', [row('claim'), row('done', { outcome: 'succeeded' })], 'unknown A'],
	['expired rows', [row('claim', { ...stale, ...gone }), row('submitted', { ...task, ...gone })], 'free'],
	['an expired claim of a living task', [row('claim', gone), row('submitted', task)], 'made A t1'],
	['a failure, then a new claim', [row('done', { outcome: 'failed' }), row('claim', B)], 'pending B'],
	['a task and a claim', [row('claim', B), row('submitted', task)], 'made A t1'],
	['a fresh claim and an old one', [row('claim', stale), row('claim', B)], 'pending B'],
	[
		'two tasks, of which the first counts',
		[row('submitted', task), row('submitted', { ...B, reference: 't2' })],
		'made A t1',
	],
])('reads the state of a key from: %s', (_name, rows, state) => {
	expect(told(rows)).toBe(state);
	// n8n reads rows in the order of their IDs, but the state does not depend on it.
	expect(told(rows.toReversed())).toBe(state);
});

it('leaves out the attempts of its own run', () => {
	const rows = [row('claim'), row('claim', B)];
	expect(told(rows, new Set(['A']))).toBe('pending B');
	expect(told(rows, new Set(['A', 'B']))).toBe('free');
});

it('finds the first of several claims', () => {
	const [first, second] = [row('claim', B), row('claim')];
	expect(stateOf([second, first], NOW, NOBODY)).toMatchObject({ kind: 'pending', firstId: first.id });
});

it('says who holds the key and since when', () => {
	const state = stateOf([row('claim', { atMs: NOW - 9 }), row('submitted', task)], NOW, NOBODY);
	expect(state).toMatchObject({ attempt: { by: { executionId: '7', workflowId: 'w', atMs: NOW - 9 } } });
});

it.each([1e17, -1e17, 8.64e15 + 1, -1, Infinity])('does not accept %d as a time', (atMs) => {
	const state = stateOf([row('submitted', { ...task, atMs })], NOW, NOBODY);
	expect(state).toMatchObject({ kind: 'made', attempt: { by: { atMs: undefined } } });
});

it('quotes no more of a holder than fits into a sentence', () => {
	const long = 'x'.repeat(5_000_000);
	const state = stateOf([row('claim', { executionId: long, workflowId: long })], NOW, NOBODY);
	expect(JSON.stringify(state).length).toBeLessThan(1_000);
});

describe('rows that people edited', () => {
	it.each<[string, TableRow[], string]>([
		[
			'the outcome set to Failed',
			[row('claim', stale), row('submitted', { ...task, outcome: ' Failed ' })],
			'free',
		],
		['the ID entered by hand', [row('claim', { ...stale, ...task })], 'made A t1'],
		['the ID removed', [row('claim'), row('submitted', { reference: '  ' })], 'unknown A'],
		['the kind changed', [row('klaim')], 'unknown A'],
		['the kind in capitals', [row(' CLAIM ')], 'pending A'],
		['the kind emptied', [row('', { kind: null })], 'unknown A'],
		['the owner emptied', [row('submitted', { ...task, owner: null, id: 5 })], 'made row 5 t1'],
		['the time emptied', [row('claim', { atMs: null })], 'unknown A'],
		['the time as text', [row('claim', { atMs: String(NOW) })], 'pending A'],
		['the time set to the far future', [row('claim', { atMs: 1e17 })], 'unknown A'],
		['the time set to the far past', [row('claim', { atMs: -1e17 })], 'unknown A'],
		['the expiry set to the far future', [row('submitted', { ...task, expiresAtMs: 1e300 })], 'made A t1'],
		['the expiry emptied', [row('submitted', { ...task, expiresAtMs: null })], 'made A t1'],
		['the expiry garbled', [row('submitted', { ...task, expiresAtMs: 'never' })], 'made A t1'],
		['an outcome of their own', [row('claim', { outcome: 'see ticket 7' })], 'unknown A'],
		['an ID that is a number', [row('submitted', { reference: 42 })], 'made A 42'],
	])('are read with %s', (_name, rows, state) => {
		expect(told(rows)).toBe(state);
	});

	const cell = fc.oneof(
		fc.string(),
		fc.constantFrom('claim', 'submitted', 'done', 'failed', 'A', 't1', ''),
		fc.double(),
		fc.integer({ min: NOW - 300_000, max: NOW + 300_000 }),
		fc.boolean(),
		fc.constant(null),
	);
	const anyRow = fc.dictionary(
		fc.constantFrom('id', 'extra', '__proto__', ...LEDGER_TABLE.columns.map(({ name }) => name)),
		cell,
	);

	it('never cause an exception', () => {
		fc.assert(
			fc.property(fc.array(anyRow), (rows) => {
				const state: KeyState = stateOf(rows, NOW, NOBODY);
				expect(['free', 'pending', 'unknown', 'made']).toContain(state.kind);
				if (state.kind === 'made') expect(state.reference.trim()).not.toBe('');
			}),
		);
	});

	it('never hide the task of an unedited row', () => {
		fc.assert(
			fc.property(fc.array(anyRow), fc.nat(), (rows, at) => {
				const kept = row('submitted', { ...task, owner: 'kept' });
				const all = [...rows.slice(0, at), kept, ...rows.slice(at)];
				expect(stateOf(all, NOW, NOBODY).kind).toBe('made');
			}),
		);
	});
});

it('uses no column name that n8n reserves', () => {
	for (const { name } of LEDGER_TABLE.columns) {
		expect(name).toMatch(/^[a-zA-Z][a-zA-Z0-9]{0,40}$/);
		expect(['id', 'createdat', 'updatedat']).not.toContain(name.toLowerCase());
	}
});
