import fc from 'fast-check';

import { IncomingQueue } from '../../../../nodes/AgentBridge/frames/incomingQueue';
import { turn } from '../../testClock';

const LIMITS = { maxBatch: 100, maxQueued: 10_000, maxQueuedChars: 1_000_000 };

/** Executions that end when the test ends them. */
function executions(): {
	batches: number[][];
	deliver: (batch: number[]) => Promise<void>;
	endOne: () => Promise<void>;
} {
	const batches: number[][] = [];
	const running: Array<() => void> = [];
	return {
		batches,
		deliver: async (batch) => {
			batches.push(batch);
			await new Promise<void>((resolve) => running.push(resolve));
		},
		endOne: async () => {
			running.shift()?.();
			await turn();
		},
	};
}

test('keeps the order and the batch size, whenever frames arrive', async () => {
	const steps = fc.array(fc.oneof(fc.constant('push' as const), fc.constant('end' as const)), {
		maxLength: 60,
	});
	await fc.assert(
		fc.asyncProperty(steps, fc.integer({ min: 1, max: 5 }), async (script, maxBatch) => {
			const { batches, deliver, endOne } = executions();
			const queue = new IncomingQueue({ ...LIMITS, maxBatch }, deliver);
			let pushed = 0;
			for (const step of script) {
				if (step === 'push') queue.push(pushed++, 1);
				else await endOne();
			}
			for (let round = 0; batches.flat().length < pushed && round <= pushed; round++) {
				await turn();
				await endOne();
			}
			expect(batches.flat()).toEqual(Array.from({ length: pushed }, (_, frame) => frame));
			expect(Math.max(0, ...batches.map(({ length }) => length))).toBeLessThanOrEqual(maxBatch);
		}),
		{ numRuns: 50 },
	);
});

test('a full queue accepts nothing until there is room, by number and by size', async () => {
	const { deliver, endOne } = executions();
	const queue = new IncomingQueue({ maxBatch: 1, maxQueued: 2, maxQueuedChars: 100 }, deliver);
	queue.push(0, 1);
	await turn();
	expect([queue.push(1, 1), queue.push(2, 1), queue.push(3, 1)]).toEqual([true, true, false]);
	expect(queue.queued).toBe(2);
	let idle = false;
	void queue.idle().then(() => {
		idle = true;
	});
	await endOne();
	await endOne();
	expect(idle).toBe(false);
	await endOne();
	expect(idle).toBe(true);
	await queue.idle();

	// Frames of a running execution do not count.
	expect(queue.push(4, 100)).toBe(true);
	await turn();
	expect([queue.push(5, 99), queue.push(6, 2), queue.push(7, 1), queue.push(8, 0)]).toEqual([
		true,
		false,
		true,
		false,
	]);
});

test('accepts a frame larger than the limit if nothing else waits', async () => {
	const { deliver, endOne, batches } = executions();
	const queue = new IncomingQueue({ maxBatch: 1, maxQueued: 10, maxQueuedChars: 100 }, deliver);
	queue.push(0, 1);
	await turn();
	expect([queue.push(1, 1_000), queue.push(2, 1)]).toEqual([true, false]);
	await endOne();
	expect([queue.push(2, 60), queue.push(3, 60)]).toEqual([true, false]);
	expect(batches).toEqual([[0], [1]]);
});

test('returns the waiting frames when closed and starts nothing more', async () => {
	const { batches, deliver, endOne } = executions();
	const queue = new IncomingQueue({ ...LIMITS, maxBatch: 1 }, deliver);
	for (let frame = 0; frame < 4; frame++) queue.push(frame, 1);
	await turn();
	expect(queue.close()).toEqual([1, 2, 3]);
	expect(queue.push(9, 1)).toBe(false);
	await endOne();
	expect(batches).toEqual([[0]]);
});
