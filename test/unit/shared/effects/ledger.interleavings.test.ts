import fc from 'fast-check';
import type { Clock } from '../../../../nodes/shared/time/clock';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { KeyedQueue } from '../../../../nodes/shared/time/keyedQueue';
import { TableLedger, type ClaimQueue, type Ledger } from '../../../../nodes/shared/effects/ledger';
import { DEAD_MS, Liveness } from '../../../../nodes/shared/dataTable/claims';
import { promisesOnly, TestClock } from '../../testClock';
import { lucky } from '../../seededRandom';
import { guardedTable } from '../guardedTable';
import { MemoryTable } from '../memoryTable';

/*
 * Several executions claim one key at once, on a table that behaves like PostgreSQL, each with its own clock
 * and its own database mishaps. Whatever happens, its request is sent once.
 */

type Fate =
	/** The request is sent, and answered with the task's ID. */
	| 'answered'
	/** The request is sent, and never answered. */
	| 'unanswered'
	/** The request is refused, so that no task is created. */
	| 'refused'
	/** The task is created and fails, which frees the key. */
	| 'failed';

interface Plan {
	readonly startMs: number;
	readonly sendMs: number;
	readonly fate: Fate;
	readonly skewMs: number;
	/** How far its wall clock is set ahead, or back, at `setAtMs`. */
	readonly setMs?: number;
	readonly setAtMs?: number;
	/** The process of the run, whose runs share a queue; if left out, the run has a process of its own. */
	readonly process?: number;
	/** When the execution is stopped; the answer to a request already sent is still read to its end. */
	readonly stopMs?: number;
	/** The number of the table call at which the process dies; the call itself is still carried out. */
	readonly diesAt: number | undefined;
}

const AFTER_MIDNIGHT: Omit<Plan, 'diesAt'> = { startMs: 0, sendMs: 100, fate: 'answered', skewMs: 0 };

const planOf = (over: { fate?: fc.Arbitrary<Fate>; diesAt?: fc.Arbitrary<number | undefined> } = {}) =>
	fc.record<Plan>({
		startMs: fc.integer({ min: 0, max: 60 }),
		sendMs: fc.integer({ min: 0, max: 5_000 }),
		fate: over.fate ?? fc.constant('answered'),
		skewMs: fc.integer({ min: -20_000, max: 20_000 }),
		diesAt: over.diesAt ?? fc.constant(undefined),
		// Each run that may die has a process of its own.
		...(!over.diesAt && { process: fc.integer({ min: 0, max: 2 }) }),
	});

const skewed = (clock: TestClock, { skewMs, setMs = 0, setAtMs = 0 }: Plan): Clock => ({
	now: () => clock.now() + skewMs,
	wallNow: () => clock.wallNow() + skewMs + (clock.elapsedMs >= setAtMs ? setMs : 0),
	sleep: async (ms, signal) => await clock.sleep(ms, signal),
});

/** The table of a process that dies: its `diesAt`-th call is the last one to reach the table, and is never answered. */
function mortal(table: DataTable, diesAt: number | undefined, die: () => void): DataTable {
	if (diesAt === undefined) return table;
	let calls = 0;
	const live = async <T>(work: () => Promise<T>): Promise<T> => {
		calls++;
		if (calls > diesAt) return await new Promise<never>(() => die());
		if (calls < diesAt) return await work();
		// The last call still reaches the table.
		void work();
		return await new Promise<never>(() => die());
	};
	return guardedTable(table, live);
}

/** @returns what was sent, and the answers by owner, `undefined` if it died */
async function play(
	plans: readonly Plan[],
	seed: number,
	sendAgain: boolean,
	{ behindMs = 0, caughtUpMs = 0, ttlMs = 0, repeated = 0.2 } = {},
) {
	const clock = new TestClock(promisesOnly);
	const random = lucky(seed);
	const table = new MemoryTable(clock, random, 150);
	const processes = new Map<number, ClaimQueue>();
	const queueOf = (process: number | undefined): ClaimQueue => {
		const queue = processes.get(process ?? NaN) ?? new KeyedQueue();
		if (process !== undefined) processes.set(process, queue);
		return queue;
	};
	table.repeats = () => random() < repeated;
	table.hides = (ageMs) => clock.elapsedMs < caughtUpMs && ageMs < behindMs;
	const sent: Array<{ owner: number; heldMs: number; atMs: number; fate: Fate }> = [];

	const send = async (
		plan: Plan,
		owner: number,
		ledger: Ledger,
		signal: AbortSignal,
		isDead: () => boolean,
	) => {
		const answer = await ledger.claim({ key: 'k', payloadHash: 'p' });
		if (!answer.ok) return 'failure';
		if (answer.value.kind !== 'mine') return answer.value.kind;
		const { held: claim } = answer.value;
		if (signal.aborted) {
			claim.refused();
			return 'failure';
		}
		const heldMs = clock.now();
		await clock.sleep(plan.sendMs);
		if (isDead()) return undefined;
		if (plan.fate === 'refused') claim.refused();
		else {
			sent.push({ owner, heldMs, atMs: clock.now(), fate: plan.fate });
			if (plan.fate === 'unanswered') claim.unclear();
			else claim.sent(`task ${owner}`);
			if (plan.fate === 'failed') {
				await clock.sleep(3_000);
				claim.ended('failed');
			}
		}
		return 'mine' as const;
	};

	const answers = await clock.run(
		Promise.all(
			plans.map(async (plan, owner) => {
				let dead = false;
				const death = Promise.withResolvers<undefined>();
				const stopped = new AbortController();
				const mine = skewed(clock, plan);
				const settings = {
					...{ scope: 's', workflowId: 'w', executionId: String(owner), ttlMs, sendAgain },
					deadlineMs: mine.now() + 3_600_000,
				};
				const { signal } = stopped;
				void clock.sleep(plan.stopMs ?? Infinity).then(() => stopped.abort());
				const parts = {
					table: mortal(table.open(), plan.diesAt, () => {
						dead = true;
						death.resolve(undefined);
					}),
					...{ clock: mine, random, signal },
					queue: queueOf(plan.process),
					liveness: new Liveness(),
				};
				const life = async () => {
					await clock.sleep(plan.startMs);
					const ledger = new TableLedger(settings, parts);
					const kind = await send(plan, owner, ledger, signal, () => dead);
					await ledger.flush();
					return kind;
				};
				return await Promise.race([life(), death.promise]);
			}),
		),
	);
	// Finished runs leave nothing behind.
	for (const queue of processes.values()) expect(queue.size).toBe(0);
	return { sent, answers, elapsedMs: clock.elapsedMs, calls: table.calls.length };
}

const RUNS = { numRuns: 1_000 };
const seeds = fc.integer({ min: 1, max: 2 ** 31 - 1 });

/** Plays two to `most` executions that have plans of a kind, and checks each story. */
async function inAll(
	kind: fc.Arbitrary<Plan>,
	most: number,
	check: (story: Awaited<ReturnType<typeof play>>, plans: readonly Plan[]) => void,
	{ numRuns } = RUNS,
): Promise<void> {
	const plansOf = fc.array(kind, { minLength: 2, maxLength: most });
	const property = fc.asyncProperty(plansOf, seeds, async (plans, seed) =>
		check(await play(plans, seed, false), plans),
	);
	await fc.assert(property, { numRuns });
}

it('one of two or three executions wins the key, and the others wait for its task', async () => {
	await inAll(planOf(), 3, ({ sent, answers, elapsedMs }, plans) => {
		expect(sent).toHaveLength(1);
		expect(answers.toSorted()).toEqual([...Array(plans.length - 1).fill('exists'), 'mine']);
		expect(elapsedMs).toBeLessThan(15_000);
	});
});

it('a key is sent at most once if executions are stopped at any time, and once if one is not stopped', async () => {
	const stopped = fc.record({ stopMs: fc.option(fc.integer({ min: 0, max: 8_000 }), { nil: undefined }) });
	const plan = fc.tuple(planOf(), stopped).map(([usual, { stopMs }]): Plan => {
		return stopMs === undefined ? usual : { ...usual, stopMs };
	});
	await inAll(
		plan,
		5,
		({ sent, answers, elapsedMs }, plans) => {
			const isSent = plans.some(({ stopMs }) => stopMs === undefined);
			expect(sent.length).toBeGreaterThanOrEqual(isSent ? 1 : 0);
			expect(sent.length).toBeLessThanOrEqual(1);
			plans.forEach(({ stopMs }, owner) => {
				if (stopMs === undefined) expect(answers[owner]).toMatch(/^(mine|exists)$/);
			});
			expect(elapsedMs).toBeLessThan(30_000);
		},
		{ numRuns: 500 },
	);
});

it('a key is sent once: refused and failed requests free it, unanswered ones do not', async () => {
	const fates = planOf({ fate: fc.constantFrom('answered', 'unanswered', 'refused', 'failed') });
	await inAll(fates, 3, ({ sent, answers }) => {
		expect(sent.filter(({ fate }) => fate !== 'failed').length).toBeLessThanOrEqual(1);
		// Each was reported as failed before the next was sent.
		sent.slice(1).forEach(({ atMs }, index) => {
			expect(sent[index]?.fate).toBe('failed');
			expect(atMs).toBeGreaterThanOrEqual((sent[index]?.atMs ?? 0) + 3_000);
		});
		expect(answers).not.toContain('failure');
		expect(answers).toContain('mine');
	});
});

it('a key is never sent again if an execution dies at any point', async () => {
	const diesAt = fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined });
	const mortals = planOf({ fate: fc.constantFrom('answered', 'unanswered'), diesAt });
	await inAll(mortals, 3, ({ sent, answers, elapsedMs }, plans) => {
		expect(sent.length).toBeLessThanOrEqual(1);
		// Every living execution ends, at the latest when the claim of the dead one is stale.
		plans.forEach((plan, owner) => {
			if (plan.diesAt === undefined) expect(answers[owner]).toMatch(/^(mine|exists|unknown)$/);
		});
		expect(elapsedMs).toBeLessThan(DEAD_MS + 60_000);
	});
});

it('only one execution sends a key again if the operator wants unknown ones sent again', async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.array(planOf(), { minLength: 2, maxLength: 3 }),
			fc.integer({ min: 1, max: 8 }),
			seeds,
			async (plans, diesAt, seed) => {
				const dying = { ...AFTER_MIDNIGHT, diesAt };
				const late = plans.map((plan) => ({ ...plan, startMs: plan.startMs + 2_000 }));
				const { sent, answers } = await play([dying, ...late], seed, true);
				const byLiving = sent.filter(({ owner }) => owner > 0);
				expect(byLiving.length).toBeLessThanOrEqual(1);
				expect(sent.length).toBeGreaterThanOrEqual(1);
				expect(answers.slice(1)).not.toContain('unknown');
			},
		),
		{ numRuns: 300 },
	);
});

it.each([true, false])(
	'only one execution sends a key while a claim is held, even if wall clocks are set 55 minutes ahead or back (%s)',
	async (sendAgain) => {
		const HOUR_MS = 3_600_000;
		// With their usual skew and the age of a claim, two clocks are then less than CLOCKS_APART_MS apart.
		const mostMs = 55 * 60_000;
		const wrong = fc
			.tuple(planOf(), fc.integer({ min: -mostMs, max: mostMs }), fc.integer({ min: 0, max: 3_000 }))
			.map(([plan, setMs, setAtMs]) => ({ ...plan, sendMs: plan.sendMs * 10, setMs, setAtMs }));
		await fc.assert(
			fc.asyncProperty(
				fc.array(wrong, { minLength: 2, maxLength: 3 }),
				fc.constantFrom(0, 1, HOUR_MS),
				seeds,
				async (plans, ttlMs, seed) => {
					const { sent } = await play(plans, seed, sendAgain, { ttlMs });
					// By the wall clock of a later run, a task may have expired already; a held claim never does.
					const [first] = sent;
					const whileHeld = sent.filter(({ heldMs }) => heldMs <= (first?.atMs ?? 0));
					expect(whileHeld).toHaveLength(1);
				},
			),
			{ numRuns: 300 },
		);
	},
	60_000,
);

it('one execution wins the key even if the table shows writes with a delay', async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.array(planOf(), { minLength: 2, maxLength: 3 }),
			fc.integer({ min: 1, max: 1_000 }),
			seeds,
			async (plans, behindMs, seed) => {
				const { sent, answers } = await play(plans, seed, false, { behindMs, caughtUpMs: 8_000 });
				expect(sent).toHaveLength(1);
				expect(answers.toSorted()).toEqual([...Array(plans.length - 1).fill('exists'), 'mine']);
			},
		),
		{ numRuns: 500 },
	);
});

it('one of twenty executions wins the key within seconds', async () => {
	await fc.assert(
		fc.asyncProperty(seeds, async (seed) => {
			const plans = Array.from({ length: 20 }, () => ({ ...AFTER_MIDNIGHT, diesAt: undefined }));
			const { sent, elapsedMs } = await play(plans, seed, false);
			expect(sent).toHaveLength(1);
			expect(elapsedMs).toBeLessThan(10_000);
		}),
		{ numRuns: 50 },
	);
});

it('executions of one process cost only the table calls of the first one', async () => {
	await fc.assert(
		fc.asyncProperty(seeds, async (seed) => {
			const plans = Array.from({ length: 20 }, () => ({ ...AFTER_MIDNIGHT, diesAt: undefined, process: 0 }));
			const { sent, answers, elapsedMs, calls } = await play(plans, seed, false);
			expect(sent).toHaveLength(1);
			expect(answers.filter((kind) => kind === 'exists')).toHaveLength(19);
			// A read, the claim and its check, the outcome, and the removal of expired rows.
			expect(calls).toBeLessThanOrEqual(5);
			expect(elapsedMs).toBeLessThan(2_500);
		}),
		{ numRuns: 50 },
	);
});
