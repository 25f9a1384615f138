import fc from 'fast-check';
import type { TableRow } from '../../../../nodes/shared/dataTable/table';
import { LEDGER_TABLE, stateOf, type KeyState } from '../../../../nodes/shared/effects/ledgerRows';

const NOW = Date.UTC(2030, 0, 1);
const NOBODY = new Set<string>();

let lastId = 0;
/** A row as the ledger writes it, with the cells in `over` replaced. */
function row(state: string, over: TableRow = {}): TableRow {
	return {
		id: ++lastId,
		keyText: 'order 1',
		state,
		reference: '',
		scope: 'task',
		payloadHash: 'p',
		workflowId: 'w',
		executionId: '7',
		atMs: NOW - 1_000,
		expiresAtMs: NOW + 1_000_000,
		entryKey: 'e',
		holder: 'A',
		takenFrom: '',
		rowKey: `r${lastId}`,
		...over,
	};
}

/** @param dead the holders that are presumed dead */
function read(rows: readonly TableRow[], dead = '', ignored: ReadonlySet<string> = NOBODY): KeyState {
	return stateOf(rows, NOW, ignored, ({ holder }) => dead.includes(holder));
}

/** A short description of the state: its kind, its holder and its task. */
function told(...given: Parameters<typeof read>): string {
	const state = read(...given);
	if (state.kind === 'free') return 'free';
	const what = state.kind === 'made' ? ` ${state.reference}${state.finished ? ' finished' : ''}` : '';
	return `${state.kind} ${state.attempt.holder}${what}`;
}

const task = { reference: 't1' };
const gone = { expiresAtMs: NOW };
const B = { holder: 'B' };
const C = { holder: 'C' };

it.each<[string, TableRow[], string, string?]>([
	['no rows', [], 'free'],
	['a claim', [row('claimed')], 'held A'],
	['the claim of a dead holder', [row('claimed')], 'unclear A', 'A'],
	['a claim by a clock slightly ahead', [row('claimed', { atMs: NOW + 5_000 })], 'held A'],
	['a claim older than clocks can differ', [row('claimed', { atMs: NOW - 7_200_000 })], 'unclear A'],
	['the same, renewed', [row('claimed', { atMs: NOW - 7_200_000 }), row('claimed')], 'held A'],
	['a task', [row('claimed'), row('sent', task)], 'made A t1'],
	['a task and a renewal that hung until its end', [row('sent', task), row('claimed')], 'made A t1', 'A'],
	['a task whose claim is gone', [row('sent', task)], 'made A t1'],
	['a task that succeeded', [row('sent', task), row('succeeded', task)], 'made A t1 finished'],
	['a success, then a late claim', [row('succeeded', task), row('claimed')], 'made A t1 finished'],
	['a task that failed', [row('sent', task), row('failed', task)], 'free'],
	['a failure, then a late claim', [row('failed', task), row('claimed')], 'free'],
	['two ends of one task', [row('succeeded', task), row('failed', task)], 'made A t1 finished'],
	['the end alone', [row('succeeded', task)], 'made A t1 finished'],
	['no answer to a submit', [row('claimed'), row('unclear')], 'unclear A'],
	['no answer at first', [row('unclear'), row('sent', task)], 'made A t1'],
	['an end without a reference', [row('claimed'), row('succeeded')], 'unclear A'],
	['expired rows', [row('claimed', { ...gone, atMs: 0 }), row('sent', { ...task, ...gone })], 'free'],
	['an expired claim of a living task', [row('claimed', gone), row('sent', task)], 'made A t1'],
	['a failure, then a new claim', [row('failed'), row('claimed', B)], 'held B'],
	['a task and a claim', [row('claimed', B), row('sent', task)], 'made A t1'],
	['a living holder and a dead one', [row('claimed'), row('claimed', B)], 'held B', 'A'],
	['two tasks', [row('sent', task), row('sent', { ...B, reference: 't2' })], 'made A t1'],
	['a taker', [row('claimed'), row('claimed', { ...B, takenFrom: 'A' })], 'held B', 'A'],
	['a dead taker', [row('claimed'), row('claimed', { ...B, takenFrom: 'A' })], 'unclear B', 'A B'],
	[
		'a taker whose forerunner lived and made a task',
		[row('sent', task), row('claimed', { ...B, takenFrom: 'A' })],
		'made A t1',
	],
	[
		'tasks of a taker and its forerunner',
		[row('sent', task), row('sent', { ...B, reference: 't2', takenFrom: 'A' })],
		'made B t2',
	],
	[
		'a taker of two, one of which names the other',
		[row('unclear'), row('claimed', { ...B, takenFrom: 'A' }), row('claimed', { ...C, takenFrom: 'A B' })],
		'held C',
		'B',
	],
])('reads the state of a key from: %s', (...[name, rows, state, dead]) => {
	expect(told(rows, dead)).toBe(state);
	// The state does not depend on the order, not even if a person has re-imported the rows, with other IDs.
	expect(told(rows.toReversed(), dead)).toBe(state);
	if (name !== 'two tasks') {
		const other = rows.map((one, at) => ({ ...one, id: 1_000 - at }));
		expect(told(other, dead)).toBe(state);
	}
});

it('leaves out the attempts that it is told to ignore', () => {
	const rows = [row('claimed'), row('claimed', B)];
	expect(told(rows, '', new Set(['A']))).toBe('held B');
	expect(told(rows, '', new Set(['A', 'B']))).toBe('free');
});

it('finds the first of several claims, and all dead holders that a new claim replaces', () => {
	const [first, second] = [row('claimed', B), row('claimed')];
	expect(read([second, first])).toMatchObject({ kind: 'held', firstId: first.id });
	expect(read([second, first], 'A B')).toMatchObject({ kind: 'unclear', holders: ['B', 'A'] });
});

it('says who holds the key and since when', () => {
	const state = read([row('claimed', { atMs: NOW - 9 }), row('sent', task)]);
	expect(state).toMatchObject({ attempt: { by: { executionId: '7', atMs: NOW - 9 } } });
});

it.each([1e17, -1e17, 8.64e15 + 1, -1, Infinity])('does not accept %d as a time', (atMs) => {
	const state = read([row('sent', { ...task, atMs })]);
	expect(state).toMatchObject({ kind: 'made', attempt: { by: { atMs: undefined } } });
});

it('quotes no more of a holder than fits into a sentence', () => {
	const long = 'x'.repeat(5_000_000);
	const state = read([row('claimed', { executionId: long, workflowId: long })]);
	expect(JSON.stringify(state).length).toBeLessThan(1_000);
});

describe('rows that people edited', () => {
	it.each<[string, TableRow[], string]>([
		['the state set to Failed', [row('sent', { ...task, state: ' Failed ' })], 'free'],
		['the ID entered by hand', [row('claimed', task)], 'made A t1'],
		['the ID removed', [row('claimed'), row('sent', { reference: '  ' })], 'unclear A'],
		['the state changed', [row('klaimed')], 'unclear A'],
		['the state in capitals', [row(' CLAIMED ')], 'held A'],
		['the state emptied', [row('', { state: null })], 'unclear A'],
		['the holder emptied', [row('sent', { ...task, holder: null, id: 5 })], 'made row 5 t1'],
		['the time emptied', [row('claimed', { atMs: null })], 'unclear A'],
		['the time as text', [row('claimed', { atMs: String(NOW) })], 'held A'],
		['the time set to the far future', [row('claimed', { atMs: 1e17 })], 'unclear A'],
		['the time set to the far past', [row('claimed', { atMs: -1e17 })], 'unclear A'],
		['the expiry set to the far future', [row('sent', { ...task, expiresAtMs: 1e300 })], 'made A t1'],
		['the expiry emptied', [row('sent', { ...task, expiresAtMs: null })], 'made A t1'],
		['the expiry garbled', [row('sent', { ...task, expiresAtMs: 'never' })], 'made A t1'],
		['a state of their own', [row('claimed', { state: 'see ticket 7' })], 'unclear A'],
		['an ID that is a number', [row('sent', { reference: 42 })], 'made A 42'],
	])('are read with %s', (_name, rows, state) => {
		expect(told(rows)).toBe(state);
	});

	const cell = fc.oneof(
		fc.string(),
		fc.constantFrom('claimed', 'sent', 'unclear', 'failed', 'succeeded', 'A', 't1', ''),
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
				const state = read(rows);
				expect(['free', 'held', 'unclear', 'made']).toContain(state.kind);
				if (state.kind === 'made') expect(state.reference.trim()).not.toBe('');
			}),
		);
	});

	it('never hide the task of an unedited row', () => {
		fc.assert(
			fc.property(fc.array(anyRow), fc.nat(), (rows, at) => {
				const kept = row('sent', { ...task, holder: 'kept' });
				const all = [...rows.slice(0, at), kept, ...rows.slice(at)];
				expect(read(all).kind).toBe('made');
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
