import fc from 'fast-check';

import { Liveness, OWNER_COLUMNS } from '../../../../nodes/shared/dataTable/heartbeat';
import { TableLock, type Released } from '../../../../nodes/shared/dataTable/tableLock';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { badInput, type Failure } from '../../../../nodes/shared/errors/failure';
import type { Clock } from '../../../../nodes/shared/run/clock';
import { promisesOnly, TestClock } from '../../testClock';
import { lucky } from '../../seededRandom';
import { guardedTable } from '../guardedTable';
import { MemoryTable } from '../memoryTable';

/*
 * Processes lock a few keys of a table that behaves like PostgreSQL, each with its own clock and its own database mishaps:
 * slow steps, writes that fail although they were carried out, incomplete reads, sudden deaths.
 */

const WAITED_LONG_MS = 20 * 60_000;
const ROUNDS = 2;
/** An upper bound of the database trips between two holders: heartbeat, read, acquisition, check, release, there and back. */
const WAYS_BETWEEN = 12;

interface World {
	readonly seed: number;
	readonly processes: number;
	readonly keys: number;
	/** The longest time that a trip to or from the database takes. */
	readonly slowMs: number;
	/** How long the heartbeats of the first process hang. */
	readonly signsHangMs: number;
	readonly mishaps: number;
	readonly repeats: number;
	readonly behindMs: number;
	/** The number of the table call at which the first process dies. */
	readonly diesAt: number;
	/** A person edits or deletes a row at this time. */
	readonly editedAtMs: number;
	readonly holdMs: number;
	readonly isOrdered: boolean;
	/** The time between the starts of two processes; 0 if they start at random times. */
	readonly apartMs: number;
}

interface Hold {
	readonly process: number;
	readonly key: string;
	readonly fromMs: number;
	toMs: number;
	end: Released | 'open' | 'died' | 'failed';
}

const worlds = (over: Partial<{ [K in keyof World]: fc.Arbitrary<World[K]> }> = {}): fc.Arbitrary<World> =>
	fc.record({
		seed: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
		processes: fc.integer({ min: 2, max: 6 }),
		keys: fc.integer({ min: 1, max: 2 }),
		slowMs: fc.constantFrom(0, 30, 500, 5_000),
		signsHangMs: fc.constant(0),
		mishaps: fc.constantFrom(0, 0, 0.05),
		repeats: fc.constantFrom(0, 0, 0.3),
		behindMs: fc.constantFrom(0, 0, 300, 1_500),
		diesAt: fc.constant(Infinity),
		editedAtMs: fc.constant(Infinity),
		holdMs: fc.constantFrom(0, 500, 20_000),
		isOrdered: fc.boolean(),
		apartMs: fc.constant(0),
		...over,
	});

async function play(world: World) {
	const clock = new TestClock(promisesOnly);
	const random = lucky(world.seed);
	const table = new MemoryTable(clock, random, world.slowMs);
	table.mishap = () => {
		if (random() >= world.mishaps) return 'none';
		return random() < 0.5 ? 'before' : 'after';
	};
	table.repeats = () => random() < world.repeats;
	table.hides = (ageMs) => ageMs < world.behindMs;
	const holds: Hold[] = [];
	const failures: Failure[] = [];
	const runs = Array.from({ length: world.processes }, async (_, process) => {
		const clockOf = processClock(clock, Math.round((random() - 0.5) * 7_200_000));
		const death = Promise.withResolvers<undefined>();
		const open = mortal(
			table.open(),
			process === 0 ? world : { diesAt: Infinity, signsHangMs: 0 },
			clock,
			() => death.resolve(undefined),
		);
		const liveness = new Liveness();
		const work = async (): Promise<void> => {
			await clock.sleep(world.apartMs > 0 ? process * world.apartMs : Math.round(random() * 3_000));
			for (let round = 0; round < ROUNDS; round++) {
				const { signal } = new AbortController();
				const lock = new TableLock({ table: open, clock: clockOf, random, signal, liveness });
				await lockOnce(lock, `k${Math.floor(random() * world.keys)}`, process);
				await lock.flush();
			}
		};
		const lockOnce = async (lock: TableLock, key: string, process: number): Promise<void> => {
			const othersMs = world.processes * ROUNDS * (WAYS_BETWEEN * world.slowMs + world.holdMs);
			const untilMs = clock.now() + WAITED_LONG_MS + othersMs;
			const got = await lock.acquire({
				entryKey: key,
				row: () => ({ note: '' }),
				waiting: {
					whyStop: () => (clock.now() > untilMs ? badInput('Waited in vain', '') : undefined),
					pause: () => undefined,
				},
				isOrdered: world.isOrdered,
			});
			if (!got.ok) {
				failures.push(got.failure);
				return;
			}
			const { lease, rows } = got.value;
			if (!lease) return;
			const hold: Hold = { process, key, fromMs: clock.elapsedMs, toMs: Infinity, end: 'open' };
			holds.push(hold);
			await clockOf.sleep(Math.round(random() * world.holdMs) + (process === 0 ? world.signsHangMs : 0));
			hold.toMs = clock.elapsedMs;
			// The note behaves like a session: the first one stays.
			const note = rows.map((row) => row.note).find(Boolean) ?? lease.owner;
			for (let tries = 0; tries < 20; tries++) {
				const released = await lock.release(lease, { note }, (row) => row.note === note);
				if (released.ok) {
					hold.end = released.value;
					return;
				}
				await clockOf.sleep(1_000);
			}
			hold.end = 'failed';
		};
		await Promise.race([work(), death.promise]);
	});
	const editing = (async () => {
		if (world.editedAtMs === Infinity) return;
		await clock.sleep(world.editedAtMs);
		const kind = Math.floor(random() * 3);
		table.edit((row) => (kind === 0 ? undefined : { ...row, [kind === 1 ? 'owner' : 'beat']: null }));
	})();
	await clock.run(Promise.all([...runs, editing]));
	return { holds, failures, table, clock };
}

/** The clock of a process. Its steady time may be far off, because it is never compared with that of another. */
function processClock(clock: TestClock, aheadMs: number): Clock {
	return {
		now: () => clock.now() + aheadMs,
		wallNow: () => clock.wallNow() - 3 * aheadMs,
		sleep: async (ms, signal) => await clock.sleep(ms, signal),
	};
}

function mortal(
	table: DataTable,
	{ diesAt, signsHangMs }: Pick<World, 'diesAt' | 'signsHangMs'>,
	clock: TestClock,
	die: () => void,
): DataTable {
	let calls = 0;
	const live = async <T>(work: () => Promise<T>): Promise<T> => {
		calls++;
		if (calls < diesAt) return await work();
		// The last call still reaches the table.
		if (calls === diesAt) void work();
		die();
		return await new Promise<never>(() => undefined);
	};
	return {
		...guardedTable(table, live),
		updateAlike: async (column, changes) => {
			const isSign = changes.some(({ cells }) => cells.owner === undefined);
			if (isSign && signsHangMs > 0) await clock.sleep(signsHangMs);
			return await live(async () => await table.updateAlike(column, changes));
		},
	};
}

/** The pairs of holds of the same key at the same time. */
function overlaps(holds: readonly Hold[]): Array<readonly [Hold, Hold]> {
	return holds.flatMap((one, index) =>
		holds
			.slice(index + 1)
			.filter((other) => one.key === other.key && one.fromMs < other.toMs && other.fromMs < one.toMs)
			.map((other) => [one, other] as const),
	);
}

function expectToEnd({ failures, holds }: Awaited<ReturnType<typeof play>>): void {
	expect(failures.map(({ message }) => message)).toEqual([]);
	expect(holds.filter(({ end, process }) => (end === 'open' && process !== 0) || end === 'failed')).toEqual(
		[],
	);
}

/** Plays worlds of a kind, and checks each of them. */
async function inAll(
	kind: Parameters<typeof worlds>[0],
	numRuns: number,
	check: (played: Awaited<ReturnType<typeof play>>, world: World) => void,
): Promise<void> {
	const property = fc.asyncProperty(worlds(kind), async (world) => check(await play(world), world));
	await fc.assert(property, { numRuns });
}

it('the columns are those that the lock writes', () => {
	expect(OWNER_COLUMNS.map(({ name }) => name)).toEqual(['owner', 'beat']);
});

it('a key never has two holders, a living process never loses one, and every wait ends', async () => {
	let held = 0;
	await inAll({ mishaps: fc.constant(0) }, 300, (played) => {
		held += played.holds.length;
		expect(overlaps(played.holds)).toEqual([]);
		expect(played.holds.filter(({ end }) => end !== 'written')).toEqual([]);
		expectToEnd(played);
		expect(played.clock.sleepers).toBe(0);
		expect(played.table.all().filter(({ owner }) => owner !== 'free')).toEqual([]);
	});
	expect(held).toBeGreaterThan(500);
}, 240_000);

it('in strict order, the processes hold a key in their order of arrival', async () => {
	await inAll(
		{
			keys: fc.constant(1),
			mishaps: fc.constant(0),
			slowMs: fc.constantFrom(0, 30, 60),
			behindMs: fc.constant(0),
			holdMs: fc.constantFrom(500, 5_000, 20_000),
			isOrdered: fc.constant(true),
			apartMs: fc.constantFrom(1_000, 3_000),
		},
		200,
		({ holds }, world) => {
			const first = holds.filter(
				(hold, at) => holds.findIndex(({ process }) => process === hold.process) === at,
			);
			expect(first.map(({ process }) => process)).toEqual([...Array(world.processes).keys()]);
		},
	);
}, 240_000);

it('a key never has two holders, and none is lost, if calls fail before or after doing their work', async () => {
	await inAll({ mishaps: fc.constant(0.05), slowMs: fc.constantFrom(0, 30, 500) }, 300, (played) => {
		expect(overlaps(played.holds)).toEqual([]);
		expect(played.holds.filter(({ end }) => end !== 'written')).toEqual([]);
	});
}, 240_000);

it('the key of a dead process is free after a minute of silence, whatever it was doing', async () => {
	await inAll(
		{
			diesAt: fc.integer({ min: 1, max: 14 }),
			slowMs: fc.constantFrom(0, 30, 500),
			mishaps: fc.constant(0),
		},
		200,
		(played) => {
			const living = played.holds.filter(({ process }) => process !== 0);
			expect(overlaps(living)).toEqual([]);
			expect(living.filter(({ end }) => end !== 'written')).toEqual([]);
			expectToEnd(played);
		},
	);
}, 240_000);

it('a process whose heartbeats hang may be replaced, and then learns of it', async () => {
	let lost = 0;
	await inAll(
		{
			signsHangMs: fc.integer({ min: 45_000, max: 200_000 }),
			slowMs: fc.constantFrom(0, 30, 20_000),
			mishaps: fc.constant(0),
		},
		200,
		(played) => {
			const told = played.holds.filter(({ end }) => end === 'lost');
			lost += told.length;
			for (const pair of overlaps(played.holds)) expect(pair.some((hold) => told.includes(hold))).toBe(true);
			expectToEnd(played);
		},
	);
	expect(lost).toBeGreaterThan(0);
}, 240_000);

it('a process without competitors keeps its key, however long its heartbeats hang', async () => {
	const hanging = fc.integer({ min: 45_000, max: 200_000 });
	await inAll({ processes: fc.constant(1), signsHangMs: hanging, mishaps: fc.constant(0) }, 100, (played) => {
		expect(played.holds.map(({ end }) => end)).toEqual(['written', 'written']);
		expectToEnd(played);
	});
}, 240_000);

it('rows that a person edits or deletes block no process, and one that lost its row learns of it', async () => {
	await inAll({ editedAtMs: fc.integer({ min: 0, max: 20_000 }), mishaps: fc.constant(0) }, 200, (played) => {
		for (const pair of overlaps(played.holds)) expect(pair.some(({ end }) => end === 'lost')).toBe(true);
		expectToEnd(played);
	});
}, 240_000);
