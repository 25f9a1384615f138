import fc from 'fast-check';

import { ClaimLock } from '../../../../nodes/shared/dataTable/claimLock';
import { holdingsIn, Liveness, notTaken } from '../../../../nodes/shared/dataTable/claims';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { badInput, type Failure } from '../../../../nodes/shared/errors/failure';
import type { Clock } from '../../../../nodes/shared/time/clock';
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
/** An upper bound of the database trips between two holders: renewal, read, claim, check, removal, there and back. */
const WAYS_BETWEEN = 12;

interface World {
	readonly seed: number;
	readonly processes: number;
	readonly keys: number;
	/** The longest time that a trip to or from the database takes. */
	readonly slowMs: number;
	/** How long the renewals of the first process hang. */
	readonly signsHangMs: number;
	readonly mishaps: number;
	readonly repeats: number;
	readonly behindMs: number;
	/** The number of the table call at which the first process dies. */
	readonly diesAt: number;
	/** A person edits or deletes a row at this time. */
	readonly editedAtMs: number;
	readonly holdMs: number;
}

interface Hold {
	readonly process: number;
	readonly key: string;
	readonly fromMs: number;
	toMs: number;
	/** `late`: its renewals failed for so long that others may presume it dead, which it knows. */
	end: 'held' | 'open' | 'late';
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
			await clock.sleep(Math.round(random() * 3_000));
			for (let round = 0; round < ROUNDS; round++) {
				const { signal } = new AbortController();
				const lock = new ClaimLock({ table: open, clock: clockOf, random, signal, liveness });
				await lockOnce(lock, `k${Math.floor(random() * world.keys)}`, process);
				await lock.flush();
			}
		};
		const lockOnce = async (lock: ClaimLock, key: string, process: number): Promise<void> => {
			const othersMs = world.processes * ROUNDS * (WAYS_BETWEEN * world.slowMs + world.holdMs);
			const untilMs = clock.now() + WAITED_LONG_MS + othersMs;
			const got = await lock.acquire({
				entryKey: key,
				cells: () => ({}),
				statusOf: (rows) => {
					const others = notTaken(holdingsIn(rows).filter(({ holder }) => !lock.ignored.has(holder)));
					const living = others.filter((one) => !lock.isDead(one));
					if (living.length > 0)
						return { kind: 'held', firstId: Math.min(...living.map(({ firstId }) => firstId)) };
					return { kind: 'free', dead: others.map(({ holder }) => holder) };
				},
				whyStop: () => (clock.now() > untilMs ? badInput('Waited in vain', '') : undefined),
			});
			if (!got.ok) {
				failures.push(got.failure);
				return;
			}
			if (got.value.kind !== 'mine') return;
			const { claim } = got.value;
			const hold: Hold = { process, key, fromMs: clock.elapsedMs, toMs: Infinity, end: 'open' };
			holds.push(hold);
			await clockOf.sleep(Math.round(random() * world.holdMs) + (process === 0 ? world.signsHangMs : 0));
			hold.toMs = clock.elapsedMs;
			hold.end = claim.isFresh ? 'held' : 'late';
			await lock.giveBack(claim);
		};
		await Promise.race([work(), death.promise]);
	});
	const editing = (async () => {
		if (world.editedAtMs === Infinity) return;
		await clock.sleep(world.editedAtMs);
		const kind = Math.floor(random() * 3);
		table.edit((row) => (kind === 0 ? undefined : { ...row, [kind === 1 ? 'holder' : 'takenFrom']: null }));
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
		replace: async (rows, gone) => {
			if (signsHangMs > 0) await clock.sleep(signsHangMs);
			return await live(async () => await table.replace(rows, gone));
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
	expect(holds.filter(({ end, process }) => end === 'open' && process !== 0)).toEqual([]);
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

it('a key never has two holders, a living process never loses one, and every wait ends', async () => {
	let held = 0;
	await inAll({ mishaps: fc.constant(0), slowMs: fc.constantFrom(0, 30, 500) }, 300, (played) => {
		held += played.holds.length;
		expect(overlaps(played.holds)).toEqual([]);
		expect(played.holds.filter(({ end }) => end !== 'held')).toEqual([]);
		expectToEnd(played);
		expect(played.clock.sleepers).toBe(0);
		expect(played.table.all()).toEqual([]);
	});
	expect(held).toBeGreaterThan(500);
}, 240_000);

it('a key never has two holders if calls fail before or after doing their work', async () => {
	await inAll({ mishaps: fc.constant(0.05), slowMs: fc.constantFrom(0, 30, 500) }, 300, (played) => {
		expect(overlaps(played.holds)).toEqual([]);
	});
}, 240_000);

it('the key of a dead process is free after a minute and a half of silence, whatever it was doing', async () => {
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
			expect(living.filter(({ end }) => end !== 'held')).toEqual([]);
			expectToEnd(played);
		},
	);
}, 240_000);

it('a process whose renewals hang may be replaced, and knows it before it sends anything', async () => {
	let late = 0;
	await inAll(
		{
			signsHangMs: fc.integer({ min: 45_000, max: 200_000 }),
			slowMs: fc.constantFrom(0, 30),
			mishaps: fc.constant(0),
		},
		200,
		(played) => {
			late += played.holds.filter(({ end }) => end === 'late').length;
			for (const pair of overlaps(played.holds)) expect(pair.some(({ end }) => end === 'late')).toBe(true);
			expectToEnd(played);
		},
	);
	expect(late).toBeGreaterThan(0);
}, 240_000);
