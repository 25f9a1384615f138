import {
	explainSubmit,
	explainWatchEnd,
	notSubmitted,
	stillUnclear,
	type StopReason,
} from '../../../../nodes/FlowTask/tasks/failures';
import type { WatchEnd } from '../../../../nodes/FlowTask/tasks/watchedTask';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import { redactor } from '../../../../nodes/shared/text/redact';
import { taskInfo } from '../taskInfo.builder';

const KEY = 'sk-Abcdef0123456789';
const redact = redactor([KEY]);
const AT = Date.UTC(2030, 0, 1, 12);

function snapshotOf(fields?: Parameters<typeof taskInfo>[1], taskId = 't-1'): WatchEnd['snapshot'] {
	const info = fields && taskInfo(taskId, fields);
	return { info, sinceMs: AT, generatingAtMs: undefined, endedAtMs: AT + 90_000 };
}
function final(fields: Parameters<typeof taskInfo>[1]): WatchEnd {
	const snapshot = snapshotOf(fields);
	if (!snapshot.info) throw new Error('no info');
	return { kind: 'final', info: snapshot.info, snapshot };
}
const refusedPoll: Failure = {
	kind: 'credential',
	message: 'No right',
	advice: 'Use another',
	details: { httpStatus: 403 },
};

describe('notSubmitted', () => {
	it.each<StopReason>(['failure', 'maxFailures', 'timeout', 'cancelled'])('says why: %s', (reason) => {
		const failure = notSubmitted(reason);
		expect(failure).toMatchObject({ kind: 'notSubmitted', details: { status: 'notSubmitted' } });
		expect(failure.message).toMatch(/^No task was submitted for this item, because .{20}/);
	});

	it('has a different sentence for each reason', () => {
		const all: StopReason[] = ['failure', 'maxFailures', 'timeout', 'cancelled'];
		expect(new Set(all.map((reason) => notSubmitted(reason).message)).size).toBe(4);
	});
});

describe('explainSubmit', () => {
	it('says that a task may exist if no clear answer came', () => {
		const lost: Failure = {
			kind: 'unclear',
			message: 'The line broke',
			advice: 'x',
			details: { networkCode: 'E' },
		};
		expect(explainSubmit(lost)).toMatchObject({
			kind: 'unclear',
			message: expect.stringMatching(/^A task may have been created.*The line broke$/),
			details: { networkCode: 'E', mayExist: true, status: 'unknown' },
		});
	});

	it.each<Failure['kind']>(['refused', 'unreachable', 'credential', 'cancelled'])(
		'leaves a failure of kind "%s" as it is',
		(kind) => {
			const failure: Failure = { kind, message: 'm', advice: 'a' };
			expect(explainSubmit(failure)).toBe(failure);
		},
	);
});

describe('a task that an unclear answer names', () => {
	it.each([
		['in this try', explainSubmit({ kind: 'unclear', message: 'x', advice: '', details: { taskId: 't-9' } })],
		['in an earlier try', stillUnclear('t-9')],
	])('is in the message, the advice and the details: %s', (_name, failure) => {
		expect(failure).toMatchObject({
			message: expect.stringMatching(/^Task t-9 may have been created/),
			advice: expect.stringContaining("'Get' operation with task ID t-9"),
			details: { taskId: 't-9', mayExist: true, status: 'unknown' },
		});
	});
});

describe('stillUnclear', () => {
	it('counts as a submit that may have created a task', () => {
		expect(stillUnclear()).toMatchObject({ kind: 'unclear', details: { mayExist: true } });
	});
});

describe('explainWatchEnd', () => {
	it.each([
		['CUDA out of memory. Tried to allocate 2.00 GiB', 'too little memory'],
		['Allocation on device: not enough GPU memory', 'too little memory'],
		["Node type 'IPAdapterX' not found: custom nodes are missing", 'does not have'],
		['Cannot execute because node IPAdapterX does not exist.', 'does not have'],
		['Missing node types: IPAdapterX', 'does not have'],
		['steps is out of range', 'Check the values of this item'],
		// Of these, the item's values are the cause.
		['Node 10 (Load Image): a.png not found', 'Check the values of this item'],
		['Node 3: required input is missing', 'Check the values of this item'],
		['Node input is missing', 'Check the values of this item'],
		['Missing node input: image', 'Check the values of this item'],
		['Error in custom node FaceDetailer: no face', 'Check the values of this item'],
		['Model loaded into VRAM; sampler failed', 'Check the values of this item'],
	])('has the cure for "%s"', (errMsg, cure) => {
		expect(explainWatchEnd('t-1', final({ status: 4, errMsg }), redact)?.advice).toContain(cure);
	});

	it('does not explain a success', () => {
		expect(explainWatchEnd('t-1', final({ status: 3, progress_num: 100 }), redact)).toBeUndefined();
	});

	const after = (
		kind: 'timedOut' | 'stalled' | 'unknown' | 'left',
		state?: Parameters<typeof snapshotOf>[0],
	): WatchEnd => ({
		kind,
		snapshot: snapshotOf(state),
	});

	it.each<[string, WatchEnd, Failure['kind'], string, string]>([
		[
			'failed',
			final({ status: 4, errMsg: 'CUDA out of memory' }),
			'taskFailed',
			'CUDA out of memory',
			'failed',
		],
		['failed without a reason', final({ status: 4, errMsg: ' ' }), 'taskFailed', 'gave no reason', 'failed'],
		['denied', final({ status: 5, errMsg: 'private model' }), 'taskDenied', 'private model', 'denied'],
		[
			'not done in time',
			after('timedOut', { status: 2, progress_num: 40 }),
			'timedOut',
			'last seen as generating at 40% after 90 seconds',
			'generating',
		],
		['never seen in time', after('timedOut'), 'timedOut', 'last seen as unknown after 90 seconds', 'unknown'],
		[
			'not done in time, in a state that the interface does not have',
			after('timedOut', { status: 6, progress_num: null, errMsg: 'cancelled by the owner' }),
			'timedOut',
			'last seen as unknown (status 6) after 90 seconds, with the message "cancelled by the owner"',
			'unknown',
		],
		['stalled', after('stalled', { status: 1 }), 'stalled', 'no progress', 'queued'],
		['unknown', after('unknown'), 'taskUnknown', 'does not know', 'unknown'],
		[
			'unknown after it was reported',
			after('unknown', { status: 2, progress_num: 40 }),
			'taskUnknown',
			'no longer knows task t-1, which was last seen as generating at 40% after 90 seconds',
			'generating',
		],
		[
			'unknown after it was reported in an earlier poll',
			{ kind: 'unknown', snapshot: { ...snapshotOf(), lastState: 'succeeded' } },
			'taskUnknown',
			'no longer knows task t-1, which was last seen as succeeded',
			'succeeded',
		],
		['left running', after('left', { status: 2 }), 'cancelled', 'left running', 'generating'],
		[
			'unreadable',
			{ kind: 'refused', failure: refusedPoll, snapshot: snapshotOf() },
			'credential',
			'No right',
			'unknown',
		],
	])('names the task and what to do if it is %s', (_name, end, kind, said, status) => {
		const failure = explainWatchEnd('t-1', end, redact);
		expect(failure).toMatchObject({ kind, details: { taskId: 't-1', status, elapsedMs: 90_000 } });
		expect(failure?.message).toContain(said);
		if (kind !== 'credential') expect(failure?.message).toContain('t-1');
		expect(failure?.advice).not.toBe('');
		expect(JSON.stringify(failure)).not.toMatch(/undefined|NaN|\[object/);
	});

	it('says how to continue with a task that is still running', () => {
		for (const kind of ['timedOut', 'stalled', 'left'] as const) {
			expect(explainWatchEnd('t-1', { kind, snapshot: snapshotOf() }, redact)?.advice).toContain(
				'task ID t-1',
			);
		}
	});

	it("says what to check, and how to get a new task, if the item's task is gone", () => {
		const failure = explainWatchEnd('t-1', { kind: 'unknown', snapshot: snapshotOf() }, redact, false);
		for (const said of [
			'the ID is complete',
			'rows in the Data Table flow_task_ledger',
			'start a new execution',
		])
			expect(failure?.advice).toContain(said);
	});

	it('does not say how to create a new task if the item names an unknown one', () => {
		const failure = explainWatchEnd('t-1', { kind: 'unknown', snapshot: snapshotOf() }, redact);
		expect(failure?.advice).toContain('the ID is complete');
		expect(failure?.advice).not.toContain('new');
	});

	it('keeps the details of a failed poll alongside the task ID', () => {
		const end: WatchEnd = { kind: 'refused', failure: refusedPoll, snapshot: snapshotOf() };
		expect(explainWatchEnd('t-1', end, redact)?.details).toMatchObject({ httpStatus: 403, taskId: 't-1' });
	});

	it('states no elapsed time if another run submitted the task', () => {
		const snapshot = { ...snapshotOf({ status: 2 }), sinceMs: undefined };
		const failure = explainWatchEnd('t-1', { kind: 'timedOut', snapshot }, redact);
		expect(failure?.details).not.toHaveProperty('elapsedMs');
		expect(failure?.message).not.toContain('seconds');
	});

	it('hides a key in what the platform says, wherever the text is truncated', () => {
		const key = 'sk-ab:Secret0123456789Secret';
		for (let offset = 470; offset < 510; offset++) {
			const end = final({ status: 4, errMsg: `${'x'.repeat(offset)} ${key}` });
			expect(JSON.stringify(explainWatchEnd('t-1', end, redactor([key])))).not.toContain('Secret');
		}
	});

	it('truncates a long ID in the sentence, and keeps it whole in the details', () => {
		const taskId = 't'.repeat(5_000);
		const failure = explainWatchEnd(taskId, { kind: 'unknown', snapshot: snapshotOf() }, redact);
		expect(failure?.message.length).toBeLessThan(200);
		expect(failure?.details?.taskId).toBe(taskId);
	});
});
