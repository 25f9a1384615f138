import pLimit from 'p-limit';

import type { Accounts } from '../../shared/platform/accounts';
import type { Clock } from '../../shared/run/clock';
import { ok, type Failure, type FailureKind, type Result } from '../../shared/errors/failure';
import { HeldFiles } from '../../shared/files/heldFiles';
import type { Ledger } from '../../shared/idempotency/ledger';
import type { Redact } from '../../shared/text/redact';
import type { Download } from '../../shared/files/download';
import type { TaskApi } from '../api';
import { explainMistake, explainWatchEnd, type StopReason, type TaskOrigin } from '../failures';
import { DOWNLOADS_AT_ONCE, ResultFiles, type ResultFile } from './files';
import type { TaskInfo } from './taskInfo';
import type { FileSelection } from './links';
import type { SubmitRecord, UploadedImages } from './memory';
import { tokenHider, type ProgressSockets } from './progressSocket';
import { TaskSubmitter, type ItemTask, type SubmitStart } from './submit';
import { KNOWN_MISSING_MS, TaskWatcher } from './watch';
import type { TaskSnapshot, WatchEnd } from './watched';

/** One input item's work: a task to submit, or one that exists already. */
export interface TaskJob {
	readonly itemIndex: number;
	/** Whether the files of the finished task are downloaded. */
	readonly wantsFiles: boolean;
	readonly start:
		| SubmitStart
		| {
				readonly kind: 'watch';
				readonly taskId: string;
				readonly submittedAtMs?: number | undefined;
				/** How watching ended, where that was done elsewhere: nothing is polled any more. */
				readonly seen?: WatchEnd | undefined;
		  };
	/** Told what becomes of the submit; left out for tasks of which this run is not the owner. */
	readonly record?: SubmitRecord | undefined;
}

/** How the tasks of one account are reached: a task is known to the key that made it, and to no other. */
export interface TaskLine {
	readonly api: TaskApi;
	readonly sockets?: ProgressSockets | undefined;
	/** Images that an earlier try of the same run uploaded to this account. */
	readonly images?: UploadedImages | undefined;
	/** Stands for the account among the inputs of an idempotency key; empty where all items have the same one. */
	readonly owner?: string | undefined;
}

/** What became of a job. With a `failure` the rest is what was known when it failed. */
export interface TaskOutcome {
	readonly itemIndex: number;
	readonly taskId: string | undefined;
	/** Whether the task is one that the item's idempotency key stood for already. */
	readonly reused: boolean;
	readonly snapshot: TaskSnapshot | undefined;
	readonly files: readonly ResultFile[];
	readonly failure: Failure | undefined;
}

export interface EngineSettings {
	/** How far to go with each task. */
	readonly goal: 'submitted' | 'finished';
	/** Most tasks that are under way at once. */
	readonly maxInFlight: number;
	/** No more tasks are submitted after so many failures; 0 = no limit. */
	readonly maxFailures: number;
	/** End everything at the first failure: the operator did not choose to continue on failure. */
	readonly stopAtFailure: boolean;
	/** Whether a task that is not done in time counts as failed. */
	readonly lateIsFailure: boolean;
	readonly fileSelection: FileSelection;
	/** By the clock's `now()`. */
	readonly deadlineMs: number;
	readonly noProgressMs: number;
	readonly urlExpireSeconds: number;
}

export interface EngineParts {
	readonly lines: Pick<Accounts<TaskLine>, 'of'>;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly download: Download;
	readonly ledger?: Ledger | undefined;
	/** Aborted by the engine when the run ends early; the parts that wait or transfer listen to it. */
	readonly ending: AbortController;
}

/**
 * Ends after which the same task can be of no more use. A task that the platform does not show is none of them:
 * its index may be late, or the credential another one.
 */
const SPOILED: ReadonlySet<FailureKind> = new Set(['taskFailed', 'taskDenied']);

/** A task that another run, or another operation, has submitted. */
const FOREIGN = { promptToken: undefined, reused: false, ended: (): void => undefined } as const;

/**
 * Runs all jobs of one node run beside each other: upload, submit, watch, download, each task on its own way,
 * watched by one watcher.
 *
 * @returns the outcomes in the order of `jobs`; never throws, never drops a known task id
 */
export async function runTasks(
	jobs: readonly TaskJob[],
	settings: EngineSettings,
	parts: EngineParts,
): Promise<TaskOutcome[]> {
	const run = new TaskRun(jobs.length, settings, parts);
	try {
		const slots = pLimit(settings.maxInFlight);
		return await Promise.all(
			jobs.map(async (job, index) => await slots(async () => await run.job(job, index + 1))),
		);
	} finally {
		run.close();
	}
}

/** The work for one account. What is counted and bounded counts for all of them. */
interface Lane {
	readonly watcher: TaskWatcher;
	readonly submitter: TaskSubmitter;
	readonly files: ResultFiles;
}

class TaskRun {
	private readonly lanes = new Map<TaskLine, Lane>();
	private readonly downloads = pLimit(DOWNLOADS_AT_ONCE);
	private readonly held = new HeldFiles();
	private unsubmitted: number;
	private failures = 0;
	private stopped: StopReason | undefined;

	constructor(
		private readonly jobCount: number,
		private readonly settings: EngineSettings,
		private readonly parts: EngineParts,
	) {
		const { ending } = parts;
		this.unsubmitted = jobCount;
		ending.signal.addEventListener('abort', this.end, { once: true });
		if (ending.signal.aborted) this.end();
	}

	close(): void {
		this.parts.ending.signal.removeEventListener('abort', this.end);
		this.stopWatching();
	}

	private stopWatching(): void {
		for (const { watcher } of this.lanes.values()) watcher.stop();
	}

	private laneOf(itemIndex: number): Result<Lane> {
		const line = this.parts.lines.of(itemIndex);
		if (!line.ok) return line;
		const lane = this.lanes.get(line.value) ?? this.openLane(line.value);
		this.lanes.set(line.value, lane);
		return ok(lane);
	}

	private openLane({ api, sockets, images, owner }: TaskLine): Lane {
		const { clock, ledger, ending, download } = this.parts;
		const { fileSelection, urlExpireSeconds } = this.settings;
		const { signal } = ending;
		const stopReason = (): StopReason | undefined => this.stopReason();
		const backlog = (): number => this.unsubmitted;
		const watcher = new TaskWatcher({ api, clock, sockets, backlog }, this.settings);
		if (signal.aborted) watcher.stop();
		return {
			watcher,
			submitter: new TaskSubmitter({ api, clock, images, held: this.held, owner, ledger, stopReason }),
			files: new ResultFiles({
				...{ api, clock, download, signal, fileSelection, urlExpireSeconds },
				slots: this.downloads,
			}),
		};
	}

	private readonly end = (): void => {
		this.stopped ??= 'cancelled';
		this.stopWatching();
	};

	/** @param number counted from 1; it tells the files of tasks apart */
	async job(job: TaskJob, number: number): Promise<TaskOutcome> {
		const outcome = await this.outcomeOf(job, number);
		if (outcome.failure && this.counts(outcome.failure)) this.countFailure();
		return outcome;
	}

	private counts(failure: Failure): boolean {
		if (failure.kind === 'cancelled' || failure.kind === 'notSubmitted') return false;
		return this.settings.lateIsFailure || (failure.kind !== 'timedOut' && failure.kind !== 'stalled');
	}

	private countFailure(): void {
		const { maxFailures, stopAtFailure } = this.settings;
		this.failures++;
		if (stopAtFailure) {
			this.stopped ??= 'failure';
			this.parts.ending.abort();
		} else if (maxFailures > 0 && this.failures >= maxFailures) {
			this.stopped ??= 'maxFailures';
		}
	}

	private async outcomeOf(job: TaskJob, number: number): Promise<TaskOutcome> {
		const { start, record } = job;
		const lane = this.laneOf(job.itemIndex);
		if (!lane.ok || start.kind === 'watch') this.unsubmitted--;
		if (!lane.ok) return outcome(job.itemIndex, { failure: lane.failure });
		if (start.kind === 'watch') {
			const { taskId, submittedAtMs } = start;
			return await this.keepingId(job, number, lane.value, { ...FOREIGN, taskId, submittedAtMs });
		}
		const task = await lane.value.submitter.submit(start, record).finally(() => {
			this.unsubmitted--;
		});
		return task.ok
			? await this.keepingId(job, number, lane.value, task.value)
			: outcome(job.itemIndex, { failure: task.failure });
	}

	/** A mistake in the node must not cost the task's id, nor the other items their results. */
	private async keepingId(job: TaskJob, number: number, lane: Lane, task: ItemTask): Promise<TaskOutcome> {
		try {
			return await this.goOn(job, number, lane, task);
		} catch (error) {
			const { taskId, reused } = task;
			return outcome(job.itemIndex, { taskId, reused, failure: explainMistake(taskId, error) });
		}
	}

	private async goOn(job: TaskJob, number: number, lane: Lane, task: ItemTask): Promise<TaskOutcome> {
		if (this.settings.goal === 'finished') return await this.follow(job, number, lane, task);
		const { taskId, reused, submittedAtMs } = task;
		job.record?.delivered?.();
		const endedAtMs = this.parts.clock.wallNow();
		const snapshot = { info: undefined, sinceMs: submittedAtMs, generatingAtMs: undefined, endedAtMs };
		return outcome(job.itemIndex, { taskId, reused, snapshot });
	}

	/** Whether a task of another execution is so new that an index may be behind with it. */
	private isRecent(submittedAtMs: number): boolean {
		return this.parts.clock.wallNow() - submittedAtMs < KNOWN_MISSING_MS;
	}

	private stopReason(): StopReason | undefined {
		if (this.parts.clock.now() >= this.settings.deadlineMs) this.stopped ??= 'timeout';
		return this.stopped;
	}

	private async follow(
		{ itemIndex, wantsFiles, record, start }: TaskJob,
		number: number,
		lane: Lane,
		{ taskId, promptToken, submittedAtMs, reused, finished, ended }: ItemTask,
	): Promise<TaskOutcome> {
		const known = submittedAtMs !== undefined && (!reused || (!finished && this.isRecent(submittedAtMs)));
		const seen = start.kind === 'watch' ? start.seen : undefined;
		const end = seen ?? (await lane.watcher.watch(taskId, promptToken, submittedAtMs, known));
		const seenSoFar = { taskId, reused, snapshot: end.snapshot };
		const origin = originOf(start, reused, record !== undefined);
		const failure = explainWatchEnd(taskId, end, this.parts.redact, origin);
		if (failure && SPOILED.has(failure.kind)) {
			record?.spoiled();
			ended('failed');
		}
		if (failure || end.kind !== 'final') return outcome(itemIndex, { ...seenSoFar, failure });
		ended('succeeded');
		record?.delivered?.();
		if (!wantsFiles) return outcome(itemIndex, seenSoFar);
		const names = this.jobCount > 1 ? number : undefined;
		const fetched = await this.withFiles(lane.files, outcome(itemIndex, seenSoFar), end.info, names);
		return withShownLinks(fetched, tokenHider(promptToken));
	}

	private async withFiles(
		resultFiles: ResultFiles,
		finished: TaskOutcome,
		info: TaskInfo,
		number: number | undefined,
	): Promise<TaskOutcome> {
		const { files, links, failure } = await resultFiles.fetch(info, number);
		if (!failure) return { ...finished, files };
		const details = {
			taskId: info.taskId,
			status: info.state,
			urls: links.map(({ url }) => this.parts.redact.known(url)),
		};
		return { ...finished, files, failure: { ...failure, details: { ...failure.details, ...details } } };
	}
}

/** @param recorded whether the run remembers the task as its own */
function originOf(start: TaskJob['start'], reused: boolean, recorded: boolean): TaskOrigin | undefined {
	if (start.kind === 'watch') return recorded ? { earlierTry: true } : undefined;
	return reused && start.idempotency ? { key: start.idempotency.key } : undefined;
}

/** The links as they may be shown: one with the prompt token in it is for the download alone. */
function withShownLinks(fetched: TaskOutcome, hide: (url: string) => string): TaskOutcome {
	const { failure } = fetched;
	const files = fetched.files.map(({ link, stored }) => ({ link: { ...link, url: hide(link.url) }, stored }));
	const urls = failure?.details?.urls;
	if (!failure || !Array.isArray(urls)) return { ...fetched, files };
	const shown = urls.map((url) => (typeof url === 'string' ? hide(url) : url));
	return { ...fetched, files, failure: { ...failure, details: { ...failure.details, urls: shown } } };
}

function outcome(itemIndex: number, known: Partial<Omit<TaskOutcome, 'itemIndex'>>): TaskOutcome {
	return {
		itemIndex,
		taskId: undefined,
		reused: false,
		snapshot: undefined,
		files: [],
		failure: undefined,
		...known,
	};
}
