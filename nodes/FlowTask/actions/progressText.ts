import type { Failure } from '../../shared/errors/failure';
import { escapeMarkdown } from '../../shared/text/markdown';
import { isFinal, type TaskInfo } from '../api/taskInfo';

/** The state of a job, as far as it is known. */
export interface JobProgress {
	readonly info?: TaskInfo | undefined;
	readonly isOver?: boolean | undefined;
	readonly failure?: Failure | undefined;
}

/**
 * The progress of a run as one line of Markdown; empty before anything has begun.
 * @param jobs those that have begun
 * @param total the number of all jobs
 */
export function progressText(jobs: readonly JobProgress[], total: number): string {
	const [only] = jobs;
	if (!only) return '';
	return total === 1 ? ofOne(only) : ofMany(jobs, total);
}

function ofOne({ info, failure, isOver }: JobProgress): string {
	if (failure) return `Failed: ${escapeMarkdown(failure.message)}`;
	if (isOver) return 'Done';
	if (info?.state === 'queued') return `Queued${placeIn(info)}`;
	if (info?.state === 'generating')
		return info.progress === null ? 'Generating' : `Generating: ${info.progress} %`;
	return 'Submitted';
}

function placeIn({ position, queueSize }: TaskInfo): string {
	if (position === null) return '';
	return queueSize === null ? `, position ${position}` : `, position ${position} of ${queueSize}`;
}

function ofMany(jobs: readonly JobProgress[], total: number): string {
	const count = (isCounted: (job: JobProgress) => boolean): number => jobs.filter(isCounted).length;
	const isRunning = ({ isOver, info }: JobProgress): boolean => !isOver && !(info && isFinal(info.state));
	const failed = count(({ failure }) => failure !== undefined);
	const generating = count((job) => isRunning(job) && job.info?.state === 'generating');
	const queued = count((job) => isRunning(job) && job.info?.state === 'queued');
	const parts = [
		`${count(({ isOver, failure }) => isOver === true && !failure)} of ${total} tasks done`,
		...(failed > 0 ? [`${failed} failed`] : []),
		...(generating > 0 ? [`${generating} generating`] : []),
		...(queued > 0 ? [`${queued} queued`] : []),
	];
	return parts.join(', ');
}
