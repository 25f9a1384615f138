import pLimit from 'p-limit';

import type { Clock } from '../../shared/time/clock';
import type { Failure, FailureKind, Result } from '../../shared/errors/failure';
import { uniqueStems } from '../../shared/files/fileName';
import { Ticket, type EffectMemory } from '../../shared/effects/due';
import type { Ledger } from '../../shared/effects/ledger';
import type { Redact } from '../../shared/text/redact';
import type { Download } from '../../shared/files/download';
import type { MayFetch } from '../../shared/files/fileHosts';
import type { TaskApi } from '../api/api';
import type { TaskInfo } from '../api/taskInfo';
import { explainMistake, explainNoFiles, explainWatchEnd, notAgain, type StopReason } from './failures';
import { linksUnread, ResultFiles, type ResultFile, type WantedFiles } from './resultFiles';
import type { EndedTask, ObservedJob, TaskFacts, TaskObserver, TaskSource } from './observer';
import { linksOf, type FileSelection, type TaskLabel } from './resultLinks';
import { tokenHider, withoutToken } from '../api/progressSocket';
import { TaskSubmitter, type ItemTask, type SubmitClient, type SubmitStart } from './submit';
import type { Prompt } from '../workflow/prompt';
import { EXISTING_MISSING_MS, TaskWatcher, type WatchClient, type WatchSettings } from './watcher';
import type { WatchEnd } from './watchedTask';

interface WatchStart {
	readonly kind: 'watch';
	readonly taskId: string;
	readonly submittedAtMs?: number | undefined;
	/** How watching ended, if a suspended wait has watched the task, which is then not polled again. */
	readonly seen?: WatchEnd | undefined;
}

export interface OutputNode {
	readonly nodeId: string;
	readonly field: string;
}

/** How a task is output. */
export interface Delivery {
	readonly form: 'filePerItem' | 'allFiles' | 'urls';
	readonly binaryField: string;
	readonly files: FileSelection;
	/** The nodes whose files are wanted, each in its own field; without any, all files have the same field. */
	readonly outputs?: readonly OutputNode[] | undefined;
	readonly simplify: boolean;
	/** Whether the workflow is known to save no files, so that a task without any has not failed. */
	readonly mayBeEmpty: boolean;
}

export interface TaskJob extends ObservedJob {
	readonly facts: TaskFacts;
	readonly delivery: Delivery;
	readonly start: SubmitStart | WatchStart;
	/** The name of the task's files, without extension; left out if they keep the names in their links. */
	readonly fileStem?: string | undefined;
	/** Is told what becomes of the submit; left out for tasks that the item names. */
	readonly record?: EffectMemory | undefined;
}

/** How the account's tasks are reached; a task is visible only to the account that submitted it. */
export interface TaskClient extends SubmitClient, WatchClient {
	readonly api: TaskApi;
	readonly mayFetch: MayFetch;
}

/** What became of a job. With a `failure`, the other fields are what was known at that point. */
export interface TaskOutcome extends EndedTask, Pick<TaskJob, 'itemIndex' | 'facts' | 'delivery'> {
	readonly reused: boolean;
	readonly files: readonly ResultFile[];
	/** The inputs that this run sent; left out for a task that it did not make. */
	readonly sent?: Prompt | undefined;
}

export function outcome(
	{ itemIndex, facts, delivery }: Pick<TaskJob, 'itemIndex' | 'facts' | 'delivery'>,
	known: Partial<TaskOutcome>,
): TaskOutcome {
	const nothing = { taskId: undefined, reused: false, snapshot: undefined, files: [], failure: undefined };
	return { itemIndex, facts, delivery, ...nothing, ...known };
}

export interface EngineSettings extends WatchSettings {
	/** When a job is done: once its task is submitted, or once the task is finished. */
	readonly goal: 'submitted' | 'finished';
	readonly maxInFlight: number;
	/** No more tasks are submitted after this many failures; 0 = no limit. */
	readonly maxFailures: number;
	/** Whether the first failure ends everything, because the node does not continue on failure. */
	readonly stopAtFailure: boolean;
	/** Whether a task that is not done in time counts as failed. */
	readonly lateIsFailure: boolean;
}

export interface EngineRun {
	readonly client: TaskClient;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly download: Download;
	readonly ledger?: Ledger | undefined;
	/** Asked before a job's task is made; a failure means that it must not be made. Left out if tasks are not recorded. */
	readonly book?: { admit(job: ObservedJob): Promise<Result<undefined>> } | undefined;
	readonly observers?: readonly TaskObserver[];
	/** Aborted when the run ends, which the engine or n8n may do early; waits and transfers then end. */
	readonly ending: AbortController;
}

/** `taskUnknown` is not among them, because the index may be behind, or the credential that of another account. */
const USELESS_AFTER: ReadonlySet<FailureKind> = new Set(['taskFailed', 'taskDenied']);

/**
 * Runs all jobs of one node run at the same time: upload, submit, watch, download, each task at its own pace.
 * @returns the outcomes in the order of `jobs`; never throws, never drops a known task ID
 */
export async function runTasks(
	jobs: readonly TaskJob[],
	settings: EngineSettings,
	effects: EngineRun,
): Promise<TaskOutcome[]> {
	const run = new TaskRun(jobs, settings, effects);
	const permits = pLimit(settings.maxInFlight);
	return await Promise.all(jobs.map(async (job) => await permits(async () => await run.job(job))));
}

class TaskRun {
	private readonly watcher: TaskWatcher;
	private readonly submitter: TaskSubmitter;
	private readonly files: ResultFiles;
	private readonly labels: ReadonlyMap<TaskJob, TaskLabel>;
	private unsubmitted: number;
	private failures = 0;
	private stopped: StopReason | undefined;

	constructor(
		jobs: readonly TaskJob[],
		private readonly settings: EngineSettings,
		private readonly run: EngineRun,
	) {
		this.unsubmitted = jobs.length;
		const { client, clock, ledger } = run;
		this.watcher = new TaskWatcher(client, clock, settings, () => this.unsubmitted);
		this.submitter = new TaskSubmitter(client, clock, () => this.stopReason(), ledger);
		this.files = new ResultFiles(client, run, settings.urlExpireSeconds);
		const stems = uniqueStems(jobs.map(({ fileStem }) => fileStem));
		const marks = jobs.length > 1 ? uniqueStems(jobs.map(rowMark)) : [];
		this.labels = new Map(jobs.map((job, index) => [job, { mark: marks[index], stem: stems[index] }]));
		const stopWatching = (): void => this.watcher.stop();
		const { signal } = run.ending;
		signal.addEventListener('abort', stopWatching, { once: true });
		if (signal.aborted) stopWatching();
	}

	private tell(tell: (observer: TaskObserver) => void): void {
		this.run.observers?.forEach(tell);
	}

	private stopReason(): StopReason | undefined {
		const { clock, ending } = this.run;
		if (ending.signal.aborted) this.stopped ??= 'cancelled';
		if (clock.now() >= this.settings.deadlineMs) this.stopped ??= 'timeout';
		return this.stopped;
	}

	async job(job: TaskJob): Promise<TaskOutcome> {
		const result = await this.outcomeOf(job);
		this.tell((observer) => observer.ended(job, result));
		const { failure } = result;
		if (!failure) return result;
		this.countFailure(failure);
		const lost = job.start.kind === 'submit' && result.taskId === undefined ? job.start.lost : undefined;
		return lost ? { ...result, failure: notAgain(failure, lost.taskId) } : result;
	}

	private countFailure({ kind }: Failure): void {
		const { maxFailures, stopAtFailure, lateIsFailure } = this.settings;
		if (kind === 'cancelled' || kind === 'notSubmitted') return;
		if (!lateIsFailure && (kind === 'timedOut' || kind === 'stalled')) return;
		this.failures++;
		if (stopAtFailure) {
			this.stopped ??= 'failure';
			this.run.ending.abort();
		} else if (maxFailures > 0 && this.failures >= maxFailures) {
			this.stopped ??= 'maxFailures';
		}
	}

	private async outcomeOf(job: TaskJob): Promise<TaskOutcome> {
		const { start, record } = job;
		if (start.kind === 'watch') {
			this.unsubmitted--;
			const { taskId, submittedAtMs } = start;
			const ticket = new Ticket(record);
			return await this.proceed(job, {
				taskId,
				submittedAtMs,
				promptToken: undefined,
				reused: false,
				ticket,
			});
		}
		const { book } = this.run;
		const admit = book && (async () => await book.admit(job));
		const submit = async () => await this.submitter.submit(start, record, admit);
		const task = await this.notFailed(submit).finally(() => {
			this.unsubmitted--;
		});
		if (!task.ok) return outcome(job, { failure: task.failure });
		return await this.proceed(job, task.value);
	}

	/**
	 * Submits again if the task of the item's key has failed. A run that only submits sees no task end, and what waits for the
	 * task does not know the key, so the ledger may not say it.
	 */
	private async notFailed(submit: () => Promise<Result<ItemTask>>): Promise<Result<ItemTask>> {
		const task = await submit();
		const isOpen = this.settings.goal === 'submitted' && task.ok && task.value.reused && !task.value.finished;
		const info = isOpen ? await this.files.freshInfo(task.value.taskId, 0) : undefined;
		if (!task.ok || (info?.state !== 'failed' && info?.state !== 'denied')) return task;
		task.value.ticket.done('failed');
		return await submit();
	}

	/** Goes on with a known task; a bug in the node must cost neither the task's ID nor the other items' results. */
	private async proceed(job: TaskJob, task: ItemTask): Promise<TaskOutcome> {
		const { taskId, reused, submittedAtMs, sent } = task;
		try {
			const source = sourceOf(job, reused);
			this.tell((observer) => observer.began(job, { taskId, submittedAtMs, source }));
			if (this.settings.goal === 'finished') return await this.follow(job, task);
			task.ticket.delivered();
			const snapshot = { sinceMs: submittedAtMs, endedAtMs: this.run.clock.wallNow() };
			return outcome(job, { taskId, reused, snapshot, sent });
		} catch (error) {
			return outcome(job, { taskId, reused, failure: explainMistake(taskId, error) });
		}
	}

	private async follow(job: TaskJob, task: ItemTask): Promise<TaskOutcome> {
		const { delivery, start } = job;
		const { taskId, promptToken, submittedAtMs: sinceMs, reused, sent } = task;
		const seen = start.kind === 'watch' ? start.seen : undefined;
		const onNews = (info: TaskInfo): void => this.tell((observer) => observer.news(job, info));
		const origin = { promptToken, sinceMs };
		const end = seen ?? (await this.watcher.watch(taskId, origin, this.certainlyExists(task), onNews));
		const known = { taskId, reused, snapshot: end.snapshot, sent };
		const failure = explainWatchEnd(taskId, end, this.run.redact, sourceOf(job, reused) === 'given');
		if (failure && USELESS_AFTER.has(failure.kind)) task.ticket.done('failed');
		if (failure || end.kind !== 'final') return outcome(job, { ...known, failure });
		task.ticket.done('succeeded');
		const isAsked = delivery.form !== 'urls' || !delivery.mayBeEmpty;
		const info = isAsked ? await this.files.complete(end.info) : end.info;
		const hasLinks = info !== undefined && linksOf(info, 'all').length > 0;
		// A later report tells more, but may be of an index that is behind.
		const isMore = info !== undefined && info !== end.info && (hasLinks || info.errorMessage !== '');
		const shown = isMore ? { ...withoutToken(info, promptToken), state: end.info.state } : end.snapshot.info;
		const told = { ...known, snapshot: { ...end.snapshot, info: shown } };
		if (delivery.form === 'urls') {
			const isWithheld = !hasLinks && shown?.errorMessage;
			return outcome(job, { ...told, failure: isWithheld ? this.withoutFiles(job, told) : undefined });
		}
		if (!info) return outcome(job, { ...told, failure: linksUnread(end.info) });
		// The end of the run also ends the last look for links, which then shows nothing.
		if (!hasLinks && !this.run.ending.signal.aborted)
			return outcome(job, { ...told, failure: this.withoutFiles(job, told) });
		const wanted = { info, selection: delivery.files, label: this.labels.get(job) ?? {} };
		return outcome(job, { ...told, ...(await this.fetchFiles(wanted, promptToken)) });
	}

	private withoutFiles(
		{ delivery }: TaskJob,
		{ taskId, snapshot }: { readonly taskId: string; readonly snapshot: WatchEnd['snapshot'] },
	): Failure | undefined {
		return delivery.mayBeEmpty ? undefined : explainNoFiles(taskId, snapshot, this.run.redact);
	}

	/** Whether the platform certainly has the task, even if its index does not show it yet. */
	private certainlyExists({ submittedAtMs, reused, finished }: ItemTask): boolean {
		if (submittedAtMs === undefined) return false;
		return !reused || (!finished && this.run.clock.wallNow() - submittedAtMs < EXISTING_MISSING_MS);
	}

	/** @returns the files, with the prompt token hidden in their links, because only the download needs it */
	private async fetchFiles(
		wanted: WantedFiles,
		promptToken: string | undefined,
	): Promise<Pick<TaskOutcome, 'files' | 'failure'>> {
		const { info } = wanted;
		const { files, links, failure } = await this.files.fetch(wanted);
		const hide = tokenHider(promptToken);
		const shown = files.map(({ link, stored }) => ({ link: { ...link, url: hide(link.url) }, stored }));
		if (!failure) return { files: shown, failure };
		const urls = links.map(({ url }) => hide(this.run.redact.known(url)));
		const details = { ...failure.details, taskId: info.taskId, status: info.state, urls };
		return { files: shown, failure: { ...failure, details } };
	}
}

/** Marks files that keep the names in their links with the row of the input, from 1, and the variant. */
function rowMark({ itemIndex, facts: { item = itemIndex, variant } }: TaskJob): string {
	return variant === undefined ? `${item + 1}` : `${item + 1}_v${variant}`;
}

function sourceOf({ start, record }: TaskJob, reused: boolean): TaskSource {
	if (start.kind === 'submit') return reused ? 'existing' : 'made';
	return record ? 'existing' : 'given';
}
