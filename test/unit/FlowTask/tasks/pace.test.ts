import fc from 'fast-check';

import {
	FEW_TASKS,
	LONGEST_POLL_INTERVAL_MS,
	nextIntervalMs,
	SHORTEST_POLL_INTERVAL_MS,
	type PollFacts,
} from '../../../../nodes/FlowTask/tasks/pace';

const MANY: PollFacts = {
	calls: 1,
	finished: 15,
	changed: true,
	remaining: 80,
	backlog: false,
	failed: false,
};

describe('nextIntervalMs', () => {
	it.each<[string, Partial<PollFacts>, number]>([
		['stays where a call finds its share', {}, 4_000],
		['stretches where a call finds little', { finished: 9 }, 6_000],
		['stretches where nothing is finished', { finished: 0, changed: false }, 6_000],
		['shrinks where a call finds much', { finished: 21 }, 2_667],
		['wants more of a look that takes more calls', { calls: 3, finished: 21, remaining: 250 }, 6_000],
		['is shortest where places are free for items that wait', { finished: 1, backlog: true }, 1_000],
		['does not hurry for items that wait while no place is free', { finished: 0, backlog: true }, 6_000],
		['halves where one of few tasks moves', { remaining: FEW_TASKS, finished: 0 }, 2_000],
		[
			'stretches gently where none of few tasks moves',
			{ remaining: FEW_TASKS, finished: 0, changed: false },
			5_000,
		],
		['doubles after a look that failed', { failed: true }, 8_000],
		['doubles after one that failed for few tasks, too', { failed: true, remaining: 1 }, 8_000],
	])('%s', (_name, facts, expected) => {
		expect(Math.round(nextIntervalMs(4_000, { ...MANY, ...facts }))).toBe(expected);
	});

	it('stays within its bounds for every course of a batch', () => {
		const facts = fc.record({
			calls: fc.integer({ min: 1, max: 100 }),
			finished: fc.nat(10_000),
			changed: fc.boolean(),
			remaining: fc.nat(10_000),
			backlog: fc.boolean(),
			failed: fc.boolean(),
		});
		fc.assert(
			fc.property(fc.array(facts, { maxLength: 50 }), (course) => {
				let intervalMs = SHORTEST_POLL_INTERVAL_MS;
				for (const look of course) {
					intervalMs = nextIntervalMs(intervalMs, look);
					expect(intervalMs).toBeGreaterThanOrEqual(SHORTEST_POLL_INTERVAL_MS);
					expect(intervalMs).toBeLessThanOrEqual(LONGEST_POLL_INTERVAL_MS);
				}
			}),
		);
	});
});
