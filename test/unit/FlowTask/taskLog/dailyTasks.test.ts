import { TaskRecorder } from '../../../../nodes/FlowTask/taskLog/taskRecorder';
import type { TaskJob } from '../../../../nodes/FlowTask/tasks/engine';
import type { TaskSource } from '../../../../nodes/FlowTask/tasks/observer';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import { DayCounts } from '../../../../nodes/shared/effects/dayCounts';
import { redactor } from '../../../../nodes/shared/text/redact';
import { LINKS_ONLY } from '../taskInfo.builder';
import { MemoryTable } from '../../shared/memoryTable';
import { TestClock } from '../../testClock';

let clock: TestClock;
let table: MemoryTable;
beforeEach(() => {
	clock = new TestClock();
	table = new MemoryTable(clock);
});

let runs = 0;

const submit = (itemIndex: number, key?: string): TaskJob => ({
	itemIndex,
	facts: {},
	delivery: LINKS_ONLY,
	start: {
		kind: 'submit',
		workflowId: 'wf',
		prompt: {},
		images: [],
		...(key !== undefined && { idempotency: { key, payload: '' } }),
	},
});
const submits = (count: number): TaskJob[] => Array.from({ length: count }, (_, index) => submit(index));

/** One run of a node. */
class Run {
	readonly recorder: TaskRecorder;
	private readonly runId = `run ${++runs}`;

	constructor(most: number, { nodeId = 'n', timeZone = 'UTC' } = {}) {
		const place = { executionId: this.runId, workflow: 'Shop', workflowId: 'w', node: 'Flow Task', nodeId };
		const settings = { ...place, timeZone, runId: this.runId, mostPerDay: most };
		const counts = new DayCounts();
		this.recorder = new TaskRecorder(settings, { table: table.open(), clock, redact: redactor([]), counts });
	}

	async open(jobs: TaskJob[], isAllOrNone = false) {
		return await clock.run(this.recorder.open(jobs, isAllOrNone));
	}

	async admits(job: TaskJob): Promise<boolean> {
		return (await clock.run(this.recorder.admit(job))).ok;
	}

	began(job: TaskJob, source: TaskSource = 'made'): void {
		const taskId = `${this.runId} t${job.itemIndex}`;
		const begun = { taskId, source, submittedAtMs: clock.wallNow() };
		this.recorder.began(job, begun);
	}

	failed(job: TaskJob, details?: Failure['details']): void {
		const failure: Failure = { kind: 'refused', message: 'No', advice: '', ...(details && { details }) };
		const end = { taskId: undefined, snapshot: undefined, failure };
		this.recorder.ended(job, end);
	}

	/** Creates as many of the tasks as the limit allows. @returns their number */
	async make(jobs: TaskJob[]): Promise<number> {
		await this.open(jobs);
		let made = 0;
		for (const job of jobs) {
			if (!(await this.admits(job))) continue;
			this.began(job);
			made++;
		}
		await this.close();
		return made;
	}

	async close(): Promise<void> {
		await clock.run(this.recorder.flush());
	}
}

test('tasks over the limit are refused, in this run and in later ones; another node has its own limit', async () => {
	expect(await new Run(3).make(submits(2))).toBe(2);
	expect(await new Run(3).make(submits(2))).toBe(1);
	expect(await new Run(3).make(submits(1))).toBe(0);
	expect(await new Run(3, { nodeId: 'm' }).make(submits(4))).toBe(3);
});

test('tasks that were recorded without a limit count once there is one', async () => {
	expect(await new Run(0).make(submits(2))).toBe(2);
	expect(await new Run(3).make(submits(3))).toBe(1);
});

test('tasks of earlier tries do not count, nor do refused submits', async () => {
	const run = new Run(1);
	const [refused, made, over, known] = submits(4);
	await run.open([refused!, made!, over!]);
	run.began(known!, 'existing');
	expect(await run.admits(refused!)).toBe(true);
	run.failed(refused!);
	expect(await run.admits(made!)).toBe(true);
	// Asked again, as by a task whose claim has expired before it was sent.
	expect(await run.admits(made!)).toBe(true);
	run.began(made!);
	expect(await run.admits(over!)).toBe(false);
	await run.close();
	expect(table.all().map(({ nodeDay }) => Boolean(nodeDay))).toEqual([false, true]);
});

test('a task that another execution submitted while this one was admitted does not count', async () => {
	const run = new Run(1);
	const [known, made] = [submit(0, 'k'), submit(1)];
	await run.open([known, made]);
	expect(await run.admits(known)).toBe(true);
	run.began(known, 'existing');
	run.recorder.ended(known, { taskId: 't', snapshot: undefined, failure: undefined });
	expect(await run.admits(made)).toBe(true);
	run.failed(made);
	await run.close();
	expect(table.all()).toMatchObject([{ nodeDay: null }]);
	expect(await new Run(1).make([made])).toBe(1);
});

test('the ID of a task is in the table within two seconds, although the row was there before', async () => {
	const run = new Run(2);
	const [first, late] = [submit(0), submit(1)];
	await run.open([first, late]);
	for (const job of [first, late]) {
		expect(await run.admits(job)).toBe(true);
		await clock.advance(3_000);
		run.began(job);
		await clock.advance(2_100);
		expect(table.all().map(({ item, taskId }) => [item, taskId])).toContainEqual([
			job.itemIndex + 1,
			expect.stringMatching(/ t\d$/),
		]);
		// In a long run, rows are seldom brought up to date.
		await clock.advance(3_600_000);
	}
	await run.close();
});

test('an unanswered submit counts at once and later, but not one of another execution', async () => {
	const run = new Run(1);
	await run.open([submit(0, 'a'), submit(1, 'b')]);
	run.failed(submit(9, 'x'), { mayExist: true });
	const unclear = submit(0, 'a');
	expect(await run.admits(unclear)).toBe(true);
	run.failed(unclear, { mayExist: true });
	expect(await run.admits(submit(1, 'b'))).toBe(false);
	await run.close();
	expect(table.all().map(({ nodeDay }) => Boolean(nodeDay))).toEqual([false, true]);
	expect(await new Run(2).make(submits(2))).toBe(1);
});

test('a run whose first failure ends it reserves nothing for keys, which may already have tasks', async () => {
	const run = new Run(1);
	expect((await run.open([submit(0, 'a'), submit(1, 'b')], true)).ok).toBe(true);
	expect(await run.admits(submit(1, 'b'))).toBe(true);
});

test('days need a known time zone if there is a limit', async () => {
	const zone = { timeZone: 'Nowhere/Else' };
	const opened = await new Run(2, zone).open(submits(1));
	expect(opened).toMatchObject({
		failure: { message: expect.stringContaining('time zone "Nowhere/Else" is unknown') as string },
	});
	expect(await new Run(0, zone).make(submits(1))).toBe(1);
});

test('deleted rows do not count, and a temporarily duplicated row counts once', async () => {
	await new Run(3).make(submits(2));
	const [first] = table.all();
	table.put({ ...first, id: 99, rowKey: 'anew' });
	expect(await new Run(3).make(submits(2))).toBe(1);
	table.edit(() => undefined);
	expect(await new Run(3).make(submits(4))).toBe(3);
});
