import pLimit from 'p-limit';

import type { Clock } from '../../shared/time/clock';
import { ok, type Failure, type Result } from '../../shared/errors/failure';
import { createBatcher, type Batcher } from '../../shared/time/batcher';
import type { CallFailure } from '../api/failures';
import type { Download, StoredFile } from '../../shared/files/download';
import type { MayFetch } from '../../shared/files/fileHosts';
import { excerpt } from '../../shared/text/json';
import type { TaskApi } from '../api/api';
import type { TaskInfo } from '../api/taskInfo';
import {
	isPlainText,
	linkFinder,
	linksOf,
	namesFor,
	type FileLink,
	type FileSelection,
	type FindLink,
	type NamedLink,
	type TaskLabel,
} from './resultLinks';
import { infoOfMany, type PolledInfos } from '../api/poll';

export interface ResultFile {
	readonly link: FileLink;
	readonly stored: StoredFile;
}

export interface WantedFiles {
	readonly info: TaskInfo;
	readonly selection: FileSelection;
	readonly label: TaskLabel;
}

/** Streams are cheap, but each holds a connection and a file handle. */
export const DOWNLOADS_AT_ONCE = 8;

/** A task may finish a moment before its links appear, so they are requested once more after this pause. */
const LINKS_BEHIND_MS = 1_000;

/** The pause before each request for fresh links; there are several, because a platform may repeat old links. */
const RENEWAL_PAUSES_MS = [0, 2_000, 5_000];

/** How long a request for fresh links waits for other tasks: those that ended together have links that expire together. */
const BATCH_RENEWALS_MS = 250;

/** Requests a fresh link to a file; the files of a task share one request per round. */
type Renew = (link: FileLink, round: number) => Promise<FileLink | undefined>;

/** Downloads the result files of all tasks of one account. */
export class ResultFiles {
	private readonly permits = pLimit(DOWNLOADS_AT_ONCE);
	private readonly requestInfos: Batcher<string, Result<PolledInfos, CallFailure>>;

	constructor(
		private readonly account: { readonly api: Pick<TaskApi, 'info'>; readonly mayFetch: MayFetch },
		private readonly run: {
			readonly clock: Clock;
			readonly download: Download;
			readonly ending: AbortController;
		},
		urlExpireSeconds: number,
	) {
		this.requestInfos = createBatcher(
			run.clock,
			BATCH_RENEWALS_MS,
			async (taskIds) => await infoOfMany(account.api, taskIds, urlExpireSeconds),
			run.ending.signal,
		);
	}

	/**
	 * The task's report, which is requested once more if it has no files.
	 * @returns `undefined` if no answer shows the task
	 */
	async complete(info: TaskInfo): Promise<TaskInfo | undefined> {
		if (linksOf(info, 'all').length > 0) return info;
		const fresh = await this.freshInfo(info.taskId, LINKS_BEHIND_MS);
		// The end of the run ends the call, too, which then says nothing about the task.
		return fresh ?? (this.run.ending.signal.aborted ? info : undefined);
	}

	/** @returns the files of a task, or with a `failure` those that arrived, and all links as first reported */
	async fetch({ info, selection, label }: WantedFiles) {
		const links = linksOf(info, selection);
		const renew = this.renewals(info.taskId, selection, links);
		const named = namesFor(links, label).filter(({ link }) => !isPlainText(link.url));
		const results = await Promise.all(named.map(async (one) => await this.fetchFile(one, renew)));
		const files = results.filter((result) => result.ok).map((result) => result.value);
		const failed = results.find((result) => !result.ok);
		const failure = failed && {
			...failed.failure,
			advice: `${failed.failure.advice} ${toCollect(info.taskId)}`.trim(),
		};
		return { files, links, failure };
	}

	/** @returns `undefined` if no answer shows the task */
	async freshInfo(taskId: string, pauseMs: number): Promise<TaskInfo | undefined> {
		const { signal } = this.run.ending;
		await this.run.clock.sleep(pauseMs, signal);
		const read = signal.aborted ? undefined : await this.requestInfos.add(taskId);
		return read?.ok ? read.value.infos.get(taskId) : undefined;
	}

	/** @param links the task's links as first reported */
	private renewals(taskId: string, selection: FileSelection, links: readonly FileLink[]): Renew {
		const rounds: Array<Promise<FindLink>> = [];
		const refresh = async (round: number): Promise<FindLink> => {
			const info = await this.freshInfo(taskId, RENEWAL_PAUSES_MS[round] ?? 0);
			return linkFinder(links, info ? linksOf(info, selection) : []);
		};
		return async (link, round) => (await (rounds[round] ??= refresh(round)))(link);
	}

	private async fetchFile({ link, ...names }: NamedLink, renew: Renew): Promise<Result<ResultFile>> {
		const { mayFetch } = this.account;
		let { url } = link;
		for (let round = 0; ; round++) {
			// The permit is free while links are requested, so that other files can be downloaded.
			const result = await this.permits(async () => await this.run.download({ url, ...names, mayFetch }));
			if (result.ok) return ok({ link, stored: result.value });
			if (!result.failure.expired || round >= RENEWAL_PAUSES_MS.length) return result;
			const fresh = await renew(link, round);
			if (!fresh) return result;
			({ url } = fresh);
		}
	}
}

/** The item must not be run again for the files, because that would make another task. */
function toCollect(taskId: string): string {
	return `The task is done and billed: to get its files, use the 'Wait for Completion' operation with task ID ${excerpt(taskId, 100)}.`;
}

export function linksUnread({ taskId, state: status }: TaskInfo): Failure {
	return {
		kind: 'file',
		message: `Task ${excerpt(taskId, 100)} succeeded, but the platform did not return the links to its files`,
		advice: toCollect(taskId),
		details: { taskId, status, urls: [] },
	};
}
