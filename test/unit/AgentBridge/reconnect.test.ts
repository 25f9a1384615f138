import fc from 'fast-check';

import { createReconnectPolicy } from '../../../nodes/AgentBridge/reconnect';
import { TestClock } from '../testClock';

function policyWith(random: () => number): {
	clock: TestClock;
	policy: ReturnType<typeof createReconnectPolicy>;
} {
	const clock = new TestClock();
	return { clock, policy: createReconnectPolicy(() => clock.now(), random) };
}

test('pauses double to a minute, and there is no last try', () => {
	const { policy } = policyWith(() => 1);
	const pauses = Array.from({ length: 10_000 }, () => policy.ended());
	expect(pauses.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
	expect(pauses.at(-1)).toBe(60_000);
	expect(policy.failures).toBe(10_000);
});

test('jitter: half of the pause is fixed, the other drawn', () => {
	fc.assert(
		fc.property(fc.double({ min: 0, max: 0.999, noNaN: true }), fc.nat(12), (drawn, before) => {
			const { policy } = policyWith(() => drawn);
			for (let failure = 0; failure < before; failure++) policy.ended();
			const fullMs = Math.min(60_000, 1_000 * 2 ** Math.min(before, 6));
			const pauseMs = policy.ended();
			expect(pauseMs).toBeGreaterThanOrEqual(fullMs / 2);
			expect(pauseMs).toBeLessThanOrEqual(fullMs);
		}),
	);
});

test('a connection that lived a minute makes the next failure a first one; a shorter one does not', async () => {
	const { clock, policy } = policyWith(() => 1);
	for (let failure = 0; failure < 5; failure++) policy.ended();
	policy.opened();
	await clock.advance(59_999);
	expect(policy.ended()).toBe(32_000);
	policy.opened();
	await clock.advance(60_000);
	expect(policy.ended()).toBe(1_000);
	expect(policy.failures).toBe(1);
	// A handshake that fails is no connection, whenever the last one was.
	await clock.advance(3_600_000);
	expect(policy.ended()).toBe(2_000);
});
