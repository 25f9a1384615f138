import type { Failure } from '../../shared/errors/failure';
import type { TaskInfo } from '../api/taskInfo';
import type { TaskSnapshot } from './watchedTask';

export interface TaskFacts {
	readonly workflowId?: string | undefined;
	/** The image's prompt, if it was sent. */
	readonly prompt?: string | undefined;
	/** Which of the item's images it is, counted from 1; left out if the item makes only one. */
	readonly variant?: number | undefined;
}

/** The work on one task of an item. Jobs are identified by the object itself. */
export interface ObservedJob {
	readonly itemIndex: number;
	readonly facts?: TaskFacts;
}

/**
 * Where a task comes from:
 *
 * - `made`: this run has just submitted it
 * - `known`: it existed before: an earlier try submitted it for this item, or another execution or item did so with the
 *   same idempotency key
 * - `given`: the item names it by its ID
 */
export type TaskSource = 'made' | 'known' | 'given';

export interface BegunTask {
	readonly taskId: string;
	readonly submittedAtMs?: number | undefined;
	readonly source: TaskSource;
}

export interface EndedTask {
	readonly taskId: string | undefined;
	readonly snapshot: TaskSnapshot | undefined;
	readonly failure: Failure | undefined;
}

/** Notified of the progress of a run's tasks. Must not throw; the engine does not wait for it. */
export interface TaskObserver {
	began(job: ObservedJob, task: BegunTask): void;
	/** Called when a poll or a socket brings something new. */
	news(job: ObservedJob, info: TaskInfo): void;
	ended(job: ObservedJob, end: EndedTask): void;
}
