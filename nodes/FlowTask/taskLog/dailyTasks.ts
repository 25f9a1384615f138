import type { PreparableTable } from '../../shared/dataTable/table';
import {
	dayAfter,
	dayOf,
	isTimeZone,
	nodeOwner,
	ownerDay,
	type NodeIds,
} from '../../shared/dailyLimit/calendarDay';
import { DailyLimit, notCounted, type Countable } from '../../shared/dailyLimit/dailyLimit';
import { NOTHING, type DayCounts, type Used } from '../../shared/dailyLimit/dayCounts';
import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { Clock } from '../../shared/run/clock';
import type { TaskJob } from '../tasks/engine';
import type { BegunTask, EndedTask, ObservedJob, TaskObserver } from '../tasks/observer';
import type { CountCells } from './taskRows';

interface DailyTaskSettings {
	readonly node: NodeIds;
	/** Days begin at midnight in this time zone. */
	readonly timeZone: string;
	/** Identifies this run of the node, to distinguish its submits from those of other runs. */
	readonly runId: string;
	/** 0 = no limit; tasks are still counted. */
	readonly most: number;
}

const OPTION = 'Limit per Day';
/** A row with a day counts: only submits that made a task, or may have made one, have such a row. */
const ONE_TASK: Used = { count: 1, tokens: 0 };

/** Limits the tasks that a node makes in a day, and provides the cells that count them. */
export class DailyTasks implements TaskObserver {
	private readonly limit: DailyLimit;
	private readonly owner: string;
	private readonly timeZone: string;
	private readonly submitIds = new Map<ObservedJob, string>();
	/** The days of the jobs that were submitted or are being submitted. */
	private readonly days = new Map<ObservedJob, string>();

	constructor(
		private readonly settings: DailyTaskSettings,
		table: PreparableTable,
		private readonly clock: Clock,
		counts: DayCounts,
	) {
		const { most, timeZone, node } = settings;
		this.owner = nodeOwner(node);
		this.timeZone = isTimeZone(timeZone) ? timeZone : 'UTC';
		this.limit = new DailyLimit(
			{ most, timeZone: this.timeZone, per: 'node', unit: 'tasks', option: OPTION },
			{ table, columns: { ownerDay: 'nodeDay', id: 'submitId' }, countedIn: () => ONE_TASK },
			clock,
			counts,
		);
	}

	/**
	 * Reads how many tasks were created today.
	 * @param isAllOrNone whether to refuse all jobs if the limit leaves too few. Jobs with an idempotency key are let
	 *   through, because they may have tasks already.
	 */
	async open(jobs: readonly TaskJob[], isAllOrNone: boolean): Promise<Result<undefined>> {
		const submits = jobs.flatMap(({ start }) => (start.kind === 'submit' ? [start] : []));
		if (this.settings.most === 0 || submits.length === 0) return ok(undefined);
		if (this.timeZone !== this.settings.timeZone) {
			return failInput(
				`The workflow's time zone "${this.settings.timeZone}" is unknown, so tasks cannot be counted for '${OPTION}'`,
				'Choose another one in the workflow settings. Nothing was sent.',
			);
		}
		const node = this.countable('');
		const opened = await this.limit.open([node]);
		if (!opened.ok) return opened;
		const left = this.limit.leftFor(node);
		const due = submits.filter(({ idempotency }) => !idempotency).length;
		// If nothing is left at all, each item fails on its own.
		return isAllOrNone && left > 0 && left < due ? fail(this.notForAll(due, left)) : opened;
	}

	/**
	 * Called before a job's task is submitted.
	 * @param claim writes the job's row, unless the log is known to be writable
	 * @returns a failure if the limit is reached, or if what is about to be made cannot be recorded
	 */
	async admit(job: ObservedJob, claim: () => Promise<Result<undefined>>): Promise<Result<undefined>> {
		const isLimited = this.settings.most > 0;
		const day = isLimited
			? await this.limit.admit(this.countable(this.submitIdOf(job)))
			: ok(dayOf(this.clock.wallNow(), this.timeZone));
		if (!day.ok) return day;
		this.days.set(job, day.value);
		const claimed = isLimited ? await claim() : ok(undefined);
		return claimed.ok ? claimed : fail(notCounted(claimed.failure, OPTION));
	}

	countOf(job: ObservedJob): CountCells {
		const day = this.days.get(job);
		return day === undefined
			? { nodeDay: null, submitId: null }
			: { nodeDay: ownerDay(this.owner, day), submitId: this.submitIdOf(job) };
	}

	/** A job that was admitted may still get a task that another execution has just submitted for its key. */
	began(job: ObservedJob, { source }: BegunTask): void {
		if (source !== 'made') this.days.delete(job);
	}

	news(): void {}

	ended(job: ObservedJob, { taskId, failure }: EndedTask): void {
		const mayExist = taskId !== undefined || failure?.details?.mayExist === true;
		const used = mayExist && this.days.has(job) ? ONE_TASK : NOTHING;
		this.limit.ended(this.countable(this.submitIdOf(job)), used);
	}

	/** Called when the run is over. @param isWritten whether the table contains the run's submits */
	close(isWritten: boolean): void {
		this.limit.close(isWritten);
	}

	private submitIdOf(job: ObservedJob): string {
		const id = this.submitIds.get(job) ?? `${this.settings.runId} ${this.submitIds.size}`;
		this.submitIds.set(job, id);
		return id;
	}

	private countable(id: string): Countable {
		return { id, owner: this.owner, ownerName: 'this node' };
	}

	private notForAll(count: number, left: number): Failure {
		const { most } = this.settings;
		const freeFrom = dayAfter(dayOf(this.clock.wallNow(), this.timeZone));
		const later =
			count > most
				? ''
				: ` Or run it again from ${freeFrom} on: the count restarts at midnight (${this.timeZone}).`;
		return badInput(
			`This run has ${count} tasks, but '${OPTION}' (${most}) leaves only ${left} for today`,
			`Nothing was sent. To send the first ${left}, set 'On Error' in the node's settings to continue. To send all, raise '${OPTION}' under 'Cost and Speed'.${later}`,
			{ freeFrom },
		);
	}
}
