import { randomUUID } from 'crypto';

import { BackgroundWriter } from '../../shared/run/backgroundWriter';
import type { Clock } from '../../shared/run/clock';
import { growingPauseMs, type PauseGrowth } from '../../shared/run/growingPause';
import type { DataTable, TableRow } from '../../shared/dataTable/table';
import { ok, type Result } from '../../shared/errors/failure';
import type { Redact } from '../../shared/text/redact';
import { textOrNumber } from '../../shared/text/textOf';
import type { BegunTask, EndedTask, ObservedJob, TaskObserver, TaskSource } from '../tasks/observer';
import type { TaskInfo } from '../api/taskInfo';
import type { DailyTasks } from './dailyTasks';
import { cellsAfter, cellsAtEnd, newRow, type RowFacts, type RowOrigin, type TaskCells } from './taskRows';

/** How long the first write is delayed to collect rows, so that a run that ends sooner needs a single write. */
const FIRST_WRITE_MS = 1_000;
/** The time from the start of one write to the next; it grows after each failure. */
const INTERVALS: PauseGrowth = { firstMs: 2_000, factor: 2, longestMs: 10 * 60_000 };
/** Updates may take a 50th of the time, so a slow table is updated less often. New rows are not delayed. */
const REST_PER_CHANGE_MS = 50;
/** Rows are updated less often in a long run: they may be out of date by a 20th of its duration so far. */
const REST_PER_RUN_MS = 1 / 20;
interface LoggedTask extends RowFacts {
	readonly source: TaskSource;
	taskId: string;
	submittedAtMs: number | undefined;
	cells: TaskCells;
	/** What the table has of the task, as `contentOf` returns it. */
	written: string;
	/**
	 * The keys of all rows that the task may have, since a failed write may have been carried out; `undefined` until the
	 * rows of a task that existed before this run are looked up.
	 */
	rowKeys: readonly string[] | undefined;
	/** Whether the table lists the task for this execution, or need not do so. */
	isListed: boolean;
	/** Whether a person has deleted the task's row. */
	isDeleted: boolean;
}

/**
 * Writes a row for each task of a node run soon after its ID is known, and keeps the rows up to date, with at most one
 * write every two seconds. Rows of this run are replaced by new ones; rows of earlier runs are changed in place, because
 * their runs may still replace them. A write that fails never fails a run that only records.
 */
export class TaskRecorder implements TaskObserver {
	private readonly entries = new Map<ObservedJob, LoggedTask>();
	/** The keys of rows to remove. */
	private readonly leaving = new Set<string>();
	private readonly runKey = randomUUID().slice(0, 13);
	private rowsMade = 0;
	private readonly writer: BackgroundWriter;
	/** Whether the last row was added without a failure. */
	private isWritable = false;
	private proof: Promise<Result<undefined>> | undefined;
	private firstWriteMs: number | undefined;
	private lastWriteMs = -Infinity;
	private nextChangeMs = -Infinity;

	constructor(
		private readonly origin: RowOrigin,
		private readonly parts: {
			readonly table: DataTable;
			readonly clock: Clock;
			readonly redact: Redact;
			readonly daily: Pick<DailyTasks, 'countOf'>;
		},
	) {
		this.writer = new BackgroundWriter(parts.clock, {
			isBehind: () => this.leaving.size > 0 || [...this.entries.values()].some(isStale),
			write: async (isLast) => await this.write(isLast),
			pauseMs: (failures) => this.restMs(failures),
		});
	}

	/**
	 * Records a task that is about to be submitted. Unless the last write has just shown that the table can be written,
	 * the row is written first; submits that come meanwhile share the outcome.
	 */
	async claim(job: ObservedJob): Promise<Result<undefined>> {
		this.open(job, { taskId: '', source: 'made' }).cells = { status: 'unclear', error: '' };
		this.writer.start();
		if (this.isWritable) return ok(undefined);
		return await (this.proof ??= this.writer.now().finally(() => {
			this.proof = undefined;
		}));
	}

	began(job: ObservedJob, task: BegunTask): void {
		const claimed = this.entries.get(job);
		if (claimed && task.source === 'made') {
			claimed.taskId = task.taskId;
			claimed.submittedAtMs = task.submittedAtMs;
			claimed.cells = { error: '' };
		} else {
			this.withdraw(job);
			this.open(job, task);
		}
		this.writer.start();
	}

	news(job: ObservedJob, info: TaskInfo): void {
		const entry = this.entries.get(job);
		if (!entry) return;
		entry.cells = cellsAfter(entry.cells, info, this.parts.clock.wallNow());
		this.writer.start();
	}

	ended(job: ObservedJob, end: EndedTask): void {
		const mayExist = end.failure?.details?.mayExist === true;
		const known = this.entries.get(job);
		if (!known && !mayExist) return;
		if (end.taskId === undefined && !mayExist) this.withdraw(job);
		else {
			const submittedAtMs = this.parts.clock.wallNow();
			const entry = known ?? this.open(job, { taskId: '', source: 'made', submittedAtMs });
			entry.cells = cellsAtEnd(entry.cells, end, this.parts.redact);
		}
		this.writer.start();
	}

	/** Writes what is left without further delay. @returns a failure if something could not be written */
	async flush(): Promise<Result<undefined>> {
		return await this.writer.flush();
	}

	private open(job: ObservedJob, { taskId, source, submittedAtMs }: BegunTask): LoggedTask {
		const entry: LoggedTask = {
			job,
			taskId,
			source,
			submittedAtMs,
			counted: this.parts.daily.countOf(job),
			cells: source === 'made' ? { error: '' } : {},
			written: '',
			rowKeys: source === 'made' ? [] : undefined,
			isListed: false,
			isDeleted: false,
		};
		this.entries.set(job, entry);
		return entry;
	}

	/** Takes back the row of a submit that made no task of its own. */
	private withdraw(job: ObservedJob): void {
		for (const key of this.entries.get(job)?.rowKeys ?? []) this.leaving.add(key);
		this.entries.delete(job);
	}

	private restMs(failures: number): number {
		const nextMs = this.lastWriteMs + growingPauseMs(INTERVALS, failures + 1);
		return Math.max(FIRST_WRITE_MS, nextMs - this.parts.clock.now());
	}

	private async write(isLast: boolean): Promise<Result<undefined>> {
		const { clock } = this.parts;
		const beganMs = (this.lastWriteMs = clock.now());
		this.firstWriteMs ??= beganMs;
		const found = await this.find();
		if (!found.ok) return found;
		const isChange = isLast || beganMs >= this.nextChangeMs;
		const replaced = await this.replace(isChange);
		if (!replaced.ok) return replaced;
		const removed = await this.removeLeaving();
		if (!removed.ok || !isChange) return removed;
		const changed = await this.change();
		if (!changed.ok) return changed;
		const endedMs = clock.now();
		const restMs = Math.max(
			(endedMs - beganMs) * REST_PER_CHANGE_MS,
			(endedMs - this.firstWriteMs) * REST_PER_RUN_MS,
		);
		this.nextChangeMs = endedMs + restMs;
		return changed;
	}

	/** Looks up the rows of tasks that existed before this run. */
	private async find(): Promise<Result<undefined>> {
		const unknown = [...this.entries.values()].filter(({ rowKeys }) => rowKeys === undefined);
		if (unknown.length === 0) return ok(undefined);
		const taskIds = unknown.map(({ taskId }) => taskId);
		const read = await this.parts.table.read('taskId', taskIds);
		if (!read.ok) return read;
		const rowsOf = Map.groupBy(read.value, (row) => textOrNumber(row.taskId));
		for (const entry of unknown) {
			const rows = rowsOf.get(entry.taskId) ?? [];
			entry.rowKeys = rows.map(({ rowKey }) => textOrNumber(rowKey)).filter(Boolean);
			const times = { ...timeIn('startedAt', rows), ...timeIn('finishedAt', rows) };
			entry.cells = { ...entry.cells, ...times };
			// A task that was given by ID belongs to the execution that made it.
			entry.isListed =
				rows.some(({ executionId }) => executionId === this.origin.executionId) ||
				(entry.source === 'given' && rows.length > 0);
			if (entry.isListed) entry.written = contentOf({ taskId: entry.taskId, cells: times });
		}
		return ok(undefined);
	}

	/**
	 * Adds rows, and removes those that they replace. A row that a person has deleted stays deleted.
	 * @param isChange whether to replace rows, too, and not only to add missing ones
	 */
	private async replace(isChange: boolean): Promise<Result<undefined>> {
		const due = [...this.entries.values()].filter(
			// A task that began while rows were looked up may have some, too.
			(entry) => entry.rowKeys && isStale(entry) && (!entry.isListed || (isChange && isOwn(entry))),
		);
		const added = due.map((entry) => {
			const { rowKeys: before = [], isListed } = entry;
			const rowKey = `${this.runKey}-${this.rowsMade++}`;
			entry.rowKeys = [...before, rowKey];
			const replaced = isOwn(entry) ? before : [];
			const row = newRow(this.origin, entry, rowKey);
			return { entry, isListed, before, replaced, rowKey, row, content: contentOf(entry) };
		});
		if (added.length === 0) return ok(undefined);
		const gone = await this.parts.table.replace(
			added.map(({ row }) => row),
			added.flatMap(({ replaced }) => replaced),
		);
		this.isWritable = gone.ok;
		if (!gone.ok) return gone;
		const present = new Set(gone.value.map(({ rowKey }) => rowKey));
		for (const { entry, isListed, before, replaced, rowKey, content } of added) {
			entry.isListed = true;
			// Rows of other executions that were there before still lack these cells.
			if (isOwn(entry) || before.length === 0) entry.written = content;
			if (isOwn(entry)) entry.rowKeys = [rowKey];
			entry.isDeleted = isListed && !replaced.some((key) => present.has(key));
			if (entry.isDeleted) this.leaving.add(rowKey);
		}
		return ok(undefined);
	}

	private async removeLeaving(): Promise<Result<undefined>> {
		const keys = [...this.leaving];
		const removed = await this.parts.table.remove('rowKey', keys);
		if (removed.ok) for (const key of keys) this.leaving.delete(key);
		return removed;
	}

	/** Writes the cells of tasks that existed before into their rows; equal changes share a statement. */
	private async change(): Promise<Result<undefined>> {
		const stale = [...this.entries.values()].filter(
			(entry) => entry.rowKeys && isStale(entry) && !isOwn(entry),
		);
		const sent = [...Map.groupBy(stale, ({ cells }) => JSON.stringify(cells)).values()].map((entries) => ({
			values: entries.flatMap(({ rowKeys = [] }) => rowKeys),
			cells: { ...entries[0]?.cells },
			written: entries.map((entry) => ({ entry, content: contentOf(entry) })),
		}));
		const changed = await this.parts.table.updateAlike(
			'rowKey',
			sent.filter(({ values }) => values.length > 0),
		);
		if (!changed.ok) return changed;
		for (const { written } of sent) for (const { entry, content } of written) entry.written = content;
		return changed;
	}
}

/** Whether this run made the task's rows, and alone changes them. */
function isOwn({ source }: LoggedTask): boolean {
	return source === 'made';
}

/** Whether the table lacks the task or what is now known about it. */
function isStale(entry: LoggedTask): boolean {
	return !entry.isDeleted && (!entry.isListed || contentOf(entry) !== entry.written);
}

/** What of a task may change while this run follows it. */
function contentOf({ taskId, cells }: Pick<LoggedTask, 'taskId' | 'cells'>): string {
	return JSON.stringify([taskId, cells]);
}

function timeIn(column: 'finishedAt' | 'startedAt', rows: readonly TableRow[]): TaskCells {
	const time = rows.map((row) => textOrNumber(row[column])).find(Boolean);
	return time === undefined ? {} : { [column]: time };
}
