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
/** With more changes than this, rows are replaced: a change takes n8n 40 ms, and replacing hundreds of rows 200 ms. */
const REPLACED_ABOVE = 5;

interface LoggedTask extends RowFacts {
	readonly source: TaskSource;
	cells: TaskCells;
	/** The cells as written to the table, as JSON. */
	written: string;
	/** The keys of the task's rows; `undefined` until the rows are looked up. */
	rowKeys: readonly string[] | undefined;
	/** Whether the table lists the task for this execution, or need not do so. */
	isListed: boolean;
}

/**
 * Writes a row for each task of a node run soon after its ID is known, and keeps the rows up to date, with at most one
 * write every two seconds. A write that fails never fails the run.
 */
export class TaskRecorder implements TaskObserver {
	private readonly entries = new Map<ObservedJob, LoggedTask>();
	private readonly runKey = randomUUID().slice(0, 13);
	private rowsMade = 0;
	private readonly writer: BackgroundWriter;
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
			isBehind: () => [...this.entries.values()].some(isStale),
			write: async (isLast) => await this.write(isLast),
			pauseMs: (failures) => this.restMs(failures),
		});
	}

	began(job: ObservedJob, task: BegunTask): void {
		this.open(job, task);
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
		const entry =
			known ?? this.open(job, { taskId: '', source: 'made', submittedAtMs: this.parts.clock.wallNow() });
		entry.cells = cellsAtEnd(entry.cells, end, this.parts.redact);
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
			written: '{}',
			rowKeys: source === 'made' ? [] : undefined,
			isListed: false,
		};
		this.entries.set(job, entry);
		return entry;
	}

	private restMs(failures: number): number {
		const nextMs = this.lastWriteMs + growingPauseMs(INTERVALS, failures + 1);
		return Math.max(FIRST_WRITE_MS, nextMs - this.parts.clock.now());
	}

	private async write(isLast: boolean): Promise<Result<undefined>> {
		const { clock } = this.parts;
		this.lastWriteMs = clock.now();
		this.firstWriteMs ??= this.lastWriteMs;
		const found = await this.find();
		if (!found.ok) return found;
		const inserted = await this.insert();
		if (!inserted.ok) return inserted;
		const beganMs = clock.now();
		if (!isLast && beganMs < this.nextChangeMs) return inserted;
		const replaced = await this.replace();
		if (!replaced.ok) return replaced;
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
			entry.written = JSON.stringify(times);
			// A task that was given by ID belongs to the execution that made it.
			entry.isListed =
				rows.some(({ executionId }) => executionId === this.origin.executionId) ||
				(entry.source === 'given' && rows.length > 0);
		}
		return ok(undefined);
	}

	private async insert(): Promise<Result<undefined>> {
		// A task that began while rows were looked up may have some, too.
		const unlisted = [...this.entries.values()].filter(({ isListed, rowKeys }) => !isListed && rowKeys);
		const added = this.newRows(unlisted);
		if (added.length === 0) return ok(undefined);
		const inserted = await this.parts.table.insert(added.map(({ row }) => row));
		if (!inserted.ok) return inserted;
		for (const { entry, cells, oldKeys } of added) {
			// Rows that were there before still lack these cells.
			if (oldKeys.length === 0) entry.written = JSON.stringify(cells);
			entry.isListed = true;
		}
		return inserted;
	}

	private newRows(entries: readonly LoggedTask[]) {
		return entries.map((entry) => {
			const { rowKeys: oldKeys = [] } = entry;
			const rowKey = `${this.runKey}-${this.rowsMade++}`;
			// A failed write may have been carried out, so the next one changes or removes its row, too.
			entry.rowKeys = [...oldKeys, rowKey];
			const { cells } = entry;
			return { entry, cells, oldKeys, rowKey, row: newRow(this.origin, entry, rowKey) };
		});
	}

	/**
	 * Replaces the rows of this run if that takes fewer statements than changing them. New rows are inserted first, so
	 * that no ID is ever missing. Rows that cannot be read are left to `change`: rows that a person has deleted stay
	 * deleted, and rows that a slow database does not show yet are updated.
	 */
	private async replace(): Promise<Result<undefined>> {
		const { table } = this.parts;
		const stale = [...this.entries.values()].filter(
			(entry) => isStale(entry) && entry.source === 'made' && entry.isListed,
		);
		if (alikeIn(stale).length <= REPLACED_ABOVE) return ok(undefined);
		const read = await table.read('executionId', [this.origin.executionId]);
		const present = new Set((read.ok ? read.value : []).map(({ rowKey }) => rowKey));
		const replaced = this.newRows(
			stale.filter(({ rowKeys = [] }) => rowKeys.some((key) => present.has(key))),
		);
		if (replaced.length === 0) return ok(undefined);
		const inserted = await table.insert(replaced.map(({ row }) => row));
		if (!inserted.ok) return inserted;
		const removed = await table.remove(
			'rowKey',
			replaced.flatMap(({ oldKeys }) => oldKeys),
		);
		if (!removed.ok) return removed;
		for (const { entry, cells, rowKey } of replaced) {
			entry.rowKeys = [rowKey];
			entry.written = JSON.stringify(cells);
		}
		return removed;
	}

	/** Writes the current cells of stale entries into their rows; equal changes share a statement. */
	private async change(): Promise<Result<undefined>> {
		const sent = alikeIn([...this.entries.values()].filter(isStale)).map((entries) => {
			const values = entries.flatMap(({ rowKeys = [] }) => rowKeys);
			const { cells = {} } = entries[0] ?? {};
			return { entries, cells, change: { values, cells: { ...cells } } };
		});
		const changes = sent.map(({ change }) => change).filter(({ values }) => values.length > 0);
		const changed = await this.parts.table.updateAlike('rowKey', changes);
		if (!changed.ok) return changed;
		for (const { entries, cells } of sent) for (const entry of entries) entry.written = JSON.stringify(cells);
		return changed;
	}
}

/** Whether the table lacks the task or its current cells. */
function isStale(entry: LoggedTask): boolean {
	return !entry.isListed || JSON.stringify(entry.cells) !== entry.written;
}

/** Groups entries whose rows get the same cells. */
function alikeIn(entries: readonly LoggedTask[]): LoggedTask[][] {
	return [...Map.groupBy(entries, ({ cells }) => JSON.stringify(cells)).values()];
}

function timeIn(column: 'finishedAt' | 'startedAt', rows: readonly TableRow[]): TaskCells {
	const time = rows.map((row) => textOrNumber(row[column])).find(Boolean);
	return time === undefined ? {} : { [column]: time };
}
