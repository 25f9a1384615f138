import type { PreparableTable } from '../../shared/dataTable/table';
import { dayAfter, dayOf, isTimeZone, nodeOwner, type NodeIds } from '../../shared/dailyLimit/calendarDay';
import { DailyLimit, type Countable } from '../../shared/dailyLimit/dailyLimit';
import type { DayAccounts } from '../../shared/dailyLimit/dayAccounts';
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

const OPTION = 'Max Tasks per Day';

/** Limits the tasks that a node makes in a day, and provides the cells that count them. */
export class DailyTasks implements TaskObserver {
	private readonly limit: DailyLimit;
	private readonly owner: string;
	private readonly submitIds = new Map<ObservedJob, string>();
	/** Jobs that were submitted or are being submitted. */
	private readonly admitted = new Set<ObservedJob>();

	constructor(
		private readonly settings: DailyTaskSettings,
		table: PreparableTable,
		private readonly clock: Clock,
		accounts: DayAccounts,
	) {
		const { most, timeZone, node } = settings;
		this.owner = nodeOwner(node);
		this.limit = new DailyLimit(
			{
				most,
				timeZone: isTimeZone(timeZone) ? timeZone : 'UTC',
				per: 'node',
				unit: 'tasks',
				option: OPTION,
			},
			// A row with a day counts as one task: only submits that made a task, or may have made one, have such a row.
			{ table, columns: { ownerDay: 'nodeDay', id: 'submitId' }, countedIn: () => ({ count: 1, tokens: 0 }) },
			clock,
			accounts,
		);
	}

	/**
	 * Reads how many tasks were created today, and reserves slots for the first jobs without an idempotency key: one with
	 * a key may have a task already.
	 * @param isAllOrNone whether to refuse all jobs if one of them gets no slot
	 */
	async open(jobs: readonly TaskJob[], isAllOrNone: boolean): Promise<Result<undefined>> {
		const submits = jobs.filter(({ start }) => start.kind === 'submit');
		if (this.settings.most === 0 || submits.length === 0) return ok(undefined);
		if (!isTimeZone(this.settings.timeZone)) {
			return failInput(
				`The workflow's time zone "${this.settings.timeZone}" is unknown, so tasks cannot be counted for "${OPTION}"`,
				'Choose another one in the workflow settings. Nothing was sent.',
			);
		}
		const isSure = ({ start }: TaskJob): boolean => start.kind === 'submit' && !start.idempotency;
		const due = submits.filter(isSure).map((job) => this.countable(job));
		const opened = await this.limit.open(
			submits.map((job) => this.countable(job)),
			due,
		);
		if (!opened.ok) return opened;
		const left = opened.value;
		// If no slot is left at all, each item fails on its own.
		if (!isAllOrNone || left === 0 || left === due.length) return ok(undefined);
		for (const one of due) this.limit.giveBack(one);
		return fail(this.notForAll(due.length, left));
	}

	/** Called before a job's task is submitted. @returns a failure if the limit is reached */
	async admit(job: ObservedJob): Promise<Result<undefined>> {
		const admitted = this.settings.most === 0 ? ok(undefined) : await this.limit.admit(this.countable(job));
		if (admitted.ok) this.admitted.add(job);
		return admitted;
	}

	countOf(job: ObservedJob): CountCells {
		if (!this.admitted.has(job)) return { nodeDay: null, submitId: null };
		const entry = this.countable(job);
		return { nodeDay: this.limit.countedAt(entry).ownerDay, submitId: entry.id };
	}

	/** A job that was admitted may still get a task that another execution has just submitted for its key. */
	began(job: ObservedJob, { source }: BegunTask): void {
		if (source !== 'made') this.admitted.delete(job);
	}

	news(): void {}

	ended(job: ObservedJob, { taskId, failure }: EndedTask): void {
		const mayExist = taskId !== undefined || failure?.details?.mayExist === true;
		if (this.admitted.has(job) && mayExist) this.limit.count(this.countable(job), 0);
		else this.limit.giveBack(this.countable(job));
	}

	/** Called when the run is over. @param isWritten whether the table contains the run's submits */
	close(isWritten: boolean): void {
		this.limit.close(isWritten);
	}

	private countable(job: ObservedJob): Countable {
		const { runId } = this.settings;
		const id = this.submitIds.get(job) ?? `${runId} ${this.submitIds.size}`;
		this.submitIds.set(job, id);
		return { id, owner: this.owner, ownerName: 'this node' };
	}

	private notForAll(count: number, left: number): Failure {
		const { most, timeZone } = this.settings;
		const freeFrom = dayAfter(dayOf(this.clock.wallNow(), timeZone));
		const later =
			count > most
				? ''
				: ` Or run it again from ${freeFrom} on: the count restarts at midnight (${timeZone}).`;
		return badInput(
			`This run has ${count} tasks, but "${OPTION}" (${most}) leaves only ${left} for today`,
			`Nothing was sent. To send the first ${left}, set "On Error" in the node's settings to continue. To send all, raise "${OPTION}" under "Cost and Speed".${later}`,
			{ freeFrom },
		);
	}
}
