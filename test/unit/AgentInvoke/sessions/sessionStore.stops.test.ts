import fc from 'fast-check';

import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';
import { lucky } from '../../seededRandom';
import { OneAtATime, WorkerProcess } from './worker.scene';

const run = fc.record({
	worker: fc.nat(2),
	startMs: fc.integer({ min: 0, max: 4_000 }),
	stopMs: fc.option(fc.integer({ min: 0, max: 8_000 }), { nil: undefined }),
	keys: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 }),
	concurrency: fc.constantFrom(1, 2, 8),
	stopAtFailure: fc.boolean(),
});

it.each(['arrival', 'strict'] as const)(
	'%s: executions that are stopped at any moment leave nothing behind',
	async (turnOrder) => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(run, { minLength: 2, maxLength: 6 }),
				fc.integer({ min: 1, max: 2 ** 30 }),
				async (runs, seed) => {
					const clock = new TestClock();
					const random = lucky(seed);
					const table = new MemoryTable(clock, random, 100);
					const agent = new OneAtATime(clock);
					agent.takesMs = () => 300 + Math.round(random() * 1_500);
					agent.refuses = () => random() < 0.1;
					if (random() < 0.5) agent.tellsAfterMs = 100;
					const workers = [0, 1, 2].map(() => new WorkerProcess(clock, table, agent, random));
					const all = runs.map(async ({ worker, startMs, stopMs, keys, concurrency, stopAtFailure }, at) => {
						const stop = new AbortController();
						if (stopMs !== undefined) void clock.sleep(stopMs).then(() => stop.abort());
						await clock.sleep(startMs);
						return await workers[worker]!.run(
							keys.map((key, item) => ({ key, said: `${at} ${item}` })),
							{ turnOrder, concurrency, stopAtFailure, timeoutMs: 120_000 },
							stop.signal,
						);
					});
					const outcomes = await clock.run(Promise.all(all));
					await clock.advance(10_000);
					expect(clock.sleepers).toBe(0);
					for (const { queue } of workers) expect(queue.size).toBe(0);
					expect(table.all().filter(({ sessionId }) => sessionId === '')).toEqual([]);
					if (turnOrder === 'strict') expect(agent.refusedAsBusy).toBe(0);
					outcomes.forEach((outcome, at) => {
						const { stopMs, stopAtFailure } = runs[at]!;
						if (outcome === 'died' || stopMs !== undefined || stopAtFailure) return;
						for (const { result } of outcome) if (!result.ok) expect(result.failure.message).toBe('No');
					});
					expect(clock.elapsedMs).toBeLessThan(90_000);
				},
			),
			{ numRuns: 300 },
		);
	},
);
