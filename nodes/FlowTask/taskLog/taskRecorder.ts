import type { Clock } from '../../shared/time/clock';
import type { DataTable, TableRow } from '../../shared/dataTable/table';
import { dayOf, nodeOwner, ownerDay } from '../../shared/effects/calendarDay';
import { DailyLimit } from '../../shared/effects/dailyLimit';
import { NOTHING, type DayCounts, type Used } from '../../shared/effects/dayCounts';
import { RowLog } from '../../shared/effects/rowLog';
import { ok, type Result } from '../../shared/errors/failure';
import type { Redact } from '../../shared/text/redact';
import { textOrNumber } from '../../shared/text/textOf';
import type { TaskJob } from '../tasks/engine';
import type { BegunTask, EndedTask, ObservedJob, TaskObserver, TaskSource } from '../tasks/observer';
import type { TaskInfo } from '../api/taskInfo';
import { cellsAfter, cellsAtEnd, newRow, type RowFacts, type RowOrigin, type TaskCells } from './taskRows';

interface LoggedTask extends RowFacts {
	readonly source: TaskSource;
	taskId: string;
	submittedAtMs: number | undefined;
	cells: TaskCells;
	/** Whether the task has a row of this run, which alone changes that row. */
	isOwn: boolean;
	/** The keys of the rows that other runs made for the task; undefined until they are looked up. */
	foreign: readonly string[] | undefined;
	/** What the foreign rows have of `cells`. */
	written: string;
}

interface RecorderSettings extends RowOrigin {
	readonly nodeId: string;
	readonly timeZone: string;
	/** Identifies this run of the node, to distinguish its submits from those of other runs. */
	readonly runId: string;
	/** How many tasks the node may make in a day; 0 = no limit. */
	readonly mostPerDay: number;
}

interface RecorderTools {
	readonly table: DataTable;
	readonly clock: Clock;
	readonly redact: Redact;
	/** Shared by all runs of this n8n process. */
	readonly counts: DayCounts;
}

/** A row with a day counts: only submits that made a task, or may have made one, have such a row. */
const ONE_TASK: Used = { count: 1, tokens: 0 };

/**
 * Records each task of a node run in a row, and limits the tasks that the node makes in a day by counting the rows. Rows
 * of this run are replaced by new ones; rows of earlier runs are changed in place, because their runs may still replace
 * them.
 */
export class TaskRecorder implements TaskObserver {
	private readonly tasks = new Map<ObservedJob, LoggedTask>();
	/** The days for which jobs count that were submitted or are being submitted. */
	private readonly days = new Map<ObservedJob, string>();
	private readonly log: RowLog<ObservedJob>;
	private readonly limit: DailyLimit<ObservedJob> | undefined;
	private readonly owner: string;

	constructor(
		private readonly settings: RecorderSettings,
		private readonly parts: RecorderTools,
	) {
		const { timeZone, mostPerDay: most } = settings;
		const { table, clock, counts } = parts;
		const owner = nodeOwner(settings);
		this.owner = owner;
		const columns = { ownerDay: 'nodeDay', id: 'submitId' };
		const countableOf = (job: ObservedJob) => ({ id: this.submitIdOf(job), owner, ownerName: 'this node' });
		const counted = { table, columns, countedIn: () => ONE_TASK, countableOf };
		this.limit =
			most > 0
				? new DailyLimit({ most, timeZone, per: 'node', unit: 'tasks' }, counted, clock, counts)
				: undefined;
		this.log = new RowLog(table, clock, {
			isBehind: () => [...this.tasks.values()].some(isBehind),
			find: async () => await this.find(),
			change: async () => await this.change(),
		});
	}

	/**
	 * Reads how many tasks were created today, if they are limited.
	 * @param isAllOrNone whether to refuse all jobs if the limit leaves too few. Jobs with an idempotency key are let
	 *   through, because they may have tasks already.
	 */
	async open(jobs: readonly TaskJob[], isAllOrNone: boolean): Promise<Result<undefined>> {
		const submits = jobs.filter(({ start }) => start.kind === 'submit');
		if (!this.limit || submits.length === 0) return ok(undefined);
		const due = submits.filter(({ start }) => start.kind === 'submit' && !start.idempotency);
		return await this.limit.open(submits, isAllOrNone ? due : []);
	}

	/**
	 * Called before a job's task is submitted.
	 * @returns a failure if the limit is reached, or if what is about to be made cannot be recorded
	 */
	async admit(job: ObservedJob): Promise<Result<undefined>> {
		const { limit } = this;
		const day = (): string => limit?.dayOf(job) ?? dayOf(this.parts.clock.wallNow(), this.settings.timeZone);
		const claim = async () => {
			this.days.set(job, day());
			const task = this.add(job, { taskId: '', source: 'made' });
			task.cells = { status: 'unclear', error: '' };
			return await this.log.claim(job, this.rowOf(task));
		};
		if (limit) return await limit.admit(job, claim);
		this.days.set(job, day());
		return ok(undefined);
	}

	began(job: ObservedJob, begun: BegunTask): void {
		const claimed = this.tasks.get(job);
		// A job that was admitted may still get a task that another execution has just submitted for its key.
		if (claimed && begun.source !== 'made') this.log.withdraw(job);
		const task = this.add(job, begun);
		if (task.isOwn) this.log.put(job, this.rowOf(task));
		else this.log.start();
	}

	news(job: ObservedJob, info: TaskInfo): void {
		const task = this.tasks.get(job);
		if (task) this.update(task, cellsAfter(task.cells, info, this.parts.clock.wallNow()));
	}

	ended(job: ObservedJob, end: EndedTask): void {
		const { clock, redact } = this.parts;
		const isUnclear = end.failure?.details?.mayExist === true;
		const mayExist = isUnclear || end.taskId !== undefined;
		const known = this.tasks.get(job);
		this.limit?.ended(job, mayExist && known?.source === 'made' ? ONE_TASK : NOTHING);
		if (known && !mayExist) {
			this.tasks.delete(job);
			this.log.withdraw(job);
		} else if (known || isUnclear) {
			const task = known ?? this.add(job, { taskId: '', source: 'made', submittedAtMs: clock.wallNow() });
			this.update(task, cellsAtEnd(task.cells, end, redact));
		}
	}

	/** Writes what is left without further delay. @returns a failure if something could not be written */
	async flush(): Promise<Result<undefined>> {
		const flushed = await this.log.flush();
		this.limit?.close(flushed.ok);
		return flushed;
	}

	private add(job: ObservedJob, { taskId, source, submittedAtMs }: BegunTask): LoggedTask {
		const isOwn = source === 'made';
		const day = isOwn ? this.days.get(job) : undefined;
		const task: LoggedTask = {
			job,
			taskId,
			source,
			submittedAtMs,
			counted: {
				nodeDay: day === undefined ? null : ownerDay(this.owner, day),
				submitId: isOwn ? this.submitIdOf(job) : null,
			},
			cells: isOwn ? { error: '' } : {},
			isOwn,
			foreign: isOwn ? [] : undefined,
			written: '',
		};
		this.tasks.set(job, task);
		return task;
	}

	private update(task: LoggedTask, cells: TaskCells): void {
		task.cells = cells;
		if (task.isOwn) this.log.put(task.job, this.rowOf(task));
		else this.log.start();
	}

	private rowOf(task: LoggedTask): TableRow {
		return newRow(this.settings, task);
	}

	/** Unique to the submit of a job, whose item may have several variants. */
	private submitIdOf({ itemIndex, facts }: ObservedJob): string {
		return `${this.settings.runId} ${itemIndex}.${facts?.variant ?? 1}`;
	}

	/** Looks up the rows of tasks that existed before this run, and adds those that this execution lacks. */
	private async find(): Promise<Result<undefined>> {
		const unknown = [...this.tasks.values()].filter(({ foreign }) => foreign === undefined);
		if (unknown.length === 0) return ok(undefined);
		const taskIds = unknown.map(({ taskId }) => taskId);
		const read = await this.parts.table.read('taskId', taskIds);
		if (!read.ok) return read;
		const rowsOf = Map.groupBy(read.value, (row) => textOrNumber(row.taskId));
		for (const task of unknown) {
			const rows = rowsOf.get(task.taskId) ?? [];
			task.foreign = rows.map(({ rowKey }) => textOrNumber(rowKey)).filter(Boolean);
			const times = { ...timeIn('startedAt', rows), ...timeIn('finishedAt', rows) };
			task.cells = { ...task.cells, ...times };
			task.written = JSON.stringify(times);
			// A task that was given by ID belongs to the execution that made it.
			const isListed =
				rows.some(({ executionId }) => executionId === this.settings.executionId) ||
				(task.source === 'given' && rows.length > 0);
			task.isOwn = !isListed;
			if (task.isOwn) this.log.put(task.job, this.rowOf(task));
		}
		return ok(undefined);
	}

	/** Writes the cells of tasks that existed before into the rows of other runs; equal changes share a statement. */
	private async change(): Promise<Result<undefined>> {
		const behind = [...this.tasks.values()].filter(isBehind);
		const sent = [...Map.groupBy(behind, ({ cells }) => JSON.stringify(cells))].map(([text, tasks]) => ({
			values: tasks.flatMap(({ foreign = [] }) => foreign),
			cells: { ...tasks[0]?.cells },
			written: () => {
				for (const task of tasks) task.written = text;
			},
		}));
		const changed = await this.parts.table.updateAlike('rowKey', sent);
		if (changed.ok) for (const { written } of sent) written();
		return changed;
	}
}

/** Whether the rows of other runs lack what is now known of the task. */
function isBehind({ foreign, cells, written }: LoggedTask): boolean {
	return foreign === undefined || (foreign.length > 0 && JSON.stringify(cells) !== written);
}

function timeIn(column: 'finishedAt' | 'startedAt', rows: readonly TableRow[]): TaskCells {
	const time = rows.map((row) => textOrNumber(row[column])).find(Boolean);
	return time === undefined ? {} : { [column]: time };
}
