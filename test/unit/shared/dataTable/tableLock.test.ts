import { SILENT_MS, Sightings } from '../../../../nodes/shared/dataTable/heartbeat';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { TableLock, type Acquirer } from '../../../../nodes/shared/dataTable/tableLock';
import { badInput } from '../../../../nodes/shared/errors/failure';
import { MemoryTable } from '../memoryTable';
import { TestClock } from '../../testClock';

let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

function open(ownTable: DataTable = table.open()): TableLock {
	const { signal } = new AbortController();
	return new TableLock({ table: ownTable, clock, random: () => 0.5, signal, sightings: new Sightings() });
}

/** @param untilMs by the clock's `now()` */
function wants(untilMs = Infinity): Acquirer<never> {
	return {
		entryKey: 'k',
		row: () => ({}),
		answer: () => undefined,
		whyStop: () => (clock.now() < untilMs ? undefined : badInput('Other messages took too long', '')),
		pause: () => undefined,
	};
}

it('an owner that beats after it was presumed dead, and before it was replaced, keeps the key', async () => {
	table.put({ entryKey: 'k', owner: 'slow', beat: 1 });
	const opened = table.open();
	let lateBeats = 0;
	const acquired = open({
		...opened,
		swapThenRead: async (swaps, column) => {
			if (swaps.some(({ where }) => where.owner === 'slow') && lateBeats++ === 0) {
				table.edit((row) => ({ ...row, beat: 2 }));
			}
			return await opened.swapThenRead(swaps, column);
		},
	}).acquire(wants());
	await clock.advance(SILENT_MS + 10_000);
	expect(lateBeats).toBe(1);
	expect(table.all()).toMatchObject([{ owner: 'slow', beat: 2 }]);
	// Silent again for as long as before, it is replaced.
	expect(await clock.run(acquired)).toMatchObject({ ok: true, value: { kind: 'held' } });
	expect(clock.elapsedMs).toBeGreaterThan(2 * SILENT_MS);
});

it('a table that does not show what was written is named as the cause, not other messages', async () => {
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
