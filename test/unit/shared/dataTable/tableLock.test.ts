import { SILENT_MS, Liveness } from '../../../../nodes/shared/dataTable/heartbeat';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { TableLock, type Acquirer } from '../../../../nodes/shared/dataTable/tableLock';
import { badInput, fail } from '../../../../nodes/shared/errors/failure';
import { MemoryTable } from '../memoryTable';
import { TestClock } from '../../testClock';

let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

function open(ownTable: DataTable = table.open(), liveness = new Liveness()): TableLock {
	const { signal } = new AbortController();
	return new TableLock({ table: ownTable, clock, random: () => 0.5, signal, liveness });
}

/** Waits for the key until `untilMs` by the clock's `now()`. */
function wants(untilMs = Infinity): Acquirer {
	return {
		entryKey: 'k',
		row: () => ({}),
		waiting: {
			whyStop: () => (clock.now() < untilMs ? undefined : badInput('Other messages took too long', '')),
			pause: () => undefined,
		},
	};
}

it('an owner keeps the key if its heartbeat arrives after it was presumed dead and before it was replaced', async () => {
	table.put({ entryKey: 'k', owner: 'slow', beat: 1 });
	const opened = table.open();
	let lateBeats = 0;
	const acquired = open({
		...opened,
		swapThenRead: async (swaps) => {
			if (swaps.some(({ where }) => where.owner === 'slow') && lateBeats++ === 0) {
				table.edit((row) => ({ ...row, beat: 2 }));
			}
			return await opened.swapThenRead(swaps);
		},
	}).acquire(wants());
	await clock.advance(SILENT_MS + 10_000);
	expect(lateBeats).toBe(1);
	expect(table.all()).toMatchObject([{ owner: 'slow', beat: 2 }]);
	// It is replaced once it has been silent again for the same time.
	expect(await clock.run(acquired)).toMatchObject({ ok: true, value: { lease: { entryKey: 'k' } } });
	expect(clock.elapsedMs).toBeGreaterThan(2 * SILENT_MS);
});

it('an owner keeps the key through an outage of the table, during which its heartbeats failed', async () => {
	expect(await clock.run(open().acquire(wants()))).toMatchObject({ value: { lease: { entryKey: 'k' } } });
	const holders = table.all().map(({ owner }) => owner);
	const others = new Liveness();
	const another = (): Promise<unknown> => open(table.open(), others).acquire(wants(clock.now() + 20_000));
	void another();
	await clock.advance(5_000);
	table.mishap = () => 'before';
	await clock.advance(2 * SILENT_MS);
	table.mishap = () => 'none';
	expect(await clock.run(another())).toMatchObject({ ok: false });
	expect(table.all().map(({ owner }) => owner)).toEqual(holders);
});

it('the key is free after a minute if both its holder and the first in the queue have died', async () => {
	table.put({ entryKey: 'k', owner: 'dead', beat: 1 });
	table.put({ entryKey: 'k', owner: 'waits dead 1', beat: 1 });
	const acquired = await clock.run(open().acquire({ ...wants(), isOrdered: true }));
	expect(acquired).toMatchObject({ ok: true, value: { lease: { entryKey: 'k' } } });
	expect(clock.elapsedMs).toBeLessThan(SILENT_MS + 10_000);
});

it.each([2, 5, 20])(
	'one of %d processes that want a new key at once on a slow table soon holds it',
	async (count) => {
		const slow = new MemoryTable(clock, () => 1, 500);
		const locks = Array.from({ length: count }, () => open(slow.open()));
		const held = await clock.run(Promise.race(locks.map(async (lock) => await lock.acquire(wants()))));
		expect(held).toMatchObject({ ok: true, value: { lease: { entryKey: 'k' } } });
		// It takes an insert, a read, the retreat of the others and another read.
		expect(clock.elapsedMs).toBeLessThan(6_000);
	},
);

it('the first of two processes does not read all the time if the other died before it could retreat', async () => {
	const opened = table.open();
	const never = async (): Promise<never> => await new Promise<never>(() => undefined);
	const acquired = open().acquire(wants());
	void open({ ...opened, remove: never, updateAlike: never }).acquire(wants());
	await clock.advance(SILENT_MS / 2);
	expect(table.calls.length).toBeLessThan(60);
	await clock.run(acquired);
});

it('a row stays, even if a person deletes the one that it duplicates while both are held', async () => {
	table.put({ entryKey: 'k', owner: 'free', beat: 0 });
	table.put({ entryKey: 'k', owner: 'free', beat: 0 });
	const lock = open();
	const acquired = await clock.run(lock.acquire(wants()));
	table.edit((row) => (row.id === 1 ? undefined : row));
	if (acquired.ok && acquired.value.lease)
		await clock.run(lock.release(acquired.value.lease, { note: 'kept' }, () => false));
	expect(table.all()).toMatchObject([{ id: 2, note: 'kept', owner: 'free' }]);
});

it('a row that another process has written since is kept, although a take that had failed reaches it late', async () => {
	const opened = table.open();
	let takeLate: (() => Promise<unknown>) | undefined;
	const lock = open({
		...opened,
		swapThenRead: async (swaps) => {
			if (takeLate) return await opened.swapThenRead(swaps);
			takeLate = async () => await opened.swapThenRead(swaps);
			return fail(badInput('No answer in time', ''));
		},
		insertThenRead: async (rows) => {
			table.put({ entryKey: 'k', owner: 'other 1', beat: 0 });
			return await opened.insertThenRead(rows);
		},
	});
	table.mishap = (call) => (call === 'remove' || call === 'updateAlike' ? 'before' : 'none');
	expect(await clock.run(lock.acquire(wants(clock.now() + 5_000)))).toMatchObject({ ok: false });
	table.edit((row) => (row.owner === 'other 1' ? { ...row, note: 'kept', owner: 'free' } : row));
	await clock.run(takeLate?.() ?? Promise.resolve());
	table.mishap = () => 'none';
	await clock.run(lock.flush());
	expect(table.all()).toContainEqual(expect.objectContaining({ note: 'kept', owner: 'free' }));
});

it('the failure blames a table that does not show writes, and not other messages', async () => {
	table.hides = () => true;
	const untilMs = clock.now() + 60_000;
	expect(await clock.run(open().acquire(wants(untilMs)))).toMatchObject({
		ok: false,
		failure: { message: 'What was written to the Data Table did not appear there in time' },
	});
	expect(await clock.run(open().acquire(wants(clock.now())))).toMatchObject({
		ok: false,
		failure: { message: 'Other messages took too long' },
	});
});
