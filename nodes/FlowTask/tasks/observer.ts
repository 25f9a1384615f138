import type { Failure } from '../../shared/errors/failure';
import type { TaskInfo } from '../api/taskInfo';
import type { TaskSnapshot } from './watchedTask';

/** The work of one item; the object itself is its identity. */
export interface ObservedJob {
	readonly itemIndex: number;
}

/**
 * Where a task comes from:
 *
 * - `made`: this run has just submitted it
 * - `known`: an earlier try or another execution submitted it for the same item
 * - `given`: the item names it by its ID
 */
export type TaskSource = 'made' | 'known' | 'given';

export interface BegunTask {
	readonly taskId: string;
	readonly submittedAtMs?: number | undefined;
	readonly source: TaskSource;
	/** Tells accounts apart: two may have tasks with the same ID. */
	readonly owner: string;
}

export interface EndedTask {
	readonly taskId: string | undefined;
	readonly snapshot: TaskSnapshot | undefined;
	readonly failure: Failure | undefined;
}

/** Is told of a run's tasks as they go; it must not throw, and nobody waits for it. */
export interface TaskObserver {
	/** The task of a job is known. */
	began(job: ObservedJob, task: BegunTask): void;
	/** Task info, or a socket, brought something new. */
	news(info: TaskInfo, owner: string): void;
	ended(job: ObservedJob, end: EndedTask): void;
}
