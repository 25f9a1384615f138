import fc from 'fast-check';
import { SILENT_MS } from '../../../../nodes/shared/dataTable/heartbeat';
import type { TurnOrder } from '../../../../nodes/AgentInvoke/turns/turnSession';
import type { TurnOutcome } from '../../../../nodes/AgentInvoke/turns/runTurns';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { lucky, OneAtATime, WorkerProcess, type Ask } from './worker.scene';

/*
 * Executions of several processes talk to an agent in the sessions of a few keys, on a table that behaves as PostgreSQL
 * does, each process with its own clock and its own luck with the database. Whatever happens, a key has one session.
 */

interface Plan {
	readonly worker: number;
	readonly startMs: number;
	/** Keys of its items. */
	readonly keys: readonly number[];
}

const WORKERS = 3;

const plan = (worker: number, startMs: number, ...keys: number[]): Plan => ({ worker, startMs, keys });
const SLOW_EXAMPLES: Array<[Plan[], number]> = [
	// The turn of a key comes while the claim that was made ahead for it is given up as unused.
	[
		[
			...[plan(0, 1, 1), plan(0, 1, 0), plan(0, 1_707, 1), plan(0, 1, 0), plan(0, 1, 0)],
			...[plan(0, 0, 2, 1, 0), plan(1, 813, 0), plan(0, 3_315, 0)],
		],
		22_753_082,
	],
	// The last execution ends while a heartbeat is being written.
	[[plan(0, 0, 1), plan(0, 182, 0)], 259_546_616],
];

const planOf = (latestMs: number): fc.Arbitrary<Plan> =>
	fc.record({
		worker: fc.integer({ min: 0, max: WORKERS - 1 }),
		startMs: fc.integer({ min: 0, max: latestMs }),
		keys: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 4 }),
	});
const plansOf = (latestMs: number): fc.Arbitrary<Plan[]> =>
	fc.array(planOf(latestMs), { minLength: 2, maxLength: 8 });
const seeds = fc.integer({ min: 1, max: 2 ** 31 - 1 });

interface World {
	readonly clock: TestClock;
	readonly table: MemoryTable;
	readonly agent: OneAtATime;
	readonly workers: readonly WorkerProcess[];
}

function worldOf(seed: number, { skewMs = 20_000, slowMs = 150 } = {}): World {
	const clock = new TestClock();
	const random = lucky(seed);
	const table = new MemoryTable(clock, random, slowMs);
	const agent = new OneAtATime(clock);
	agent.takesMs = () => Math.round(random() * 3_000);
	agent.tellsAfterMs = random() < 0.5 ? 200 : undefined;
	const workers = Array.from(
		{ length: WORKERS },
		() => new WorkerProcess(clock, table, agent, random, Math.round((random() - 0.5) * 2 * skewMs)),
	);
	return { clock, table, agent, workers };
}

async function play(
	{ clock, workers }: World,
	plans: readonly Plan[],
	turnOrder: TurnOrder = 'arrival',
): Promise<Array<TurnOutcome[] | 'died'>> {
	return await clock.run(
		Promise.all(
			plans.map(async ({ worker, startMs, keys }, execution) => {
				await clock.sleep(startMs);
				const asks = keys.map((key, item): Ask => ({ key: `k${key}`, said: `k${key} ${execution}.${item}` }));
				return (await workers[worker]?.run(asks, { turnOrder, concurrency: 2 })) ?? 'died';
			}),
		),
	);
}

const keyOf = (said: string): string => said.split(' ')[0] ?? '';
const asked = (plans: readonly Plan[]): string[] =>
	plans.flatMap(({ keys }, execution) => keys.map((key, item) => `k${key} ${execution}.${item}`)).toSorted();

/** Sessions by the key of what was said in them. */
function sessionsOf({ agent }: World): Map<string, Set<string>> {
	const sessions = new Map<string, Set<string>>();
	for (const { said, sessionId } of agent.heard) {
		const key = keyOf(said);
		sessions.set(key, (sessions.get(key) ?? new Set()).add(sessionId));
	}
	return sessions;
}

function expectWhole(world: World, plans: readonly Plan[]): void {
	for (const ids of sessionsOf(world).values()) expect(ids.size).toBe(1);
	expect(world.agent.heard.map(({ said }) => said).toSorted()).toEqual(asked(plans));
	expect(world.agent.opened).toHaveLength(sessionsOf(world).size);
	expect(world.table.all().map(({ sessionId }) => sessionId)).toHaveLength(world.agent.opened.length);
	expect(world.workers.map(({ queue }) => queue.size)).toEqual([0, 0, 0]);
	expect(world.clock.sleepers).toBe(0);
}

it('a key has one session, whoever asks first, and all that is said is said in it', async () => {
	await fc.assert(
		fc.asyncProperty(plansOf(4_000), seeds, async (plans, seed) => {
			const world = worldOf(seed);
			const outcomes = await play(world, plans);
			expect(outcomes.flat().every((one) => one !== 'died' && one.result.ok)).toBe(true);
			expectWhole(world, plans);
		}),
		{ numRuns: 120 },
	);
}, 240_000);

it('a key has one session, although rows are written twice where an insert was repeated', async () => {
	await fc.assert(
		fc.asyncProperty(plansOf(4_000), seeds, async (plans, seed) => {
			const world = worldOf(seed);
			const random = lucky(seed + 1);
			world.table.repeats = () => random() < 0.3;
			await play(world, plans);
			for (const ids of sessionsOf(world).values()) expect(ids.size).toBe(1);
			expect(world.agent.heard.map(({ said }) => said).toSorted()).toEqual(asked(plans));
			// Nothing is left of claims, and nothing of a session is lost.
			const rows = world.table.all().map(({ sessionId }) => sessionId);
			expect(new Set(rows)).toEqual(new Set(world.agent.opened));
		}),
		{ numRuns: 120 },
	);
}, 240_000);

it('in strict order no turn meets a busy session, and those of one execution stay in order', async () => {
	await fc.assert(
		fc.asyncProperty(plansOf(4_000), seeds, async (plans, seed) => {
			const world = worldOf(seed);
			await play(world, plans, 'strict');
			expectWhole(world, plans);
			expect(world.agent.refusedAsBusy).toBe(0);
			const heard = world.agent.heard.map(({ said }) => said);
			plans.forEach(({ keys }, execution) => {
				const own = heard.filter((said) => said.includes(` ${execution}.`));
				for (const key of new Set(keys)) {
					const items = own.filter((said) => keyOf(said) === `k${key}`);
					expect(items).toEqual(items.toSorted());
				}
			});
		}),
		{ numRuns: 150 },
	);
}, 240_000);

it('where the table shows what was written a moment later, there is still one session', async () => {
	await fc.assert(
		fc.asyncProperty(
			plansOf(4_000),
			fc.integer({ min: 1, max: 1_000 }),
			seeds,
			async (plans, behindMs, seed) => {
				const world = worldOf(seed);
				world.table.hides = (ageMs) => world.clock.elapsedMs < 12_000 && ageMs < behindMs;
				await play(world, plans);
				expectWhole(world, plans);
			},
		),
		{ numRuns: 120 },
	);
}, 240_000);

it('a refused opening frees the key at once', async () => {
	await fc.assert(
		fc.asyncProperty(plansOf(2_000), seeds, async (plans, seed) => {
			const world = worldOf(seed);
			const unlucky = lucky(seed + 1);
			const refused = new Set(asked(plans).filter(() => unlucky() < 0.4));
			world.agent.refuses = (said) => refused.has(said);
			await play(world, plans);
			for (const ids of sessionsOf(world).values()) expect(ids.size).toBe(1);
			expect(world.agent.heard).toHaveLength(asked(plans).length - refused.size);
			expect(world.clock.elapsedMs).toBeLessThan(SILENT_MS);
			expect(world.table.all().every(({ sessionId }) => sessionId)).toBe(true);
		}),
		{ numRuns: 150 },
	);
}, 240_000);

it.each(['arrival', 'strict'] as const)(
	'a worker that dies at any step costs one session at most, and holds the others up for the life of a claim (%s)',
	async (turnOrder) => {
		await fc.assert(
			fc.asyncProperty(
				plansOf(4_000),
				fc.integer({ min: 1, max: 14 }),
				seeds,
				async (plans, diesAt, seed) => {
					const world = worldOf(seed);
					const [first] = world.workers;
					if (first) first.diesAt = diesAt;
					const outcomes = await play(world, plans, turnOrder);
					// What it opened and told nobody is lost with it; all others go on in one session.
					const byLiving = world.agent.heard.filter(({ said }) => {
						const execution = Number(/ (\d+)\./.exec(said)?.[1]);
						return plans[execution]?.worker !== 0;
					});
					for (const ids of sessionsOf(world).values()) {
						expect(ids.size).toBeLessThanOrEqual(2);
					}
					const living = new Map<string, Set<string>>();
					for (const { said, sessionId } of byLiving) {
						living.set(keyOf(said), (living.get(keyOf(said)) ?? new Set()).add(sessionId));
					}
					for (const ids of living.values()) expect(ids.size).toBe(1);
					outcomes.forEach((outcome, execution) => {
						if (plans[execution]?.worker === 0) return;
						expect(outcome === 'died' ? [] : outcome.map(({ result }) => result.ok)).toEqual(
							plans[execution]?.keys.map(() => true),
						);
					});
					expect(world.clock.elapsedMs).toBeLessThan(3 * SILENT_MS);
				},
			),
			{ numRuns: 120 },
		);
	},
	300_000,
);

it('a database that needs up to sixteen seconds for a statement makes it slow, and nothing else', async () => {
	await fc.assert(
		fc.asyncProperty(plansOf(4_000), seeds, async (plans, seed) => {
			const world = worldOf(seed, { slowMs: 8_000 });
			const outcomes = await play(world, plans);
			expect(outcomes.flat().every((one) => one !== 'died' && one.result.ok)).toBe(true);
			expectWhole(world, plans);
		}),
		{ numRuns: 100, examples: SLOW_EXAMPLES },
	);
}, 240_000);

it('clocks that are an hour apart make no difference', async () => {
	await fc.assert(
		fc.asyncProperty(plansOf(4_000), seeds, async (plans, seed) => {
			// Less than CLOCKS_APART_MS between any two.
			const world = worldOf(seed, { skewMs: 55 * 60_000 });
			world.agent.takesMs = () => 5_000;
			await play(world, plans);
			expectWhole(world, plans);
		}),
		{ numRuns: 120 },
	);
}, 240_000);

it('a session that takes minutes to open is waited for, and its claim outlives its life', async () => {
	const world = worldOf(7);
	world.agent.takesMs = () => 5 * SILENT_MS;
	world.agent.tellsAfterMs = undefined;
	const plans = [0, 1].map((worker) => ({ worker, startMs: worker * 100, keys: [0] }));
	await play(world, plans);
	expectWhole(world, plans);
	expect(world.clock.elapsedMs).toBeGreaterThan(10 * SILENT_MS);
});
