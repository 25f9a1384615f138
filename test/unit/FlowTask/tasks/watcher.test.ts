import fc from 'fast-check';

import { ProgressSockets } from '../../../../nodes/FlowTask/api/progressSocket';
import { TaskWatcher, type WatchSettings } from '../../../../nodes/FlowTask/tasks/watcher';
import type { JsonObject } from '../../../../nodes/shared/text/json';
import { TestClock, turn } from '../../testClock';
import { course, failing, gaps, ScriptedPlatform, SUCCEEDED } from '../platform.script';
import { playedSockets, type PlayedStep } from '../sockets.script';

const MINUTE = 60_000;

const running: TaskWatcher[] = [];
afterEach(() => {
	for (const watcher of running.splice(0)) watcher.stop();
});

const ignore = (): void => undefined;
/** How a task whose ID an item names is watched. */
const GIVEN = [{}, false, ignore] as const;

function scene({
	timeoutMs = 60 * MINUTE,
	noProgressMs = 0,
	withSockets = false,
	backlog = (): number => 0,
} = {}) {
	const clock = new TestClock();
	const platform = new ScriptedPlatform(clock);
	const { factory, opened } = playedSockets();
	const settings: WatchSettings = {
		deadlineMs: clock.now() + timeoutMs,
		noProgressMs,
		urlExpireSeconds: 3_600,
	};
	const sockets = withSockets ? new ProgressSockets('wss://h', ['/progress'], factory) : undefined;
	const watcher = new TaskWatcher({ api: platform, sockets }, clock, settings, backlog);
	running.push(watcher);
	/** Watches tasks of this run. */
	const watch = async (...taskIds: string[]) =>
		await Promise.all(
			taskIds.map(
				async (id) =>
					await watcher.watch(id, { promptToken: `token-${id}`, sinceMs: clock.now() }, true, ignore),
			),
		);
	return {
		clock,
		platform,
		watcher,
		sockets: opened,
		watch,
		/** Watches tasks of this run to their ends. @returns the kinds of those */
		endsOf: async (...taskIds: string[]) => (await clock.run(watch(...taskIds))).map(({ kind }) => kind),
		socketOf: (taskId: string) => {
			const socket = opened.filter(({ url }) => url.endsWith(`=token-${taskId}`)).at(-1);
			if (!socket) throw new Error(`no socket for ${taskId}`);
			return socket;
		},
	};
}

function many(platform: ScriptedPlatform, count: number, takesMs: (index: number) => number): string[] {
	return Array.from({ length: count }, (_, index) => platform.add(`t${index}`, course(takesMs(index))));
}

const message = (taskId: string, status: number, progress = 50): unknown => ({
	flow_task_info: { flow_task_id: taskId, status, progress_num: progress },
});

describe('TaskWatcher: polls', () => {
	it('follows a task to its end, with links that live as long as the run specifies, and reports what it saw', async () => {
		const { clock, platform, watch } = scene();
		platform.add('t', course(4_000));
		const startMs = clock.now();
		const [end] = await clock.run(watch('t'));
		expect(end).toMatchObject({ kind: 'final', info: { taskId: 't', state: 'succeeded' } });
		expect(end?.snapshot.sinceMs).toBe(startMs);
		expect(end?.snapshot.generatingAtMs).toBeGreaterThan(startMs);
		expect(end?.snapshot.endedAtMs).toBe(clock.now());
		for (const { urlExpireSeconds } of platform.asked) expect(urlExpireSeconds).toBe(3_600);
	});

	it('asks for all unfinished tasks at once, a hundred per call', async () => {
		const { clock, platform, watch } = scene();
		const ids = many(platform, 250, (index) => 1_000 + index * 40);
		await clock.run(watch(...ids));
		let unfinished = new Set(ids);
		for (const { atMs, calls, ids: asked } of platform.rounds()) {
			expect(new Set(asked)).toEqual(unfinished);
			expect(calls).toBe(Math.ceil(unfinished.size / 100));
			unfinished = new Set(ids.filter((_, index) => 1_000 + index * 40 > atMs));
		}
		expect(platform.infoCalls.every(({ ids: asked }) => asked.length <= 100)).toBe(true);
	});

	it('polls at least a second apart and at most ten seconds apart', async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(fc.integer({ min: 1, max: 120_000 }), { minLength: 1, maxLength: 40 }),
				async (lengths) => {
					const { clock, platform, watch, watcher } = scene();
					const ids = many(platform, lengths.length, (index) => lengths[index] ?? 0);
					const ends = await clock.run(watch(...ids));
					watcher.stop();
					expect(ends.every(({ kind }) => kind === 'final')).toBe(true);
					const distances = gaps(platform.rounds());
					expect(Math.min(Infinity, ...distances)).toBeGreaterThanOrEqual(1_000);
					expect(Math.max(0, ...distances)).toBeLessThanOrEqual(10_000);
				},
			),
			{ numRuns: 40 },
		);
	});

	it('does not begin a poll while another is in progress', async () => {
		const { clock, platform, watch } = scene();
		platform.infoTakesMs = 7_000;
		platform.add('t', course(20_000));
		await clock.run(watch('t'));
		expect(Math.min(...gaps(platform.rounds()))).toBeGreaterThanOrEqual(7_000);
	});

	it('polls a task of an earlier run sooner than a new one, and includes new tasks that are added before the first poll', async () => {
		const older = scene();
		older.platform.add('t', () => SUCCEEDED);
		await older.clock.run(older.watcher.watch('t', ...GIVEN));
		const newer = scene();
		newer.platform.add('t', course(10));
		newer.platform.add('u', course(10));
		const first = newer.watch('t');
		await newer.clock.advance(300);
		await newer.clock.run(Promise.all([first, newer.watch('u')]));
		expect(older.platform.infoCalls).toMatchObject([{ atMs: 50, ids: ['t'] }]);
		expect(newer.platform.infoCalls).toMatchObject([{ atMs: 500, ids: ['t', 'u'] }]);
	});

	it('keeps the interval between polls when tasks are added after all earlier ones have ended', async () => {
		const { clock, platform, watch, watcher } = scene();
		platform.add('a', course(10));
		await clock.run(watch('a'));
		platform.add('b', () => SUCCEEDED);
		await clock.run(watcher.watch('b', ...GIVEN));
		expect(Math.min(...gaps(platform.rounds()))).toBeGreaterThanOrEqual(1_000);
	});

	it('watches an ID once, even if this is requested twice, and again after its task has ended', async () => {
		const { clock, platform, watch, endsOf } = scene();
		platform.add('t', course(3_000));
		const ends = await clock.run(watch('t', 't'));
		expect(ends[0]).toBe(ends[1]);
		expect(platform.infoCalls.every(({ ids }) => ids.length === 1)).toBe(true);
		expect(await endsOf('t')).toEqual(['final']);
	});

	it('tells tasks apart, whatever their IDs are', async () => {
		const { clock, platform, watch } = scene();
		const ids = ['__proto__', 'constructor', 'a b', '日本', '7'];
		for (const id of ids) platform.add(id, course(1_000));
		const ends = await clock.run(watch(...ids));
		expect(ends.map((end) => (end.kind === 'final' ? end.info.taskId : ''))).toEqual(ids);
	});
});

describe('TaskWatcher: tasks that do not end', () => {
	const stepAt = (ageMs: number): number => Math.floor(ageMs / 45_000);

	it.each<[string, noProgressMs: number, (ageMs: number) => JsonObject]>([
		['a status that the interface does not define', 0, () => ({ status: 77 })],
		['slow but steady progress', MINUTE, (ageMs) => ({ status: 2, progress_num: stepAt(ageMs) })],
		['a slow but steady queue', MINUTE, (ageMs) => ({ status: 1, current_position: 100 - stepAt(ageMs) })],
		['a queue that reports no positions', MINUTE, () => ({ status: 1, current_position: null })],
		['no progress at all if no limit is set', 0, () => ({ status: 2, progress_num: 1 })],
	])('tolerates %s', async (_name, noProgressMs, fields) => {
		const { clock, platform, watch } = scene({ noProgressMs });
		platform.add('t', (ageMs) => (ageMs > 50 * MINUTE ? SUCCEEDED : fields(ageMs)));
		await expect(clock.run(watch('t'))).resolves.toMatchObject([{ kind: 'final', info: { statusCode: 3 } }]);
	});

	it('ends a task in an unknown status at the timeout, and reports the status', async () => {
		const { clock, platform, watch } = scene({ timeoutMs: 2 * MINUTE });
		platform.add('t', () => ({ status: 77 }));
		await expect(clock.run(watch('t'))).resolves.toMatchObject([
			{ kind: 'timedOut', snapshot: { info: { state: 'unknown', statusCode: 77 } } },
		]);
	});

	it('treats an ID as unknown only after it has been missing for a while', async () => {
		const { clock, platform, watch, watcher } = scene();
		platform.add('known', course(60_000));
		const known = watch('known');
		const end = await clock.run(watcher.watch('mistyped', ...GIVEN));
		expect(end).toMatchObject({ kind: 'unknown', snapshot: { info: undefined } });
		expect(clock.elapsedMs).toBeGreaterThanOrEqual(10_000);
		expect(clock.elapsedMs).toBeLessThan(60_000);
		expect(platform.infoCalls.filter(({ ids }) => ids.includes('mistyped')).length).toBeGreaterThanOrEqual(5);
		await expect(clock.run(known)).resolves.toMatchObject([{ kind: 'final' }]);
	});

	it('polls several times before it treats an ID as unknown, even if polls are slow', async () => {
		const { clock, platform, watcher } = scene();
		platform.infoTakesMs = 8_000;
		await expect(clock.run(watcher.watch('mistyped', ...GIVEN))).resolves.toMatchObject({ kind: 'unknown' });
		expect(platform.infoCalls.length).toBeGreaterThanOrEqual(3);
	});

	it('tolerates a task of this run that is not shown for minutes', async () => {
		const { clock, platform, watch, endsOf } = scene();
		platform.add('other', course(10 * MINUTE));
		platform.add('t', (ageMs) => (ageMs < 4 * MINUTE ? undefined : SUCCEEDED));
		const other = watch('other');
		expect(await endsOf('t')).toEqual(['final']);
		await clock.run(other);
	});

	it('gives up a task of this run that is missing for minutes while others are shown', async () => {
		const { clock, platform, watch, endsOf } = scene();
		platform.add('other', course(20 * MINUTE));
		const other = watch('other');
		expect(await endsOf('lost')).toEqual(['unknown']);
		expect(clock.elapsedMs).toBeGreaterThanOrEqual(5 * MINUTE);
		expect(clock.elapsedMs).toBeLessThan(6 * MINUTE);
		await clock.run(other);
	});

	it('never gives up all tasks of this run because the index is empty', async () => {
		const { platform, endsOf } = scene();
		for (const id of ['a', 'b', 'c']) {
			platform.add(id, (ageMs) => (ageMs < 40 * MINUTE ? undefined : SUCCEEDED));
		}
		expect(await endsOf('a', 'b', 'c')).toEqual(['final', 'final', 'final']);
	});

	it('says at the timeout that the platform showed none of the tasks', async () => {
		const { clock, watch } = scene({ timeoutMs: 8 * MINUTE });
		await expect(clock.run(watch('a', 'b'))).resolves.toMatchObject([
			{ kind: 'timedOut', snapshot: { trouble: expect.stringContaining('returned none') as string } },
			{ kind: 'timedOut' },
		]);
	});

	it('still treats the IDs of other runs as unknown when none of them is shown', async () => {
		const { clock, watcher } = scene();
		const ends = Promise.all(['x', 'y'].map(async (id) => await watcher.watch(id, ...GIVEN)));
		await expect(clock.run(ends)).resolves.toMatchObject([{ kind: 'unknown' }, { kind: 'unknown' }]);
		expect(clock.elapsedMs).toBeLessThan(30_000);
	});

	it("tolerates an index that no longer shows another run's task after it has shown it", async () => {
		const { clock, platform, watcher } = scene();
		platform.add('t', (ageMs) => {
			if (ageMs > 3 * MINUTE) return SUCCEEDED;
			return ageMs < 5_000 ? { status: 2, progress_num: 1 } : undefined;
		});
		await expect(clock.run(watcher.watch('t', ...GIVEN))).resolves.toMatchObject({ kind: 'final' });
	});

	it('treats a task that only its socket shows as known', async () => {
		const { clock, platform, watcher, socketOf } = scene({ withSockets: true });
		platform.add('t', (ageMs) => (ageMs < 2 * MINUTE ? undefined : SUCCEEDED));
		const end = watcher.watch('t', { promptToken: 'token-t' }, false, ignore);
		await clock.advance(1_000);
		socketOf('t').open();
		socketOf('t').say(message('t', 2, 5));
		await expect(clock.run(end)).resolves.toMatchObject({ kind: 'final' });
	});

	it('ends a task that makes no progress for too long', async () => {
		const { clock, platform, watch } = scene({ noProgressMs: 5 * MINUTE });
		platform.add('t', (ageMs) => ({ status: 2, progress_num: Math.min(40, Math.floor(ageMs / 1_000)) }));
		const [end] = await clock.run(watch('t'));
		expect(end).toMatchObject({ kind: 'stalled', snapshot: { info: { progress: 40 } } });
		expect(clock.elapsedMs).toBeGreaterThanOrEqual(40_000 + 5 * MINUTE - 10_000);
		expect(clock.elapsedMs).toBeLessThan(40_000 + 5 * MINUTE + 11_000);
	});

	it('polls once more at the timeout, so that a task that is done by then counts as done', async () => {
		const { clock, platform, watch } = scene({ timeoutMs: 30_000 });
		platform.add('late', course(60_000));
		platform.add('just', course(29_990));
		const [late, just] = await clock.run(watch('late', 'just'));
		expect(late).toMatchObject({ kind: 'timedOut', snapshot: { info: { state: 'generating' } } });
		expect(just).toMatchObject({ kind: 'final' });
		expect(clock.elapsedMs).toBeGreaterThanOrEqual(30_000);
		expect(clock.elapsedMs).toBeLessThanOrEqual(31_000);
	});

	it('ends at the timeout even if a poll hangs', async () => {
		const { clock, platform, endsOf } = scene({ timeoutMs: 30_000 });
		platform.infoTakesMs = 30 * MINUTE;
		platform.add('t', course(60_000));
		expect(await endsOf('t')).toEqual(['timedOut']);
		expect(clock.elapsedMs).toBeLessThanOrEqual(35_000);
	});

	it('ends a task that is added after the timeout', async () => {
		const { clock, platform, endsOf } = scene({ timeoutMs: 1_000 });
		platform.add('t', course(60_000));
		await clock.advance(10_000);
		expect(await endsOf('t')).toEqual(['timedOut']);
	});
});

describe('TaskWatcher: polls that fail', () => {
	it('tolerates an outage, and polls less often meanwhile', async () => {
		const { platform, endsOf } = scene();
		platform.infoFails = ({ atMs }) => (atMs < 100_000 ? failing(true) : undefined);
		platform.add('t', course(5_000));
		expect(await endsOf('t')).toEqual(['final']);
		expect(platform.infoCalls.length).toBeLessThan(20);
	});

	it('ends at the timeout in an outage that does not end', async () => {
		const { platform, endsOf } = scene({ timeoutMs: 2 * MINUTE });
		platform.infoFails = () => failing(true);
		platform.add('t', course(5_000));
		expect(await endsOf('t')).toEqual(['timedOut']);
	});

	it('does not count a failed poll as one in which the ID was missing', async () => {
		const { platform, endsOf } = scene();
		platform.infoFails = ({ atMs }) => (atMs > 400 && atMs < 120_000 ? failing(true) : undefined);
		platform.add('t', (ageMs) => (ageMs < 120_000 ? undefined : SUCCEEDED));
		expect(await endsOf('t')).toEqual(['final']);
	});

	it('ends tasks given by ID at once if the answer will not change', async () => {
		const { clock, platform, watcher } = scene();
		platform.infoFails = () => failing(false);
		for (const id of ['a', 'b']) platform.add(id, course(5_000));
		await expect(
			clock.run(Promise.all([watcher.watch('a', ...GIVEN), watcher.watch('b', ...GIVEN)])),
		).resolves.toMatchObject([
			{ kind: 'refused', failure: { message: 'The poll failed' } },
			{ kind: 'refused' },
		]);
		expect(platform.infoCalls).toHaveLength(1);
	});

	it('gives tasks of its own run minutes, whatever the answers to the first polls', async () => {
		const { platform, endsOf } = scene();
		platform.infoFails = ({ atMs }) => (atMs < 4 * MINUTE ? failing(false) : undefined);
		for (const id of ['a', 'b']) platform.add(id, course(5_000));
		expect(await endsOf('a', 'b')).toEqual(['final', 'final']);
	});

	it('ends only the tasks of the call that was refused', async () => {
		const { clock, platform, watch } = scene();
		const ids = many(platform, 101, () => 3_000);
		platform.infoFails = (call) => (call.ids.includes('t100') ? failing(false) : undefined);
		const ends = await clock.run(watch(...ids));
		expect(ends.filter(({ kind }) => kind === 'refused')).toHaveLength(1);
		expect(ends.filter(({ kind }) => kind === 'final')).toHaveLength(100);
	});
});

describe('TaskWatcher: bugs in our own code', () => {
	const mistake = (): never => {
		throw new RangeError('Maximum call stack size exceeded');
	};
	const REJECTED = { status: 'rejected', reason: new RangeError('Maximum call stack size exceeded') };

	it('end every wait in progress when a poll throws, and no later one', async () => {
		const { clock, platform, watch } = scene();
		platform.add('t', course(4_000));
		platform.add('u', course(4_000));
		const info = jest.spyOn(platform, 'info').mockImplementationOnce(mistake);
		const ends = await clock.run(Promise.allSettled([watch('t'), watch('u')]));
		expect(ends).toMatchObject([REJECTED, REJECTED]);
		info.mockRestore();
		expect(await clock.run(watch('t'))).toMatchObject([{ kind: 'final' }]);
	});

	it('that throw while a message is handled end the task, and do not reach the socket', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		platform.add('t', course(MINUTE));
		const ends = Promise.allSettled([watch('t')]);
		await clock.advance(100);
		const wallNow = jest.spyOn(clock, 'wallNow').mockImplementationOnce(mistake);
		expect(() => socketOf('t').say(message('t', 2, 5))).not.toThrow();
		wallNow.mockRestore();
		await expect(clock.run(ends)).resolves.toMatchObject([REJECTED]);
	});
});

describe('TaskWatcher: polls that are refused', () => {
	const notFound = { ...failing(false), kind: 'refused', message: 'task not found: bad' } as const;

	it('restarts the count of refusals after an answer', async () => {
		const { platform, endsOf } = scene();
		// One poll in three is answered, so there are never three refusals in a row.
		let polls = 0;
		platform.infoFails = () => (polls++ % 3 === 0 ? undefined : failing(false));
		for (const id of ['a', 'b']) platform.add(id, course(2 * MINUTE));
		expect(await endsOf('a', 'b')).toEqual(['final', 'final']);
	});

	it('ends after minutes of refusals, even for tasks that were reported before', async () => {
		const { clock, platform, watch } = scene();
		platform.infoFails = ({ atMs }) => (atMs > 1_000 ? failing(false) : undefined);
		for (const id of ['a', 'b']) platform.add(id, course(MINUTE));
		await expect(clock.run(watch('a', 'b'))).resolves.toMatchObject([
			{ kind: 'refused', failure: { message: 'The poll failed' }, snapshot: { info: { state: 'queued' } } },
			{ kind: 'refused' },
		]);
		expect(clock.elapsedMs).toBeGreaterThan(5 * MINUTE);
		expect(clock.elapsedMs).toBeLessThan(6 * MINUTE);
	});

	it.each([
		['missing', undefined],
		['refused', failing(false)],
	])('does not count the time of an outage against a task that was %s before it', async (_name, failure) => {
		const { platform, endsOf } = scene();
		platform.add('t', (ageMs) => (ageMs < 5_000 ? undefined : SUCCEEDED));
		platform.infoFails = ({ atMs }) => {
			if (atMs < 5_000) return failure;
			return atMs < 8 * MINUTE ? failing(true) : undefined;
		};
		expect(await endsOf('t')).toEqual(['final']);
	});

	it('counts refusals although a socket reports the task', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		platform.infoFails = () => failing(false);
		const end = watch('t');
		for (let minute = 1; minute <= 6; minute++) {
			await clock.advance(MINUTE);
			if (minute === 1) socketOf('t').open();
			socketOf('t').say(message('t', 2, minute));
		}
		await expect(end).resolves.toMatchObject([{ kind: 'refused' }]);
	});

	it('ends only the task whose state the platform refuses to report', async () => {
		const { clock, platform, watch } = scene();
		const ids = many(platform, 100, () => MINUTE);
		platform.infoFails = ({ ids: asked }) => (asked.includes('t37') ? notFound : undefined);
		const ends = await clock.run(watch(...ids));
		expect(ends.flatMap(({ kind }, index) => (kind === 'final' ? [] : [`${index} ${kind}`]))).toEqual([
			'37 refused',
		]);
		// The refused task is found once, and polled by itself from then on.
		const shared = platform.infoCalls.filter(({ ids: asked }) => asked.length > 1 && asked.includes('t37'));
		expect(new Set(shared.map(({ atMs }) => atMs)).size).toBe(1);
	});

	it('waits for a task that the platform reports later', async () => {
		const { platform, endsOf } = scene();
		platform.infoFails = ({ ids: asked, atMs }) =>
			asked.includes('late') && atMs < 8_000 ? notFound : undefined;
		for (const id of ['a', 'late']) platform.add(id, course(20_000));
		expect(await endsOf('a', 'late')).toEqual(['final', 'final']);
	});
});

describe('TaskWatcher: stop', () => {
	it('reports every open task as left, and leaves no timer and no socket', async () => {
		const { clock, platform, watch, watcher, sockets } = scene({ withSockets: true });
		for (const id of ['a', 'b']) platform.add(id, course(10 * MINUTE));
		const ends = watch('a', 'b');
		await clock.advance(20_000);
		watcher.stop();
		await expect(clock.run(ends)).resolves.toMatchObject([
			{ kind: 'left', snapshot: { info: { state: 'queued' } } },
			{ kind: 'left' },
		]);
		await turn();
		expect(clock.sleepers).toBe(0);
		expect(sockets.map(({ closed }) => closed)).toEqual([true, true]);
		expect(clock.elapsedMs).toBe(20_000);
	});

	it('ends during a poll, and does not poll again', async () => {
		const { clock, platform, watch, watcher } = scene();
		platform.infoTakesMs = 5_000;
		platform.add('t', course(10 * MINUTE));
		const ends = watch('t');
		await clock.advance(1_000);
		watcher.stop();
		await expect(clock.run(ends)).resolves.toMatchObject([{ kind: 'left' }]);
		await clock.advance(10 * MINUTE);
		expect(platform.infoCalls).toHaveLength(1);
		expect(clock.sleepers).toBe(0);
	});

	it('reports a task that is added after the stop as left, without a poll', async () => {
		const { platform, watcher, endsOf } = scene();
		watcher.stop();
		watcher.stop();
		platform.add('t', course(1_000));
		expect(await endsOf('t')).toEqual(['left']);
		expect(platform.infoCalls).toEqual([]);
	});
});

describe('TaskWatcher: sockets', () => {
	it('opens one per task while 20 or fewer are left', async () => {
		const { clock, platform, watch, sockets } = scene({ withSockets: true });
		const ids = many(platform, 21, (index) => (index === 0 ? 3_000 : 60_000));
		const ends = watch(...ids);
		await clock.advance(2_000);
		expect(sockets).toHaveLength(20);
		await clock.run(ends);
		expect(sockets.every(({ closed }) => closed)).toBe(true);
	});

	it('opens none while more than 20 tasks run', async () => {
		let waiting = 40;
		const { clock, platform, watch, sockets } = scene({ withSockets: true, backlog: () => waiting });
		const ends = Promise.all(
			many(platform, 40, () => 30_000).map(async (id) => {
				waiting--;
				return await watch(id);
			}),
		);
		await clock.advance(10_000);
		expect(sockets).toEqual([]);
		await clock.run(ends);
		expect(sockets).toEqual([]);
	});

	it('counts items that have not been submitted yet', async () => {
		let waiting = 20;
		const { clock, platform, watch, sockets } = scene({ withSockets: true, backlog: () => waiting });
		platform.add('t', course(60_000));
		const ends = watch('t');
		await clock.advance(5_000);
		expect(sockets).toEqual([]);
		waiting = 19;
		await clock.run(ends);
		expect(sockets).toHaveLength(1);
	});

	it('opens none for a task without a token', async () => {
		const { clock, platform, watcher, sockets } = scene({ withSockets: true });
		platform.add('t', course(5_000));
		await clock.run(watcher.watch('t', ...GIVEN));
		expect(sockets).toEqual([]);
	});

	it('polls at once when a socket says that a task is done', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		platform.add('t', course(3_210));
		const ends = watch('t');
		socketOf('t').open();
		await clock.advance(1_700);
		socketOf('t').say(message('t', 2));
		await clock.advance(3_210 - 1_700);
		socketOf('t').say(message('t', 3, 100));
		await expect(clock.run(ends)).resolves.toMatchObject([{ kind: 'final' }]);
		expect(clock.elapsedMs).toBe(3_210);
	});

	it('polls less often while all sockets send messages', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		platform.add('t', course(MINUTE));
		const ends = watch('t');
		socketOf('t').open();
		for (let second = 1; second < 60; second++) {
			socketOf('t').say(message('t', 2, second));
			await clock.advance(1_000);
		}
		socketOf('t').say(message('t', 3, 100));
		await clock.run(ends);
		expect(platform.infoCalls.length).toBeLessThanOrEqual(9);
	});

	it('counts what a socket says as progress', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true, noProgressMs: MINUTE });
		platform.add('t', (ageMs) => (ageMs < 5 * MINUTE ? { status: 2, progress_num: 1 } : SUCCEEDED));
		const ends = watch('t');
		socketOf('t').open();
		for (let step = 0; step < 11; step++) {
			await clock.advance(30_000);
			socketOf('t').say(message('t', 2, step));
		}
		await expect(clock.run(ends)).resolves.toMatchObject([{ kind: 'final' }]);
	});

	it('waits a second between polls prompted by sockets if more than four tasks run', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		const ids = many(platform, 10, (index) => 5_000 + index * 100);
		const ends = watch(...ids);
		for (const id of ids) socketOf(id).open();
		await clock.advance(4_900);
		for (const id of ids) {
			await clock.advance(100);
			socketOf(id).say(message(id, 3, 100));
		}
		await clock.run(ends);
		const few = platform.rounds().filter(({ ids: asked }) => asked.length > 4);
		expect(Math.min(...gaps(few))).toBeGreaterThanOrEqual(1_000);
		expect(clock.elapsedMs).toBeLessThan(8_000);
	});

	it('waits at most two seconds if more than four tasks run, so that one poll finds several ends', async () => {
		const { clock, platform, watch, sockets, socketOf } = scene({ withSockets: true });
		const ids = many(platform, 10, (index) => (index < 3 ? 700 : 1_900));
		const ends = watch(...ids);
		await turn();
		for (const socket of sockets) socket.open();
		await clock.advance(600);
		await clock.advance(200);
		for (const id of ids.slice(0, 3)) socketOf(id).say(message(id, 3, 100));
		await clock.advance(1_200);
		for (const id of ids.slice(3)) socketOf(id).say(message(id, 3, 100));
		await clock.run(ends);
		expect(platform.rounds().map(({ atMs }) => atMs)).toEqual([500, 2_000]);
		expect(clock.elapsedMs).toBeLessThan(2_200);

		const stuck = scene({ withSockets: true });
		const others = many(stuck.platform, 10, (index) => (index < 3 ? 700 : 9_000));
		void stuck.watch(...others);
		await stuck.clock.advance(800);
		for (const id of others.slice(0, 3)) stuck.socketOf(id).say(message(id, 3, 100));
		await stuck.clock.advance(2_000);
		expect(stuck.platform.rounds().map(({ atMs }) => atMs)).toEqual([500, 2_500]);
	});

	it('polls at once when sockets have reported the end of all tasks', async () => {
		const { clock, platform, watch, sockets, socketOf } = scene({ withSockets: true });
		const ids = many(platform, 10, (index) => 700 + index * 20);
		const ends = watch(...ids);
		await turn();
		for (const socket of sockets) socket.open();
		await clock.advance(700);
		for (const id of ids) {
			socketOf(id).say(message(id, 3, 100));
			await clock.advance(20);
		}
		await clock.run(ends);
		expect(platform.rounds().map(({ atMs }) => atMs)).toEqual([500, 880]);
	});

	it('polls just after the last of many tasks has ended, if they end at a steady pace', async () => {
		const { clock, platform, watch } = scene();
		const ids = many(platform, 200, (index) => (Math.floor(index / 8) + 1) * 300);
		await clock.run(watch(...ids));
		expect(clock.elapsedMs).toBeGreaterThanOrEqual(7_500);
		expect(clock.elapsedMs).toBeLessThan(7_900);
		expect(Math.min(...gaps(platform.rounds()))).toBeGreaterThanOrEqual(1_000);
	});

	it.each([1, 10])('is not misled by sockets that lie: only task info ends %d task(s)', async (count) => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		const ids = many(platform, count, () => 60_000);
		const ends = watch(...ids);
		for (const id of ids) socketOf(id).open();
		for (let frame = 0; frame < 300; frame++) {
			for (const id of ids) socketOf(id).say(message(id, 3, 100));
			await clock.advance(100);
		}
		expect(platform.rounds().length).toBeLessThanOrEqual(35);
		const final = { kind: 'final', info: { state: 'succeeded' } };
		await expect(clock.run(ends)).resolves.toMatchObject(ids.map(() => final));
		expect(clock.elapsedMs).toBeGreaterThanOrEqual(60_000);
		expect(clock.elapsedMs).toBeLessThanOrEqual(70_100);
	});

	it.each([1, 2])(
		'polls again soon if task info lags behind what the socket has said (%d times)',
		async (times) => {
			const { clock, platform, watch, socketOf } = scene({ withSockets: true });
			platform.add('t', course(5_300));
			const ends = watch('t');
			socketOf('t').open();
			await clock.advance(1_000);
			socketOf('t').say(message('t', 2));
			await clock.advance(4_000);
			// Task info reports the end 300 ms later, and the socket sends nothing more.
			for (let said = 0; said < times; said++) socketOf('t').say(message('t', 3, 100));
			await clock.run(ends);
			expect(clock.elapsedMs).toBeLessThanOrEqual(7_000);
		},
	);

	it.each<[string, PlayedStep[]]>([
		['never opens', []],
		['is refused', ['refuse']],
		['opens and says nothing', ['open']],
		['drops at once', ['open', 'drop']],
		['sends one message and falls silent', ['open', { say: message('t', 2, 1) }]],
		['sends one message and drops', ['open', { say: message('t', 2, 1) }, 'drop']],
		[
			'sends garbage',
			['open', ...['', '{', 'null', '[]', '{"flow_task_info":null}'].map((say) => ({ say }))],
		],
		['reports another task', ['open', { say: message('u', 4) }]],
		['reports the failure of a task that has not failed', ['open', { say: message('t', 4) }]],
	])('stalls no task when its socket %s', async (_name, steps) => {
		const { clock, platform, watch, sockets } = scene({ withSockets: true });
		platform.add('t', course(25_000));
		const ends = watch('t');
		let played = 0;
		for (let second = 0; second < 40; second++) {
			for (; played < sockets.length; played++) sockets[played]?.play(steps);
			await clock.advance(1_000);
		}
		await expect(clock.run(ends)).resolves.toMatchObject([{ kind: 'final', info: { state: 'succeeded' } }]);
		expect(platform.rounds().at(-1)?.atMs).toBeLessThanOrEqual(35_000);
	});

	it('returns to polling at its own pace when the socket that made polls unnecessary drops', async () => {
		const { clock, platform, watch, sockets, socketOf } = scene({ withSockets: true });
		platform.add('t', course(25_000));
		const ends = watch('t');
		socketOf('t').open();
		socketOf('t').say(message('t', 2, 1));
		await clock.advance(5_000);
		sockets[0]?.drop();
		await clock.run(ends);
		expect(clock.elapsedMs).toBeLessThanOrEqual(27_000);
	});

	it('opens another socket after one dropped, but not forever', async () => {
		const { clock, platform, watch, sockets } = scene({ withSockets: true });
		platform.add('t', course(5 * MINUTE));
		const ends = watch('t');
		for (let second = 0; second < 200; second++) {
			const socket = sockets.at(-1);
			if (socket && second % 10 === 0) {
				socket.open();
				socket.say(message('t', 2, second));
				socket.drop();
			}
			await clock.advance(1_000);
		}
		expect(sockets).toHaveLength(3);
		await expect(clock.run(ends)).resolves.toMatchObject([{ kind: 'final' }]);
	});

	it('ignores what a socket says after its task has ended', async () => {
		const { clock, platform, watch, socketOf } = scene({ withSockets: true });
		platform.add('t', course(2_000));
		const [end] = await clock.run(watch('t'));
		const calls = platform.infoCalls.length;
		socketOf('t').say(message('t', 2));
		socketOf('t').say(message('t', 3));
		socketOf('t').drop();
		await clock.advance(MINUTE);
		expect(platform.infoCalls).toHaveLength(calls);
		expect(end).toMatchObject({ kind: 'final' });
		const nextMs = clock.elapsedMs;
		platform.add('u', course(100));
		await clock.run(watch('u'));
		expect(platform.infoCalls.at(-1)?.atMs).toBe(nextMs + 500);
	});
});
