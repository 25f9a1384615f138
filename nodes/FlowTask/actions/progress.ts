import type { IExecuteFunctions } from 'n8n-workflow';

import type { Clock } from '../../shared/run/clock';
import { openRunStream, type ChatStream } from '../../shared/run/chatStream';
import type { Redact } from '../../shared/text/redact';
import type { TaskOutcome } from '../tasks/engine';
import type { EndedTask, ObservedJob, TaskObserver } from '../tasks/observer';
import { markdownOf, shownFiles } from '../tasks/describeTask';
import { progressText, type JobProgress } from './progressText';
import type { TaskInfo } from '../api/taskInfo';
import type { NodeRun } from './run';

/** When a run reports for the first time, and how often after that. */
const FIRST_WORD_MS = 1_000;
const BETWEEN_WORDS_MS = 5_000;
/** More would flood the chat. */
const MOST_IMAGES = 20;

/** Reports progress in the chat or the webhook response, if the option is set and n8n streams. */
export function openProgress(
	context: IExecuteFunctions,
	{ options, clock, redact }: NodeRun,
	taskCount: number,
): ProgressTeller | undefined {
	const stream = options.streamProgress && taskCount > 0 ? openRunStream(context, redact) : undefined;
	return stream && new ProgressTeller(stream, taskCount, clock, redact);
}

export class ProgressTeller implements TaskObserver {
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

	/** Reports the end of the run, and shows its images. */
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
		await this.clock.sleep(FIRST_WORD_MS, signal);
		while (!signal.aborted) {
			await this.say();
			await this.clock.sleep(BETWEEN_WORDS_MS, signal);
		}
	}

	private async say(): Promise<void> {
		const text = progressText([...this.jobs.values()], this.taskCount);
		if (text === '' || text === this.lastText) return;
		this.lastText = text;
		await this.stream.write(`${text}\n\n`);
	}
}
