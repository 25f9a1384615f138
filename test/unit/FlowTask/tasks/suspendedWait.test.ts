import type { TaskInfo } from '../../../../nodes/FlowTask/api/taskInfo';
import {
	toleratesFailedPoll,
	endsOf,
	noteFailedPoll,
	notePoll,
	readWait,
	SHORTEST_SLEEP_MS,
	sleepMs,
	waitEnd,
	type WaitEnd,
	type WaitState,
} from '../../../../nodes/FlowTask/tasks/suspendedWait';
import type { WatchEnd } from '../../../../nodes/FlowTask/tasks/watchedTask';
import { fail, ok } from '../../../../nodes/shared/errors/failure';
import type { Json } from '../../../../nodes/shared/text/json';
import type { CallFailure } from '../../../../nodes/FlowTask/api/failures';
import { succeeded, taskInfo } from '../taskInfo.builder';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SETTINGS = { timeoutMs: HOUR, noProgressMs: 10 * MINUTE };

function infosOf(...infos: readonly TaskInfo[]): ReadonlyMap<string, TaskInfo> {
	return new Map(infos.map((info) => [info.taskId, info]));
}

const at = (progress: number, over: Readonly<Record<string, Json>> = {}): TaskInfo =>
	taskInfo('a', { progress_num: progress, ...over });
const state = (over: Partial<WaitState> = {}): WaitState => ({
	...{ startedAtMs: 0, changedAtMs: 0, progressMark: '', polls: 1 },
	...over,
});

describe('notePoll', () => {
	it.each<[string, TaskInfo | undefined, TaskInfo | undefined, boolean]>([
		['progress', at(5), at(6), true],
		['a state', at(5), at(5, { status: 3 }), true],
		[
			'a position in the queue',
			at(0, { status: 1, current_position: 4 }),
			at(0, { status: 1, current_position: 3 }),
			true,
		],
		['nothing', at(5), at(5), false],
		['a task that is shown now', undefined, at(0), true],
		['a task that is not shown any more', at(5), undefined, true],
		[
			'only the length of the queue, which depends on other tasks',
			at(5, { queue_size: 9 }),
			at(5, { queue_size: 2 }),
			false,
		],
		['nothing about a task that is not shown', undefined, undefined, false],
	])('notes whether %s has changed', (_name, before, after, changed) => {
		const first = notePoll(undefined, infosOf(...(before ? [before] : [])), ['a'], 100);
		const second = notePoll(first, infosOf(...(after ? [after] : [])), ['a'], 200);
		expect(second).toMatchObject({ startedAtMs: 100, changedAtMs: changed ? 200 : 100, polls: 2 });
	});

	it('reads a wait that was stored', () => {
		const stored = { startedAtMs: 1, changedAtMs: 2, progressMark: 'generating/5/0', polls: 3, missing: [0] };
		expect(readWait(stored)).toEqual(stored);
	});

	it.each([undefined, null, 'x', [], {}, { startedAtMs: 1, changedAtMs: 2 }])(
		'finds no wait in %j',
		(stored) => {
			expect(readWait(stored)).toBeUndefined();
		},
	);
});

describe('polls that fail', () => {
	it('leave what is known about the tasks unchanged', () => {
		const first = notePoll(undefined, infosOf(at(5)), ['a', 'gone'], 3);
		expect(noteFailedPoll(first, true, SETTINGS, 9)).toEqual(first);
		expect(noteFailedPoll(first, false, SETTINGS, 9)).toEqual({ ...first, refusals: 1 });
		expect(
			notePoll(noteFailedPoll(first, false, SETTINGS, 9), infosOf(at(5)), ['a', 'gone'], 12),
		).toMatchObject({
			...{ changedAtMs: 3, polls: 2, missing: [0, 2], refusals: 0 },
		});
	});

	it('may come before any successful one', () => {
		const state = noteFailedPoll(undefined, true, SETTINGS, 7);
		expect(state).toMatchObject({ startedAtMs: 7, polls: 0 });
		expect(notePoll(state, infosOf(at(5)), ['a'], 9)).toMatchObject({
			startedAtMs: 7,
			changedAtMs: 9,
			polls: 1,
		});
		expect(sleepMs(state, SETTINGS, 7)).toBe(SHORTEST_SLEEP_MS);
	});

	it('are tolerated until the timeout, however many there are and however long nothing has changed', () => {
		let failed = state({ polls: 40 });
		for (let polls = 0; polls < 50; polls++) failed = noteFailedPoll(failed, true, SETTINGS, HOUR - 1);
		expect(toleratesFailedPoll(failed)).toBe(true);
	});

	it('are tolerated twice more if the timeout falls within an outage', () => {
		let failed = state({ polls: 40 });
		const borne = [1, 2, 3].map(() => {
			failed = noteFailedPoll(failed, true, SETTINGS, HOUR);
			return toleratesFailedPoll(failed);
		});
		expect(borne).toEqual([true, true, false]);
	});

	it('end the wait if the platform refuses the first one, or three in a row', () => {
		expect(toleratesFailedPoll(noteFailedPoll(undefined, false, SETTINGS, 0))).toBe(false);
		let refused: WaitState = state();
		const borne = [1, 2, 3].map(() => {
			refused = noteFailedPoll(refused, false, SETTINGS, 0);
			return toleratesFailedPoll(refused);
		});
		expect(borne).toEqual([true, true, false]);
		expect(toleratesFailedPoll(noteFailedPoll(refused, true, SETTINGS, 0))).toBe(true);
	});
});

describe('an index that is empty', () => {
	const shown = notePoll(undefined, infosOf(at(5)), ['a', 'b'], 0);

	it('says nothing about tasks that were shown before', () => {
		let empty = shown;
		for (let polls = 1; polls <= 5; polls++) empty = notePoll(empty, new Map(), ['a', 'b'], polls);
		expect(empty).toEqual({ ...shown, polls: 6 });
		expect(waitEnd(empty, new Map(), ['a', 'b'], SETTINGS, 5)).toBeUndefined();
	});

	it('counts against IDs that were never shown, and against a task that is the only one', () => {
		let never = notePoll(undefined, new Map(), ['a', 'b'], 0);
		let only = notePoll(undefined, infosOf(at(5)), ['a'], 0);
		for (let polls = 1; polls <= 2; polls++) never = notePoll(never, new Map(), ['a', 'b'], polls);
		for (let polls = 1; polls <= 3; polls++) only = notePoll(only, new Map(), ['a'], polls);
		expect(waitEnd(never, new Map(), ['a', 'b'], SETTINGS, 5)).toBe('done');
		expect(waitEnd(only, new Map(), ['a'], SETTINGS, 5)).toBe('done');
	});
});

describe('endsOf', () => {
	const done = succeeded('done');
	const running = taskInfo('running', { progress_num: 40 });
	const no: CallFailure = { kind: 'refused', message: 'No', advice: '', passing: false };
	const ids = ['done', 'running', 'lost', 'late', 'bad'];
	const known = state({ missing: [0, 0, 3, 1, 3] });
	const poll = ok({ infos: infosOf(done, running), refused: new Map([['bad', no]]) });
	const kinds = (ends: ReadonlyMap<string, WatchEnd>): string[] => ids.map((id) => ends.get(id)?.kind ?? '-');

	it.each(['timedOut', 'stalled'] as const)('describes each task as the last poll showed it: %s', (end) => {
		const ends = endsOf(ids, poll, known, end, 7);
		expect(kinds(ends)).toEqual(['final', end, 'unknown', end, 'refused']);
		expect(ends.get('running')?.snapshot).toMatchObject({ info: { progress: 40 }, endedAtMs: 7 });
	});

	it('does not end a task as unknown because a poll failed, and says why the poll failed', () => {
		const outage = endsOf(ids, fail({ ...no, passing: true }), known, 'timedOut', 7);
		expect(new Set(kinds(outage))).toEqual(new Set(['timedOut']));
		expect(outage.get('lost')?.snapshot.trouble).toBe('No');
		expect(new Set(kinds(endsOf(ids, fail(no), known, 'timedOut', 7)))).toEqual(new Set(['refused']));
	});
});

it('reports the last known state of a task that was forgotten while others ran', () => {
	const ids = ['never', 'a', 'b'];
	const running = taskInfo('b', { progress_num: 40 });
	let wait = notePoll(undefined, infosOf(succeeded('a'), running), ids, 1);
	// The platform's index is empty for a moment, which says nothing about the tasks.
	wait = notePoll(wait, infosOf(), ids, 2);
	for (const nowMs of [3, 4, 5]) wait = notePoll(wait, infosOf(running), ids, nowMs);
	expect(wait).toMatchObject({ changedAtMs: 3, missing: [4, 3, 0] });
	const ends = endsOf(ids, ok({ infos: infosOf(running), refused: new Map() }), wait, 'timedOut', 6);
	expect(ends.get('never')).toMatchObject({ kind: 'unknown', snapshot: { lastState: undefined } });
	expect(ends.get('a')).toMatchObject({ kind: 'unknown', snapshot: { lastState: 'succeeded' } });
});

describe('waitEnd', () => {
	const end = (
		of: Partial<WaitState>,
		infos: ReadonlyMap<string, TaskInfo>,
		nowMs = 0,
		ids = ['a'],
		settings = SETTINGS,
	): WaitEnd | undefined => waitEnd(state(of), infos, ids, settings, nowMs);

	it('ends if nothing has changed for too long, unless no limit is set', () => {
		const nowMs = 20 * MINUTE;
		expect(end({ changedAtMs: nowMs - SETTINGS.noProgressMs + 1 }, infosOf(at(5)), nowMs)).toBeUndefined();
		expect(end({ changedAtMs: nowMs - SETTINGS.noProgressMs }, infosOf(at(5)), nowMs)).toBe('stalled');
		expect(end({}, infosOf(at(5)), nowMs, ['a'], { ...SETTINGS, noProgressMs: 0 })).toBeUndefined();
	});

	it('tolerates a queue that reports no positions, until the timeout', () => {
		const queued = taskInfo('a', { status: 1, current_position: null });
		expect(end({}, infosOf(queued), 20 * MINUTE)).toBeUndefined();
		expect(end({}, infosOf(queued, taskInfo('b')), 20 * MINUTE, ['a', 'b'])).toBeUndefined();
		expect(end({}, infosOf(queued), HOUR)).toBe('timedOut');
		expect(end({}, infosOf(taskInfo('a', { status: 1, current_position: 4 })), 20 * MINUTE)).toBe('stalled');
	});

	it('tolerates a task that two answers in a row do not show', () => {
		expect([1, 2, 3].map((polls) => end({ missing: [polls] }, new Map()))).toEqual([
			...[undefined, undefined, 'done'],
		]);
		expect(end({ polls: 30, missing: [1] }, new Map())).toBeUndefined();
		expect(end({ missing: [0, 3] }, infosOf(at(5)), 0, ['a', 'gone'])).toBeUndefined();
		expect(end({ missing: [0, 1] }, infosOf(succeeded('a')), 0, ['a', 'gone'])).toBeUndefined();
		expect(end({ missing: [0, 3] }, infosOf(succeeded('a')), 0, ['a', 'gone'])).toBe('done');
	});

	it('does not count a task as missing whose state could not be read for the moment', () => {
		const failure: CallFailure = { kind: 'unclear', message: 'An error', advice: '', passing: true };
		const ends = [true, false].map((passing) => {
			const refused = new Map([['b', { ...failure, passing }]]);
			const polls = [infosOf(at(5)), infosOf(at(9)), infosOf(succeeded('a'))];
			let seen: WaitState | undefined;
			for (const infos of polls) seen = notePoll(seen, infos, ['a', 'b'], 0, refused);
			return waitEnd(seen ?? state(), infosOf(succeeded('a')), ['a', 'b'], SETTINGS, 0);
		});
		expect(ends).toEqual([undefined, 'done']);
	});

	it('restarts the count for a task that is shown again', () => {
		const polls = [infosOf(), infosOf(), infosOf(at(5)), infosOf()];
		let seen: WaitState | undefined;
		for (const infos of polls) seen = notePoll(seen, infos, ['a'], 0);
		expect(seen?.missing).toEqual([1]);
	});
});

describe('sleepMs', () => {
	const settings = { ...SETTINGS, timeoutMs: 100 * HOUR };

	it('grows from a minute to a quarter of an hour', () => {
		const sleep = (polls: number): number => sleepMs(state({ polls }), settings, 0);
		expect([1, 2, 3].map(sleep)).toEqual([60_000, 75_000, 93_750]);
		expect(sleep(13)).toBe(60_000 * 1.25 ** 12);
		expect([14, 30, 1_000_000].map(sleep)).toEqual([900_000, 900_000, 900_000]);
	});

	it('does not sleep past the timeout, except for the shortest sleep for which n8n suspends an execution', () => {
		const sleep = (timeoutMs: number): number =>
			sleepMs(state({ polls: 20 }), { ...settings, timeoutMs }, 10 * MINUTE);
		expect([13 * MINUTE, 10 * MINUTE + 1, MINUTE].map(sleep)).toEqual([3 * MINUTE, MINUTE, MINUTE]);
	});
});
