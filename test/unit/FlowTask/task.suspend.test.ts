import fc from 'fast-check';

import type { TaskInfo } from '../../../nodes/FlowTask/task.info';
import {
	noteLook,
	SHORTEST_SLEEP_MS,
	sleepMs,
	waitIsOver,
	type WaitState,
} from '../../../nodes/FlowTask/task.suspend';
import type { Json } from '../../../nodes/shared/json';
import { succeeded, taskInfo } from './taskInfo.builder';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SETTINGS = { timeoutMs: HOUR, noProgressMs: 10 * MINUTE };

function infosOf(...infos: readonly TaskInfo[]): ReadonlyMap<string, TaskInfo> {
	return new Map(infos.map((info) => [info.taskId, info]));
}

const at = (progress: number, over: Readonly<Record<string, Json>> = {}): TaskInfo =>
	taskInfo('a', { progress_num: progress, ...over });
const state = (over: Partial<WaitState> = {}): WaitState => ({
	...{ startedAtMs: 0, changedAtMs: 0, picture: '', looks: 1 },
	...over,
});

describe('noteLook', () => {
	it('begins with the first look', () => {
		expect(noteLook(undefined, infosOf(at(5)), ['a'], 7)).toMatchObject({
			...{ startedAtMs: 7, changedAtMs: 7, looks: 1 },
		});
		expect(noteLook(undefined, new Map(), [], 7)).toMatchObject({ changedAtMs: 7, picture: '' });
	});

	it.each<[string, TaskInfo | undefined, TaskInfo | undefined, boolean]>([
		['progress', at(5), at(6), true],
		['a state', at(5), at(5, { status: 3 }), true],
		[
			'a place in the queue',
			at(0, { status: 1, current_position: 4 }),
			at(0, { status: 1, current_position: 3 }),
			true,
		],
		['nothing', at(5), at(5), false],
		['a task that is shown now', undefined, at(0), true],
		['a task that is not shown any more', at(5), undefined, true],
		['the length of the queue, which is others', at(5, { queue_size: 9 }), at(5, { queue_size: 2 }), false],
		['nothing of a task that is not shown', undefined, undefined, false],
	])('tells whether %s has changed', (_name, before, after, changed) => {
		const first = noteLook(undefined, infosOf(...(before ? [before] : [])), ['a'], 100);
		const second = noteLook(first, infosOf(...(after ? [after] : [])), ['a'], 200);
		expect(second).toMatchObject({ startedAtMs: 100, changedAtMs: changed ? 200 : 100, looks: 2 });
	});

	it('looks at its own tasks, in their order', () => {
		const infos = infosOf(at(5), taskInfo('b', { progress_num: 9 }));
		const first = noteLook(undefined, infos, ['a'], 0);
		expect(noteLook(first, infosOf(at(5), taskInfo('b', { progress_num: 10 })), ['a'], 1).changedAtMs).toBe(
			0,
		);
		expect(noteLook(undefined, infos, ['b', 'a'], 0).picture).not.toBe(
			noteLook(undefined, infos, ['a', 'b'], 0).picture,
		);
	});

	it('survives being stored', () => {
		const first = noteLook(undefined, infosOf(at(5)), ['a', 'gone'], 3);
		const stored: unknown = JSON.parse(JSON.stringify(first));
		expect(stored).toEqual(first);
	});
});

describe('waitIsOver', () => {
	const over = (
		of: Partial<WaitState>,
		infos: ReadonlyMap<string, TaskInfo>,
		nowMs = 0,
		ids = ['a'],
		settings = SETTINGS,
	): boolean => waitIsOver(state(of), infos, ids, settings, nowMs);

	it('ends with the last task, however it ends', () => {
		expect(over({}, infosOf(succeeded('a')))).toBe(true);
		for (const status of [4, 5]) expect(over({}, infosOf(taskInfo('a', { status })))).toBe(true);
		for (const status of [1, 2, 0, 99]) expect(over({}, infosOf(taskInfo('a', { status })))).toBe(false);
		expect(over({}, infosOf(succeeded('a'), taskInfo('b')), 0, ['a', 'b'])).toBe(false);
		expect(over({}, infosOf(succeeded('a'), succeeded('b')), 0, ['a', 'b'])).toBe(true);
	});

	it('ends with the time-out, to the millisecond', () => {
		const settings = { ...SETTINGS, noProgressMs: 0 };
		expect(over({ startedAtMs: 5 }, infosOf(at(5)), HOUR + 4, ['a'], settings)).toBe(false);
		expect(over({ startedAtMs: 5 }, infosOf(at(5)), HOUR + 5, ['a'], settings)).toBe(true);
	});

	it('ends where nothing has changed for too long, unless that is borne with', () => {
		const nowMs = 20 * MINUTE;
		expect(over({ changedAtMs: nowMs - SETTINGS.noProgressMs + 1 }, infosOf(at(5)), nowMs)).toBe(false);
		expect(over({ changedAtMs: nowMs - SETTINGS.noProgressMs }, infosOf(at(5)), nowMs)).toBe(true);
		expect(over({}, infosOf(at(5)), nowMs, ['a'], { ...SETTINGS, noProgressMs: 0 })).toBe(false);
	});

	it('bears with a task that is not shown for two looks', () => {
		expect([1, 2, 3].map((looks) => over({ looks }, new Map()))).toEqual([false, false, true]);
		expect(over({ looks: 3 }, infosOf(at(5)), 0, ['a', 'gone'])).toBe(false);
		expect(over({ looks: 1 }, infosOf(succeeded('a')), 0, ['a', 'gone'])).toBe(false);
		expect(over({ looks: 3 }, infosOf(succeeded('a')), 0, ['a', 'gone'])).toBe(true);
	});
});

describe('sleepMs', () => {
	const settings = { ...SETTINGS, timeoutMs: 100 * HOUR };
	const sleep = (looks: number, infos: ReadonlyMap<string, TaskInfo>, nowMs = 0, of = settings): number =>
		sleepMs(state({ looks }), infos, of, nowMs);

	it('grows from a minute to a quarter of an hour', () => {
		expect([1, 2, 3].map((looks) => sleep(looks, new Map()))).toEqual([60_000, 75_000, 93_750]);
		expect(sleep(13, new Map())).toBe(60_000 * 1.25 ** 12);
		expect([14, 30, 1_000_000].map((looks) => sleep(looks, new Map()))).toEqual([900_000, 900_000, 900_000]);
	});

	it.each<[string, TaskInfo, number, number]>([
		['half done after 4 minutes: 4 more', at(50), 4 * MINUTE, 4 * MINUTE],
		['three quarters done after 9 minutes: 3 more', at(75), 9 * MINUTE, 3 * MINUTE],
		['a first look tells no speed: a minute', at(5), 0, MINUTE],
		['a tenth done after 2 minutes: no longer than it took', at(10), 2 * MINUTE, 2 * MINUTE],
		['hardly begun after half an hour: a quarter of one', at(1), 30 * MINUTE, 15 * MINUTE],
		['almost done: a minute', at(99), 5 * MINUTE, MINUTE],
		['more than all', at(150), 5 * MINUTE, MINUTE],
		['not begun, no place: a minute', at(0), 5 * MINUTE, MINUTE],
		['a place in the queue', at(0, { status: 1, current_position: 200 }), 5 * MINUTE, 200_000],
		['a place in the queue, at the first look', at(0, { status: 1, current_position: 200 }), 0, MINUTE],
		['far back in the queue', at(0, { status: 1, current_position: 1e9 }), 20 * MINUTE, 15 * MINUTE],
		['progress counts before the place', at(50, { current_position: 800 }), 4 * MINUTE, 4 * MINUTE],
		['a task that is done is waited for no more', at(10, { status: 4 }), 5 * MINUTE, MINUTE],
	])('%s', (_name, info, nowMs, expected) => {
		expect(sleep(1, infosOf(info), nowMs)).toBe(expected);
	});

	it('waits for the slowest', () => {
		const infos = infosOf(at(50), taskInfo('b', { progress_num: 25 }), succeeded('c'));
		expect(sleep(1, infos, 4 * MINUTE)).toBe(4 * MINUTE);
		const nearer = infosOf(at(90), taskInfo('b', { progress_num: 80 }), succeeded('c'));
		expect(sleep(1, nearer, 40 * MINUTE)).toBe(10 * MINUTE);
	});

	it('does not sleep past the time-out, but for the shortest sleep that n8n keeps', () => {
		const infos = infosOf(at(10));
		expect(sleep(1, infos, 10 * MINUTE, { ...settings, timeoutMs: 13 * MINUTE })).toBe(3 * MINUTE);
		expect(sleep(1, infos, 10 * MINUTE, { ...settings, timeoutMs: 10 * MINUTE + 1 })).toBe(MINUTE);
		expect(sleep(1, infos, 10 * MINUTE, { ...settings, timeoutMs: MINUTE })).toBe(MINUTE);
	});

	it('is a number between a minute and a quarter of an hour, whatever the platform says', () => {
		const number = fc.oneof(fc.integer(), fc.double(), fc.constant(null), fc.string());
		fc.assert(
			fc.property(
				number,
				number,
				fc.nat(),
				fc.integer(),
				fc.double({ min: 0.01, noNaN: true }),
				(progress, place, looks, nowMs, timeoutMs) => {
					const info = at(0, { progress_num: progress, current_position: place });
					const ms = sleepMs(state({ looks }), infosOf(info), { ...settings, timeoutMs }, nowMs);
					expect(ms).toBeGreaterThanOrEqual(SHORTEST_SLEEP_MS);
					expect(ms).toBeLessThanOrEqual(15 * MINUTE);
				},
			),
			{ numRuns: 1_000 },
		);
	});
});
