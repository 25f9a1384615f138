import type { CallFailure } from '../../../../nodes/FlowTask/api/failures';
import type { PolledPiece } from '../../../../nodes/FlowTask/api/poll';
import type { TaskInfo } from '../../../../nodes/FlowTask/api/taskInfo';
import { judgePoll } from '../../../../nodes/FlowTask/tasks/suspendedWait';
import { fail, ok } from '../../../../nodes/shared/errors/failure';
import { failing } from '../platform.script';
import { succeeded, taskInfo } from '../taskInfo.builder';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SETTINGS = { timeoutMs: HOUR, noProgressMs: 10 * MINUTE };
const START_MS = 5 * HOUR;

/** A poll of all tasks: their reports, or why it failed; at a time since the first poll. */
type Poll = readonly [atMs: number, answer: readonly TaskInfo[] | CallFailure];

function answerOf(answer: Poll[1]): PolledPiece['answer'] {
	return 'kind' in answer ? fail(answer) : ok([...answer]);
}

/** Judges polls one after the other; the state goes through JSON, as in n8n's database. @returns the last judgement */
function judge(ids: readonly string[], polls: readonly Poll[], settings = SETTINGS) {
	let stored: unknown;
	let judged: ReturnType<typeof judgePoll> | undefined;
	for (const [atMs, answer] of polls) {
		judged = judgePoll(stored, ids, [{ ids, answer: answerOf(answer) }], settings, START_MS + atMs);
		stored = JSON.parse(JSON.stringify(judged.state));
	}
	return judged;
}

function kinds(...args: Parameters<typeof judge>): string[] | undefined {
	const { ends } = judge(...args) ?? {};
	return ends && args[0].map((id) => ends.get(id)?.kind ?? '-');
}

function times(count: number, answer: Poll[1], everyMs = MINUTE): Poll[] {
	return Array.from({ length: count }, (_, index) => [index * everyMs, answer]);
}

const at = (progress: number, over = {}): TaskInfo => taskInfo('a', { progress_num: progress, ...over });
const queued = (id: string, position: number | null): TaskInfo =>
	taskInfo(id, { status: 1, current_position: position });
const PASSING = failing(true);
const REFUSED = failing(false);

it.each<[string, TaskInfo, TaskInfo, stalls: boolean]>([
	['progress', at(5), at(6), false],
	['a state', at(5), at(5, { status: 77 }), false],
	['a position in the queue', queued('a', 4), queued('a', 3), false],
	['nothing', at(5), at(5), true],
	['only the length of the queue', at(5, { queue_size: 9 }), at(5, { queue_size: 2 }), true],
])('a task stalls unless its report changes: %s has changed', (_name, before, after, stalls) => {
	const polls: Poll[] = [
		[0, [before]],
		[10 * MINUTE - 1, [after]],
	];
	expect(kinds(['a'], polls)).toBeUndefined();
	expect(kinds(['a'], [...polls, [10 * MINUTE, [after]]])).toEqual(stalls ? ['stalled'] : undefined);
});

it.each<[string, readonly string[], readonly Poll[], string[] | undefined]>([
	['tasks that are done', ['a', 'b'], times(1, [succeeded('a'), succeeded('b')]), ['final', 'final']],
	['a task that still runs', ['a', 'b'], times(1, [succeeded('a'), taskInfo('b')]), undefined],
	['a queue without positions', ['a'], times(3, [queued('a', null)], 25 * MINUTE), undefined],
	['the timeout', ['a', 'b'], times(2, [queued('a', null), succeeded('b')], HOUR), ['timedOut', 'final']],
	['an ID that two polls lack', ['a', 'b'], times(2, [succeeded('a')]), undefined],
	['an ID that three polls lack', ['a', 'b'], times(3, [succeeded('a')]), ['final', 'unknown']],
	['IDs that were never shown', ['a', 'b'], times(3, []), ['unknown', 'unknown']],
	['an ID that is shown again', ['a'], [...times(2, []), [3, [at(5)]], ...times(2, [])], undefined],
	['an empty index', ['a', 'b'], [[0, [at(5), taskInfo('b')]], ...times(5, [])], undefined],
	['a single task that vanishes', ['a'], [[0, [at(5)]], ...times(3, [])], ['unknown']],
	['a first poll that is refused', ['a'], times(1, REFUSED), ['refused']],
	['two refusals after an answer', ['a'], [[0, [at(5)]], ...times(2, REFUSED)], undefined],
	['three refusals after an answer', ['a'], [[0, [at(5)]], ...times(3, REFUSED)], ['refused']],
	[
		'an answer between refusals',
		['a'],
		[[0, [at(5)]], ...times(2, REFUSED), [9, [at(6)]], [9, REFUSED]],
		undefined,
	],
	['an outage from the start', ['a'], times(50, PASSING, 1), undefined],
	[
		'an outage longer than No Progress for',
		['a'],
		[[0, [at(5)]], ...times(3, PASSING, 15 * MINUTE)],
		undefined,
	],
	[
		'two failures after the timeout',
		['a'],
		[
			[0, [at(5)]],
			[HOUR, PASSING],
			[HOUR, PASSING],
		],
		undefined,
	],
	[
		'three failures after the timeout',
		['a'],
		[[0, [at(5)]], ...Array<Poll>(3).fill([HOUR, PASSING])],
		['timedOut'],
	],
	[
		'an answer after the timeout',
		['a'],
		[
			[0, [at(5)]],
			[HOUR, PASSING],
			[HOUR, [succeeded('a')]],
		],
		['final'],
	],
])('judges %s', (_name, ids, polls, expected) => {
	expect(kinds(ids, polls)).toEqual(expected);
});

it('never stalls if no limit is set', () => {
	expect(kinds(['a'], times(2, [at(5)], HOUR - 1), { ...SETTINGS, noProgressMs: 0 })).toBeUndefined();
});

it('ends a refused task while others are reported, but not one whose state may be readable later', () => {
	const pieces = (failure: CallFailure): PolledPiece[] => [
		{ ids: ['a'], answer: ok([succeeded('a')]) },
		{ ids: ['b'], answer: fail(failure) },
	];
	const ends = [PASSING, REFUSED].map((failure) => {
		let judged = judgePoll(undefined, ['a', 'b'], pieces(failure), SETTINGS, START_MS);
		for (let polls = 2; polls <= 3; polls++) {
			judged = judgePoll(judged.state, ['a', 'b'], pieces(failure), SETTINGS, START_MS);
		}
		return judged.ends?.get('b');
	});
	expect(ends).toMatchObject([undefined, { kind: 'refused', failure: REFUSED }]);
});

it('tells what was last seen, and why the last poll failed', () => {
	const running = taskInfo('b', { progress_num: 40 });
	const shown: Poll = [0, [succeeded('a'), running]];
	const gone = judge(['never', 'a', 'b'], [shown, ...times(3, [running]), [HOUR, [running]]]);
	expect([...(gone?.ends ?? [])]).toMatchObject([
		['never', { kind: 'unknown', snapshot: { lastState: undefined } }],
		['a', { kind: 'unknown', snapshot: { lastState: 'succeeded' } }],
		['b', { kind: 'timedOut', snapshot: { info: { progress: 40 }, endedAtMs: START_MS + HOUR } }],
	]);
	const failed = judge(['b', 'never'], [...times(3, [running]), ...Array<Poll>(3).fill([HOUR, PASSING])]);
	expect([...(failed?.ends ?? [])]).toMatchObject([
		['b', { kind: 'timedOut', snapshot: { lastState: 'generating', trouble: 'The poll failed' } }],
		['never', { kind: 'timedOut', snapshot: { lastState: undefined, trouble: 'The poll failed' } }],
	]);
});

it('does not hold up the timeout of tasks that were shown because the state of another cannot be read', () => {
	const polls = (atMs: number, stored?: unknown) => {
		const pieces: PolledPiece[] = [
			{ ids: ['a'], answer: ok([at(5)]) },
			{ ids: ['b'], answer: fail(REFUSED) },
		];
		return judgePoll(stored, ['a', 'b'], pieces, { ...SETTINGS, noProgressMs: 0 }, START_MS + atMs);
	};
	let judged = polls(0);
	for (const atMs of [1, 2, HOUR]) judged = polls(atMs, judged.state);
	expect([...(judged.ends ?? [])]).toMatchObject([
		['a', { kind: 'timedOut' }],
		['b', { kind: 'refused' }],
	]);
});

it.each([undefined, null, 'x', [], {}, { startedAtMs: 1 }])('finds no wait in %j', (stored) => {
	const { state } = judgePoll(stored, ['a'], [{ ids: ['a'], answer: ok([at(5)]) }], SETTINGS, START_MS);
	expect(state).toMatchObject({ startedAtMs: START_MS, polls: 1 });
});

describe('the time of the next poll', () => {
	const sleeps = (polls: readonly Poll[], timeoutMs: number): number => {
		const [atMs = 0] = polls.at(-1) ?? [];
		return (judge(['a'], polls, { ...SETTINGS, timeoutMs })?.wakeAtMs ?? 0) - START_MS - atMs;
	};

	it('grows from a minute to a quarter of an hour, and not while polls fail', () => {
		const after = (count: number): number => sleeps(times(count, [at(5)], 1), 100 * HOUR);
		expect([1, 2, 3, 13].map(after)).toEqual([60_000, 75_000, 93_750, 60_000 * 1.25 ** 12]);
		expect([14, 30].map(after)).toEqual([900_000, 900_000]);
		expect(sleeps(times(30, PASSING, 1), 100 * HOUR)).toBe(MINUTE);
	});

	it('is not past the timeout, unless less than a minute is left', () => {
		const polls: Poll[] = [...times(19, [at(5)], 1), [10 * MINUTE - 1, [at(6)]]];
		const left = (timeoutMs: number): number => sleeps(polls, timeoutMs);
		expect([13 * MINUTE - 1, 10 * MINUTE, MINUTE].map(left)).toEqual([3 * MINUTE, MINUTE, MINUTE]);
	});
});
