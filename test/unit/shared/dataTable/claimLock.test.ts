import { ClaimLock, type ClaimWish } from '../../../../nodes/shared/dataTable/claimLock';
import { DEAD_MS, holdingsIn, Liveness, notTaken } from '../../../../nodes/shared/dataTable/claims';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { badInput } from '../../../../nodes/shared/errors/failure';
import { lucky } from '../../seededRandom';
import { guardedTable } from '../guardedTable';
import { MemoryTable } from '../memoryTable';
import { TestClock } from '../../testClock';

let clock: TestClock;
let table: MemoryTable;
let random: () => number;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
	random = () => 0.5;
});

function open(ownTable: DataTable = table.open(), liveness = new Liveness()): ClaimLock {
	const { signal } = new AbortController();
	return new ClaimLock({ table: ownTable, clock, random, signal, liveness });
}

/** Waits for the key until `untilMs` by the clock's `now()`. */
function wants(lock: ClaimLock, untilMs = Infinity): ClaimWish<never> {
	return {
		entryKey: 'k',
		cells: () => ({}),
		statusOf: (rows) => {
			const others = notTaken(holdingsIn(rows).filter(({ holder }) => !lock.ignored.has(holder)));
			const living = others.filter((one) => !lock.isDead(one));
			const firstId = Math.min(...living.map((one) => one.firstId));
			if (living.length > 0) return { kind: 'held', firstId };
			return { kind: 'free', dead: others.map(({ holder }) => holder) };
		},
		whyStop: () => (clock.now() < untilMs ? undefined : badInput('Others took too long', '')),
	};
}

const acquire = async (lock: ClaimLock, untilMs?: number) => await lock.acquire(wants(lock, untilMs));
const MINE = { ok: true, value: { kind: 'mine' } };
const putDead = (holder = 'dead'): void =>
	table.put({ entryKey: 'k', holder, takenFrom: '', rowKey: holder });

it('a holder that was presumed dead keeps the key if its renewal comes before it is replaced', async () => {
	putDead('slow');
	const opened = table.open();
	let late = 0;
	const acquired = acquire(
		open({
			...opened,
			insertThenRead: async (rows) => {
				if (late++ === 0) table.put({ entryKey: 'k', holder: 'slow', takenFrom: '', rowKey: 'slow:2' });
				return await opened.insertThenRead(rows);
			},
		}),
	);
	await clock.advance(DEAD_MS + 20_000);
	expect(late).toBe(1);
	// It is replaced once it has been silent again for the same time.
	expect(await clock.run(acquired)).toMatchObject(MINE);
	expect(clock.elapsedMs).toBeGreaterThan(2 * DEAD_MS);
});

it('a holder keeps the key through an outage of the table, during which its renewals fail', async () => {
	expect(await clock.run(acquire(open()))).toMatchObject(MINE);
	const others = new Liveness();
	void acquire(open(table.open(), others), clock.now() + 20_000);
	await clock.advance(5_000);
	table.mishap = () => 'before';
	await clock.advance(2 * DEAD_MS);
	table.mishap = () => 'none';
	expect(await clock.run(acquire(open(table.open(), others), clock.now() + 20_000))).toMatchObject({
		ok: false,
	});
});

it('a claim that replaces dead holders names them', async () => {
	putDead('one');
	putDead('two');
	expect(await clock.run(acquire(open()))).toMatchObject(MINE);
	expect(table.all().at(-1)).toMatchObject({ takenFrom: 'one two' });
	expect(clock.elapsedMs).toBeGreaterThan(DEAD_MS);
	expect(clock.elapsedMs).toBeLessThan(DEAD_MS + 10_000);
});

it('a machine that sleeps for ten minutes presumes nobody dead for it, and does not send when it wakes', async () => {
	const holder = open();
	const held = await clock.run(acquire(holder));
	const others = new Liveness();
	void acquire(open(table.open(), others), clock.now() + 5_000);
	await clock.advance(10_000);
	// Only the wall clock moves while a machine sleeps.
	clock.wallAheadMs += 600_000;
	expect(held).toMatchObject(MINE);
	if (held.ok && held.value.kind === 'mine') expect(held.value.claim.isFresh).toBe(false);
	expect(await clock.run(acquire(open(table.open(), others), clock.now() + 20_000))).toMatchObject({
		ok: false,
	});
});

it('a renewal that fails or hangs is repeated at once', async () => {
	const opened = table.open();
	let hanging = 0;
	const lock = open({
		...opened,
		replace: async (rows, gone) => {
			if (hanging++ === 0) await clock.sleep(300_000);
			return await opened.replace(rows, gone);
		},
	});
	await clock.run(acquire(lock));
	await clock.advance(35_000);
	expect(hanging).toBe(2);
	expect(table.all()).toHaveLength(1);
	expect(await clock.run(acquire(open(), clock.now() + DEAD_MS + 20_000))).toMatchObject({ ok: false });
});

it('a claim is not held once the table takes more than 20 s to add it', async () => {
	const slow = guardedTable(table.open(), async (call) => {
		await clock.sleep(21_000);
		return await call();
	});
	expect(await clock.run(acquire(open(slow), clock.now() + 300_000))).toMatchObject({ ok: false });
});

it.each([2, 8, 20])('one of %d processes that want a new key at once soon holds it', async (count) => {
	const slow = new MemoryTable(clock, () => 1, 500);
	const locks = Array.from({ length: count }, () => open(slow.open()));
	const held = await clock.run(Promise.race(locks.map(async (lock) => await acquire(lock))));
	expect(held).toMatchObject(MINE);
	// It takes a read, an insert, another read, the retreat of the others and a last read.
	expect(clock.elapsedMs).toBeLessThan(8_000);
});

it('eight processes that see their rows three seconds late make one holder', async () => {
	table.hides = (ageMs) => ageMs < 3_000;
	const held: unknown[] = [];
	random = lucky(7);
	for (let process = 0; process < 8; process++) {
		const lock = open();
		void acquire(lock).then((done) => held.push(done));
	}
	await clock.advance(300_000);
	expect(held).toMatchObject([MINE]);
});

it('the first of two processes does not read all the time if the other died before it could retreat', async () => {
	const never = async (): Promise<never> => await new Promise<never>(() => undefined);
	const acquired = acquire(open());
	void acquire(open({ ...table.open(), remove: never, replace: never }));
	await clock.advance(DEAD_MS / 2);
	expect(table.calls.length).toBeLessThan(60);
	await clock.run(acquired);
});
