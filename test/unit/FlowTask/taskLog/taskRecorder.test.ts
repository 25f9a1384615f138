import { badInput, type Failure } from '../../../../nodes/shared/errors/failure';
import { redactor } from '../../../../nodes/shared/text/redact';
import type { ObservedJob, TaskSource } from '../../../../nodes/FlowTask/tasks/observer';
import { TaskRecorder } from '../../../../nodes/FlowTask/taskLog/taskRecorder';
import { recordedTasks } from '../../../../nodes/FlowTask/taskLog/taskRows';
import { DayCounts } from '../../../../nodes/shared/effects/dayCounts';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock, turn } from '../../testClock';
import { succeeded, taskInfo } from '../taskInfo.builder';

let clock: TestClock;
let table: MemoryTable;
let recorder: TaskRecorder;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock, undefined, 0);
	recorder = open('7');
});

function open(executionId: string, opened: DataTable = table.open(), mostPerDay = 0): TaskRecorder {
	const place = { executionId, workflow: 'Shop', workflowId: 'w1', node: 'FlowTask', nodeId: 'n' };
	const settings = { ...place, timeZone: 'UTC', runId: `run of ${executionId}`, mostPerDay };
	const parts = { table: opened, clock, redact: redactor(['sk-secret']), counts: new DayCounts() };
	return new TaskRecorder(settings, parts);
}

const job = (itemIndex: number): ObservedJob => ({
	itemIndex,
	facts: { workflowId: 'wf_1', prompt: 'a red fox' },
});
const jobs = (count: number) => Array.from({ length: count }, (_, index) => job(index));

function begin(one: ObservedJob, source: TaskSource = 'made', by = recorder): void {
	const taskId = `t${one.itemIndex}`;
	by.began(one, { taskId, source, submittedAtMs: clock.wallNow() });
}

function finish(one: ObservedJob, by = recorder): void {
	const info = succeeded(`t${one.itemIndex}`);
	by.ended(one, { taskId: info.taskId, snapshot: { info, endedAtMs: clock.wallNow() }, failure: undefined });
}

async function flush(by = recorder) {
	const flushing = by.flush();
	await clock.advance(1);
	return await flushing;
}

test('an ID is in the table within two seconds, with what is known about its run', async () => {
	for (const one of jobs(30)) begin(one);
	await clock.advance(2_000);
	expect(table.all()).toHaveLength(30);
	expect(table.all()[3]).toMatchObject({
		...{ executionId: '7', workflow: 'Shop', workflowId: 'w1', node: 'FlowTask', item: 4 },
		...{ taskId: 't3', status: 'submitted', hostedWorkflow: 'wf_1', submittedAt: '2030-01-01T12:00:00.000Z' },
	});
});

test('a thousand tasks need at most twenty operations of the table', async () => {
	const all = jobs(1_000);
	const opened = table.open();
	let operations = 0;
	const counted: DataTable = {
		...opened,
		// Each 500 rows are added by an operation, and each 500 removed, the first 500 by the same one.
		replace: async (rows, gone) => {
			operations += Math.ceil(rows.length / 500) + Math.max(0, Math.ceil(gone.length / 500) - 1);
			return await opened.replace(rows, gone);
		},
	};
	recorder = open('7', counted);
	for (let second = 0; second < 20; second++) {
		for (const one of all.slice(second * 50, second * 50 + 50)) begin(one);
		for (const one of all.slice(Math.max(0, second - 5) * 50, second * 50)) {
			recorder.news(one, taskInfo(`t${one.itemIndex}`, { progress_num: second }));
		}
		await clock.advance(1_000);
	}
	for (const one of all) finish(one);
	await flush();
	expect(table.all().map(({ status }) => status)).toEqual(all.map(() => 'succeeded'));
	expect(operations).toBeLessThanOrEqual(20);
	expect(table.calls.filter((call) => call !== 'replace')).toEqual([]);
});

test('rows of many tasks that change are replaced during the run, and none appears twice', async () => {
	const all = jobs(40);
	for (const one of all) begin(one);
	await clock.advance(1_000);
	// A statement reported as failed may have been carried out.
	const mishaps = ['after', 'before', 'after'] as const;
	let calls = 0;
	table.mishap = () => mishaps[calls++] ?? 'none';
	for (const one of all) {
		recorder.news(one, taskInfo(`t${one.itemIndex}`, { progress_num: one.itemIndex }));
	}
	await clock.advance(60_000);
	expect(calls).toBe(4);
	expect(table.all().map(({ item, progress }) => [item, progress])).toEqual(
		all.map(({ itemIndex }) => [itemIndex + 1, itemIndex]),
	);
});

test('rows follow their tasks to the end', async () => {
	const one = job(0);
	begin(one);
	recorder.news(one, taskInfo('t0', { status: 1, current_position: 4 }));
	await clock.advance(1_000);
	expect(table.all()[0]).toMatchObject({ status: 'queued', queuePosition: 4, progress: 0, error: '' });
	recorder.news(one, taskInfo('t0', { progress_num: 35 }));
	await clock.advance(4_000);
	expect(table.all()[0]).toMatchObject({
		...{ status: 'generating', queuePosition: null, progress: 35, startedAt: '2030-01-01T12:00:01.000Z' },
	});
	finish(one);
	await flush();
	expect(table.all()).toHaveLength(1);
	expect(table.all()[0]).toMatchObject({
		...{ status: 'succeeded', progress: 100, finishedAt: '2030-01-01T12:00:05.000Z', error: '' },
	});
	expect(clock.sleepers).toBe(0);
});

test('what is left is written at the end, with the ends of many tasks in few statements', async () => {
	const all = jobs(500);
	for (const one of all) begin(one);
	await clock.advance(1_000);
	for (const one of all) finish(one);
	await flush();
	expect(table.all().map(({ status }) => status)).toEqual(all.map(() => 'succeeded'));
	expect(table.calls).toEqual(['replace', 'replace']);
});

describe('many different ends, written at the end of the run', () => {
	const all = jobs(40);

	/** Ends one task per second while every table operation fails. */
	async function endAll(): Promise<void> {
		for (const one of all) begin(one);
		await clock.advance(1_000);
		table.mishap = () => 'before';
		for (const one of all) {
			await clock.advance(1_000);
			finish(one);
		}
		table.calls.length = 0;
	}

	test('are written in one go, in the order of the items', async () => {
		await endAll();
		table.mishap = () => 'none';
		expect(await flush()).toEqual({ ok: true, value: undefined });
		expect(table.calls).toEqual(['replace']);
		expect(table.all().map(({ item, status }) => [item, status])).toEqual(
			all.map(({ itemIndex }) => [itemIndex + 1, 'succeeded']),
		);
		expect(new Set(table.all().map(({ finishedAt }) => finishedAt)).size).toBe(40);
	});

	test('bring back no row that a person has deleted', async () => {
		await endAll();
		table.mishap = () => 'none';
		table.edit((row) => (row.item === 3 ? undefined : row));
		await flush();
		expect(table.all().map(({ item }) => item)).toEqual(
			all.map(({ itemIndex }) => itemIndex + 1).filter((item) => item !== 3),
		);
	});

	test.each([1, 2])('lose no ID if a write fails, and are tried twice (%d failures)', async (failures) => {
		for (const when of ['before', 'after'] as const) {
			table = new MemoryTable(clock, undefined, 0);
			recorder = open('7');
			await endAll();
			let left = failures;
			table.mishap = () => (left-- > 0 ? when : 'none');
			expect((await flush()).ok).toBe(failures === 1);
			const ids = table.all().map(({ taskId }) => taskId);
			expect(new Set(ids).size).toBe(40);
			if (failures === 1) expect(ids).toHaveLength(40);
		}
	});
});

test('a failure says why, without the ID and without a key', async () => {
	const one = job(0);
	begin(one);
	const failure = { kind: 'timedOut' as const, message: 'Task t0 was not done; sk-secret', advice: '' };
	recorder.ended(one, { taskId: 't0', snapshot: { endedAtMs: 0 }, failure });
	await flush();
	expect(table.all()[0]).toMatchObject({
		status: 'submitted',
		error:
			"Task was not done; [hidden]. The node no longer follows this task; 'Wait for Completion' for this execution collects it.",
	});
});

test('the error of a task that the platform does not know does not advise collecting it', async () => {
	const one = job(0);
	begin(one);
	const failure = { kind: 'taskUnknown' as const, message: 'The platform does not know task t0', advice: '' };
	recorder.ended(one, { taskId: 't0', snapshot: { endedAtMs: 0 }, failure });
	await flush();
	expect(table.all()[0]).toMatchObject({ error: 'The platform does not know task' });
});

test('a submit without an answer has a row, because it may have created a task', async () => {
	const failure = { kind: 'unclear' as const, message: 'Maybe', advice: '', details: { mayExist: true } };
	recorder.ended(job(4), { taskId: undefined, snapshot: undefined, failure });
	recorder.ended(job(5), { taskId: undefined, snapshot: undefined, failure: badInput('Wrong', '') });
	await flush();
	expect(table.all()).toEqual([
		expect.objectContaining({ item: 5, taskId: '', status: 'unclear', error: 'Maybe' }),
	]);
});

describe('a task with a row from an earlier execution', () => {
	beforeEach(async () => {
		const one = job(0);
		begin(one);
		recorder.news(one, taskInfo('t0', { progress_num: 10 }));
		await clock.advance(10_000);
	});

	test.each<[TaskSource, string, number]>([
		['given', '8', 1],
		['existing', '7', 1],
		['existing', '8', 2],
	])('is %s to execution %s: %i row(s), all up to date', async (source, executionId, count) => {
		const later = open(executionId);
		begin(job(0), source, later);
		await clock.advance(1_000);
		expect(table.all()[0]).toMatchObject({ status: 'generating', progress: 10 });
		finish(job(0), later);
		const same = job(0);
		begin(same, source, later);
		finish(same, later);
		await flush(later);
		const rows = table.all();
		expect(new Set(rows.map((row) => row.executionId)).size).toBe(count);
		for (const row of rows) {
			expect(row).toMatchObject({ status: 'succeeded', progress: 100 });
			expect(row.startedAt).toBe('2030-01-01T12:00:00.000Z');
		}
	});

	test('keeps the time at which the earlier execution saw it end', async () => {
		const finishedAt = '2030-01-01T12:00:05.000Z';
		table.edit((row) => ({ ...row, finishedAt }));
		const later = open('8');
		const same = job(0);
		begin(same, 'given', later);
		await clock.advance(2_000);
		finish(same, later);
		await flush(later);
		expect(table.all()).toMatchObject([{ status: 'succeeded', finishedAt }]);
	});

	test('gets a row if its row was deleted', async () => {
		table.edit(() => undefined);
		const later = open('8');
		begin(job(0), 'given', later);
		await flush(later);
		expect(table.all()).toEqual([expect.objectContaining({ executionId: '8', taskId: 't0' })]);
	});
});

test('in a long run, rows are changed less often', async () => {
	const all = jobs(120);
	for (const one of all) begin(one);
	await flush();
	const later = open('8');
	for (const one of all) begin(one, 'given', later);
	for (let minute = 1; minute <= 60; minute++) {
		for (const one of all.slice(minute)) {
			later.news(one, taskInfo(`t${one.itemIndex}`, { progress_num: minute + one.itemIndex / 2 }));
		}
		finish(all[minute - 1]!, later);
		await clock.advance(60_000);
	}
	const late = table.all().filter(({ status, item }) => status !== 'succeeded' && Number(item) < 55);
	expect(late).toEqual([]);
	expect(table.calls.length).toBeLessThan(500);
	await flush(later);
});

test('a known task that begins while others are looked up gets no second row', async () => {
	for (const taskId of ['t0', 't1']) table.put({ taskId, executionId: '7', rowKey: `old ${taskId}` });
	begin(job(0), 'existing');
	table.mishap = (call) => {
		if (call === 'read' && table.calls.length === 1) begin(job(1), 'existing');
		return 'none';
	};
	await clock.advance(5_000);
	expect(table.all().map(({ taskId }) => taskId)).toEqual(['t0', 't1']);
});

describe('a submit that is limited', () => {
	beforeEach(() => {
		recorder = open('7', table.open(), 1_000);
	});
	const claim = async (one: ObservedJob, by = recorder) => await clock.run(by.admit(one));

	test('has a row before it is sent, which then gets its ID, or goes if nothing was sent', async () => {
		const [made, refused, unclear] = jobs(3);
		expect((await claim(made!)).ok).toBe(true);
		expect(table.all()).toMatchObject([{ item: 1, taskId: '', status: 'unclear' }]);
		for (const one of [refused!, unclear!]) expect((await claim(one)).ok).toBe(true);
		begin(made!);
		const failure: Failure = { kind: 'refused', message: 'No', advice: '' };
		recorder.ended(refused!, { taskId: undefined, snapshot: undefined, failure });
		const maybe: Failure = { ...failure, kind: 'unclear', details: { mayExist: true } };
		recorder.ended(unclear!, { taskId: undefined, snapshot: undefined, failure: maybe });
		await flush();
		expect(table.all().map(({ item, taskId, status }) => [item, taskId, status])).toEqual([
			[1, 't0', 'submitted'],
			[3, '', 'unclear'],
		]);
	});

	test('waits for no write if the last one has just succeeded', async () => {
		await claim(job(0));
		for (const one of jobs(50)) await claim(one);
		expect(table.calls.filter((call) => call !== 'read')).toEqual(['replace']);
	});

	test.each(['before', 'after'] as const)(
		'must not be sent if its row fails (%s it is added)',
		async (when) => {
			table.mishap = (call) => (call === 'replace' ? when : 'none');
			const one = job(0);
			expect((await claim(one)).ok).toBe(false);
			recorder.ended(one, { taskId: undefined, snapshot: undefined, failure: badInput('Full', '') });
			await flush();
			expect(table.all()).toEqual([]);
		},
	);

	test('must not be sent once a later write has failed, until one succeeds', async () => {
		await claim(job(0));
		table.mishap = (call) => (call === 'read' ? 'none' : 'before');
		begin(job(1));
		await clock.advance(5_000);
		expect((await claim(job(2))).ok).toBe(false);
		table.mishap = () => 'none';
		expect((await claim(job(3))).ok).toBe(true);
	});

	test('whose key got the task of another execution leaves that one alone', async () => {
		table.put({ taskId: 't0', executionId: '6', rowKey: 'theirs', nodeDay: 'day', submitId: 's' });
		const one = job(0);
		await claim(one);
		begin(one, 'existing');
		await flush();
		expect(table.all().map(({ rowKey, taskId }) => [rowKey === 'theirs', taskId])).toEqual([
			[true, 't0'],
			[false, 't0'],
		]);
	});
});

describe('a table that fails', () => {
	test('loses no row if it recovers, and is written to less and less often', async () => {
		table.mishap = () => (clock.elapsedMs < 20_000 ? 'before' : 'none');
		for (const one of jobs(3)) begin(one);
		await clock.advance(20_000);
		expect(table.calls.length).toBeLessThanOrEqual(4);
		await clock.advance(40_000);
		expect(table.all()).toHaveLength(3);
	});

	test('gets a change that failed again within seconds, however long the run has taken', async () => {
		const one = job(0);
		begin(one);
		await clock.advance(4 * 3_600_000);
		table.mishap = (call) => (call === 'replace' ? 'before' : 'none');
		recorder.news(one, taskInfo('t0', { progress_num: 50 }));
		await clock.advance(3_000);
		table.mishap = () => 'none';
		expect(table.all()[0]?.status).toBe('submitted');
		await clock.advance(10_000);
		expect(table.all()[0]?.status).toBe('generating');
	});

	test('lists each task and each submit without an answer once, even if their rows were added twice', async () => {
		const details = { mayExist: true };
		const failure = { kind: 'unclear', message: 'Line broke', advice: '', details } as const;
		const [made, ...others] = jobs(3);
		begin(made!);
		for (const one of others) recorder.ended(one, { taskId: undefined, snapshot: undefined, failure });
		// Both writes of the flush add rows, and fail before they remove what they replace.
		table.mishap = (call) => (call === 'replace' ? 'halfway' : 'none');
		expect((await flush()).ok).toBe(false);
		expect(table.all()).toHaveLength(6);
		expect(recordedTasks(table.all(), '')).toEqual({
			tasks: [{ taskId: 't0', item: 0, variant: undefined, prompt: 'a red fox' }],
			unclear: 2,
		});
	});

	test('is written to a few times in twenty minutes, and the final write reports the failure', async () => {
		table.mishap = () => 'before';
		const one = job(0);
		begin(one);
		await clock.advance(600_000);
		recorder.news(one, taskInfo('t0'));
		await clock.advance(600_000);
		expect(table.calls.length).toBeLessThanOrEqual(10);
		const flushed = await flush();
		expect(flushed.ok).toBe(false);
		expect(clock.sleepers).toBe(0);
	});
});

test('the tasks of an execution are listed by item and variant, whatever the order of their rows', () => {
	const rows = ['2.1', '1.3', '2.2', '1.1', '1.2'].map((taskId) => {
		const [item = '', variant = ''] = taskId.split('.');
		return { taskId, item: Number(item), variant: Number(variant) };
	});
	const { tasks } = recordedTasks(rows, '');
	expect(tasks.map(({ taskId }) => taskId)).toEqual(['1.1', '1.2', '1.3', '2.1', '2.2']);
});

test('a submit is unclear only if none of its rows has the ID of its task', () => {
	const rows = [
		...['', 't1'].map((taskId) => ({ taskId, submitId: 'one' })),
		...['', ''].map((taskId) => ({ taskId, submitId: 'two' })),
		...['', ''].map((taskId) => ({ taskId, submitId: null })),
	];
	expect(recordedTasks(rows, '')).toMatchObject({ tasks: [{ taskId: 't1' }], unclear: 3 });
});

test('nothing is written if nothing happened', async () => {
	await clock.advance(60_000);
	await flush();
	await turn();
	expect(table.calls).toEqual([]);
});
