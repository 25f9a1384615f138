import type { LimitFunction } from 'p-limit';

import type { Clock } from '../../shared/run/clock';
import type { Failure, Result } from '../../shared/errors/failure';
import { createBatcher, type Batcher } from '../../shared/run/batcher';
import type { CallFailure } from '../api/failures';
import type { Download, StoredFile } from '../../shared/files/download';
import type { MayFetch } from '../../shared/files/fileHosts';
import type { TaskApi } from '../api/api';
import type { TaskInfo } from '../api/taskInfo';
import {
	isPlainText,
	linksOf,
	namesFor,
	type FileLink,
	type FileNames,
	type FileSelection,
	type TaskLabel,
} from './resultLinks';
import { infoOfMany, type PolledInfos } from '../api/poll';

export interface ResultFile {
	readonly link: FileLink;
	readonly stored: StoredFile;
}

/** Which files of a finished task to get. */
export interface WantedFiles {
	readonly info: TaskInfo;
	/** Only those of these output nodes. */
	readonly outputNodes?: readonly string[] | undefined;
	readonly label: TaskLabel;
}

/** The files of a task; with a `failure`, those that arrived. */
export interface FetchedFiles {
	readonly files: readonly ResultFile[];
	/** Every link, as first reported. */
	readonly links: readonly FileLink[];
	readonly failure: Failure | undefined;
}

export interface ResultFilesParts {
	readonly api: Pick<TaskApi, 'info'>;
	readonly clock: Clock;
	readonly download: Download;
	readonly mayFetch: MayFetch;
	/** Shared by all accounts of the run. */
	readonly slots: LimitFunction;
	/** Ends waiting when the run ends early. */
	readonly signal: AbortSignal;
	readonly fileSelection: FileSelection;
	readonly urlExpireSeconds: number;
}

/** Streams are cheap, but each holds a connection and a file handle. */
export const DOWNLOADS_AT_ONCE = 8;

/** A task may finish a moment before its links appear, so the links are requested once more. */
const LINKS_BEHIND_MS = 1_000;

/** The pauses before each request for fresh links: a platform may repeat old ones. */
const RENEWAL_PAUSES_MS = [0, 2_000, 5_000];

/** Links of tasks that ended together expire together. */
const BATCH_RENEWALS_MS = 250;

/** Asks for the links of a task once more; its files share the result of each round. */
type Renew = (round: number) => Promise<readonly FileLink[]>;

/** Downloads the result files of all tasks of one account. */
export class ResultFiles {
	private readonly requestInfos: Batcher<string, Result<PolledInfos, CallFailure>>;

	constructor(private readonly parts: ResultFilesParts) {
		const { api, clock, signal, urlExpireSeconds } = parts;
		this.requestInfos = createBatcher(
			clock,
			BATCH_RENEWALS_MS,
			async (taskIds) => await infoOfMany(api, taskIds, urlExpireSeconds),
			signal,
		);
	}

	async fetch({ info, outputNodes, label }: WantedFiles): Promise<FetchedFiles> {
		const selection = outputNodes ?? this.parts.fileSelection;
		const reported = linksOf(info, selection);
		// A node that made no file never will.
		const isBehind = reported.length === 0 && linksOf(info, 'all').length === 0;
		const links = isBehind ? await this.freshLinks(info.taskId, selection, LINKS_BEHIND_MS) : reported;
		const names = namesFor(links, label);
		const renew = this.renewals(info.taskId, selection);
		const results = await Promise.all(
			links.flatMap((link, index) => {
				const name = names[index];
				return name && !isPlainText(link.url) ? [this.fetchFile(link, name, renew)] : [];
			}),
		);
		const files = results.filter((result) => result.ok).map((result) => result.value);
		const failed = results.find((result) => !result.ok);
		return { files, links, failure: failed?.failure };
	}

	private async freshLinks(
		taskId: string,
		selection: FileSelection,
		pauseMs: number,
	): Promise<readonly FileLink[]> {
		const { clock, signal } = this.parts;
		await clock.sleep(pauseMs, signal);
		if (signal.aborted) return [];
		const read = await this.requestInfos.add(taskId);
		const info = read.ok ? read.value.infos.get(taskId) : undefined;
		return info ? linksOf(info, selection) : [];
	}

	private renewals(taskId: string, selection: FileSelection): Renew {
		const rounds: Array<Promise<readonly FileLink[]>> = [];
		return async (round) =>
			await (rounds[round] ??= this.freshLinks(taskId, selection, RENEWAL_PAUSES_MS[round] ?? 0));
	}

	private async fetchFile(link: FileLink, names: FileNames, renew: Renew): Promise<Result<ResultFile>> {
		let { url } = link;
		for (let round = 0; ; round++) {
			// The slot is free while links are requested, so that others can download.
			const { slots, download, mayFetch } = this.parts;
			const result = await slots(async () => await download({ url, ...names, mayFetch }));
			if (result.ok) return { ok: true, value: { link, stored: result.value } };
			if (!result.failure.expired || round >= RENEWAL_PAUSES_MS.length) return result;
			const fresh = (await renew(round))[link.index];
			if (!fresh) return result;
			({ url } = fresh);
		}
	}
}
