/**
 * The states of a task (§2.4, §3.1) under the names that the node's output uses.
 * `unknown` stands for a number that the interface does not define: such a task counts as not finished.
 */
export type TaskState = 'queued' | 'generating' | 'succeeded' | 'failed' | 'denied' | 'unknown';

const STATE_BY_STATUS: ReadonlyMap<number, TaskState> = new Map([
	[1, 'queued'],
	[2, 'generating'],
	[3, 'succeeded'],
	[4, 'failed'],
	[5, 'denied'],
]);

export function stateOf(status: number | null): TaskState {
	return (status === null ? undefined : STATE_BY_STATUS.get(status)) ?? 'unknown';
}

/** Whether the platform will do no more for a task in this state. */
export function isFinal(state: TaskState): boolean {
	return state === 'succeeded' || state === 'failed' || state === 'denied';
}

/** Whether a task has a place in the queue that the platform does not number: it may stand still for long. */
export function waitsUnnumbered(task: {
	readonly state: TaskState;
	readonly position: number | null;
}): boolean {
	return task.state === 'queued' && task.position === null;
}
