import type { Failure } from '../../shared/errors/failure';
import type { Clock } from '../../shared/time/clock';
import { openRunStream, type ChatStream } from '../../shared/answer/chatStream';
import { escapeMarkdown } from '../../shared/text/markdown';
import type { Redact } from '../../shared/text/redact';
import type { TaskOutcome } from '../tasks/engine';
import type { EndedTask, ObservedJob, TaskObserver } from '../tasks/observer';
import { markdownOf, shownFiles } from '../tasks/describeTask';
import { isFinal, type TaskInfo } from '../api/taskInfo';
import type { NodeRun } from './run';

const FIRST_REPORT_MS = 1_000;
const REPORT_INTERVAL_MS = 5_000;
/** How many images are shown; more would flood the chat. */
const MOST_IMAGES = 20;

/** Reports progress in the chat or the webhook response, if "Stream Progress" is set and n8n streams. */
export function openProgress(
	{ context, options, clock, redact }: NodeRun,
	taskCount: number,
): ProgressTeller | undefined {
	const stream = options.streamProgress && taskCount > 0 ? openRunStream(context, redact) : undefined;
	return stream && new ProgressTeller(stream, taskCount, clock, redact);
}

class ProgressTeller implements TaskObserver {
	private readonly jobs = new Map<ObservedJob, JobProgress>();
	private readonly over = new AbortController();
	private readonly telling: Promise<void>;
	private lastText = '';

	constructor(
		private readonly stream: ChatStream,
		private readonly taskCount: number,
		private readonly clock: Clock,
		private readonly redact: Redact,
	) {
		this.telling = this.tell();
	}

	began(job: ObservedJob): void {
		this.jobs.set(job, {});
	}

	news(job: ObservedJob, info: TaskInfo): void {
		this.jobs.set(job, { ...this.jobs.get(job), info });
	}

	ended(job: ObservedJob, { failure }: EndedTask): void {
		this.jobs.set(job, { ...this.jobs.get(job), failure, isOver: true });
	}

	async end(outcomes: readonly TaskOutcome[]): Promise<void> {
		this.over.abort();
		await this.telling;
		await this.say();
		const urls = outcomes.flatMap((outcome) => (outcome.failure ? [] : shownFiles(outcome, this.redact)));
		const images = urls.slice(0, MOST_IMAGES);
		const more = urls.length > images.length ? `\n\n${urls.length - images.length} more in the output.` : '';
		if (images.length > 0) await this.stream.write(`${markdownOf(images)}${more}\n\n`);
		await this.stream.end();
	}

	private async tell(): Promise<void> {
		const { signal } = this.over;
		await this.clock.sleep(FIRST_REPORT_MS, signal);
		while (!signal.aborted) {
			await this.say();
			await this.clock.sleep(REPORT_INTERVAL_MS, signal);
		}
	}

	private async say(): Promise<void> {
		const text = progressText([...this.jobs.values()], this.taskCount);
		if (text === '' || text === this.lastText) return;
		this.lastText = text;
		await this.stream.write(`${text}\n\n`);
	}
}

export interface JobProgress {
	readonly info?: TaskInfo | undefined;
	readonly isOver?: boolean | undefined;
	readonly failure?: Failure | undefined;
}

/** The progress of a run in one line of Markdown; empty before any of the `total` jobs has begun. */
export function progressText(jobs: readonly JobProgress[], total: number): string {
	const [only] = jobs;
	if (!only) return '';
	return total === 1 ? ofOne(only) : ofMany(jobs, total);
}

function ofOne({ info, failure, isOver }: JobProgress): string {
	if (failure) return `Failed: ${escapeMarkdown(failure.message)}`;
	if (isOver) return 'Done';
	if (info?.state === 'queued') return `Queued${positionIn(info)}`;
	if (info?.state === 'generating')
		return info.progress === null ? 'Generating' : `Generating: ${info.progress}%`;
	return 'Submitted';
}

function positionIn({ position, queueSize }: TaskInfo): string {
	if (position === null) return '';
	return queueSize === null ? `, position ${position}` : `, position ${position} of ${queueSize}`;
}

function ofMany(jobs: readonly JobProgress[], total: number): string {
	const count = (isCounted: (job: JobProgress) => boolean): number => jobs.filter(isCounted).length;
	const isRunning = ({ isOver, info }: JobProgress): boolean => !isOver && !(info && isFinal(info.state));
	const others = [
		[count(({ failure }) => failure !== undefined), 'failed'],
		[count((job) => isRunning(job) && job.info?.state === 'generating'), 'generating'],
		[count((job) => isRunning(job) && job.info?.state === 'queued'), 'queued'],
	] as const;
	const done = count(({ isOver, failure }) => isOver === true && !failure);
	const parts = others.flatMap(([number, state]) => (number > 0 ? [`${number} ${state}`] : []));
	return [`${done} of ${total} tasks done`, ...parts].join(', ');
}
