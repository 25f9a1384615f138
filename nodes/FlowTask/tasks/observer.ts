import type { Failure } from '../../shared/errors/failure';
import type { TaskInfo } from '../api/taskInfo';
import type { TaskSnapshot } from './watchedTask';

export interface TaskFacts {
	readonly workflowId?: string | undefined;
	/** The prompt, if one was sent. */
	readonly prompt?: string | undefined;
	/** The number of the variant, from 1; left out if it is the only one of its item. */
	readonly variant?: number | undefined;
	/** Seeds that were sent: `node.parameter` -> value. */
	readonly seeds?: Readonly<Record<string, number>> | undefined;
	/** The index of the item that the task was submitted for, if that was another node run. */
	readonly item?: number | undefined;
}

/** The work on one task of an item. Jobs are identified by the object itself. */
export interface ObservedJob {
	readonly itemIndex: number;
	readonly facts?: TaskFacts;
}

/**
 * - `made`: this run has just submitted the task
 * - `existing`: it was there before: an earlier try submitted it for this item, or another execution or item did so with the
 *   same idempotency key
 * - `given`: the item names its ID, or the execution that recorded it
 */
export type TaskSource = 'made' | 'existing' | 'given';

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
