import fc from 'fast-check';

import {
	askInPieces,
	FEW_TASKS,
	infoOfMany,
	LONGEST_POLL_INTERVAL_MS,
	nextIntervalMs,
	SHORTEST_POLL_INTERVAL_MS,
	type PollFacts,
} from '../../../../nodes/FlowTask/api/poll';
import { TestClock } from '../../testClock';
import { course, failing, ScriptedPlatform } from '../platform.script';
import { valueOf } from '../../results';

const NOT_FOUND = { ...failing(false), kind: 'refused' } as const;

/** A platform with tasks `t0`, `t1`, …, which refuses every call that asks for a bad one. */
function platformWith(count: number, bad: readonly string[]): { platform: ScriptedPlatform; ids: string[] } {
	const platform = new ScriptedPlatform(new TestClock());
	const ids = Array.from({ length: count }, (_, index) => platform.add(`t${index}`, course(60_000)));
	platform.infoFails = ({ ids: asked }) => (bad.some((id) => asked.includes(id)) ? NOT_FOUND : undefined);
	return { platform, ids };
}

describe('askInPieces', () => {
	it.each([1, 2, 7, 100])('asks once for %d IDs if nothing is refused', async (count) => {
		const { platform, ids } = platformWith(count, []);
		expect(await askInPieces(platform, ids, 60)).toMatchObject([{ ids, answer: { ok: true } }]);
		expect(platform.infoCalls).toHaveLength(1);
	});

	it.each([[['t0']], [['t99']], [['t13', 't14', 't77']]])('singles out %j', async (bad) => {
		const { platform, ids } = platformWith(100, bad);
		const pieces = await askInPieces(platform, ids, 60);
		expect(pieces.flatMap((piece) => piece.ids)).toEqual(ids);
		expect(pieces.filter(({ answer }) => !answer.ok).map((piece) => piece.ids)).toEqual(
			bad.map((id) => [id]),
		);
		expect(platform.infoCalls.length).toBeLessThan(50);
	});

	it('gives up if nothing at all is answered', async () => {
		const { platform, ids } = platformWith(100, []);
		platform.infoFails = () => NOT_FOUND;
		const pieces = await askInPieces(platform, ids, 60);
		expect(new Set(pieces.flatMap((piece) => piece.ids))).toEqual(new Set(ids));
		expect(pieces.every(({ answer }) => !answer.ok)).toBe(true);
		expect(platform.infoCalls).toHaveLength(20);
	});

	it('asks a firewall once', async () => {
		const { platform, ids } = platformWith(100, []);
		platform.infoFails = () => ({ ...NOT_FOUND, details: { httpStatus: 403 } });
		await askInPieces(platform, ids, 60);
		expect(platform.infoCalls).toHaveLength(1);
	});

	it.each([
		['is not JSON', { httpStatus: 200 }],
		['is too large', { networkCode: 'ERR_TOO_LARGE' }],
	])('singles out the one task for which an answer %s', async (_name, details) => {
		const { platform, ids } = platformWith(100, []);
		const unreadable = { ...failing(true), details };
		platform.infoFails = ({ ids: asked }) => (asked.includes('t63') ? unreadable : undefined);
		const pieces = await askInPieces(platform, ids, 60);
		expect(pieces.filter(({ answer }) => !answer.ok).map((piece) => piece.ids)).toEqual([['t63']]);
	});

	it('soon gives up if no answer at all can be read', async () => {
		const { platform, ids } = platformWith(100, []);
		platform.infoFails = () => ({ ...failing(true), details: { httpStatus: 200 } });
		await askInPieces(platform, ids, 60);
		expect(platform.infoCalls).toHaveLength(9);
	});

	it('searches no longer once no one waits for the tasks', async () => {
		const { platform, ids } = platformWith(100, ['t0']);
		await askInPieces(platform, ids, 60, () => platform.infoCalls.length < 3);
		expect(platform.infoCalls).toHaveLength(3);
	});

	it.each([true, false])('asks once if the key or an outage is to blame (passing: %s)', async (passing) => {
		const { platform, ids } = platformWith(100, []);
		platform.infoFails = () => failing(passing);
		await askInPieces(platform, ids, 60);
		expect(platform.infoCalls).toHaveLength(1);
	});
});

describe('infoOfMany', () => {
	it('returns all tasks that the platform returns, and which ones it refuses', async () => {
		const { platform, ids } = platformWith(250, ['t7', 't180']);
		const { infos, refused } = valueOf(await infoOfMany(platform, [...ids, 'gone', 't1'], 60));
		expect(infos.size).toBe(248);
		expect([...refused.keys()]).toEqual(['t7', 't180']);
	});

	it('fails only if nothing is answered', async () => {
		const { platform, ids } = platformWith(2, ['t0', 't1']);
		expect(await infoOfMany(platform, ids, 60)).toEqual({ ok: false, failure: NOT_FOUND });
		const many = platformWith(101, []);
		many.platform.infoFails = ({ ids: asked }) => (asked.includes('t100') ? failing(true) : undefined);
		const { infos, refused } = valueOf(await infoOfMany(many.platform, many.ids, 60));
		expect(infos.size).toBe(100);
		expect([...refused]).toEqual([['t100', failing(true)]]);
	});
});

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
		['stays if a call finds its share', {}, 4_000],
		['increases if a call finds little', { finished: 9 }, 6_000],
		['increases if nothing is finished', { finished: 0, changed: false }, 6_000],
		['shrinks if a call finds much', { finished: 21 }, 2_667],
		['expects more of a poll that takes more calls', { calls: 3, finished: 21, remaining: 250 }, 6_000],
		['is shortest if slots are free for waiting items', { finished: 1, backlog: true }, 1_000],
		['does not shrink for waiting items while no slot is free', { finished: 0, backlog: true }, 6_000],
		['halves if one of few tasks makes progress', { remaining: FEW_TASKS, finished: 0 }, 2_000],
		[
			'increases gently if none of few tasks makes progress',
			{ remaining: FEW_TASKS, finished: 0, changed: false },
			5_000,
		],
		['doubles after a failed poll', { failed: true }, 8_000],
		['doubles after a failed poll even for few tasks', { failed: true, remaining: 1 }, 8_000],
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
				for (const read of course) {
					intervalMs = nextIntervalMs(intervalMs, read);
					expect(intervalMs).toBeGreaterThanOrEqual(SHORTEST_POLL_INTERVAL_MS);
					expect(intervalMs).toBeLessThanOrEqual(LONGEST_POLL_INTERVAL_MS);
				}
			}),
		);
	});
});
