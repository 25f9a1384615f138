import type { Overrides } from '../hosting/overrides';
import type { HostedWorkflow } from '../hosting/workflow';
import type { Owner } from '../owners';
import type { JsonRecord } from '../wireJson';
import type { Execution, TaskOutput } from './execution';
import type { Outcome } from './outcome';

export const STATUS = { queued: 1, generating: 2, succeeded: 3, failed: 4, denied: 5 } as const;

/** The prefix of every task's token, by which leaked tokens are found. It must be encoded in a URL. */
export const PROMPT_TOKEN_PREFIX = 'prompt+token/';

export interface Task {
	readonly id: string;
	/** The token, which begins with `PROMPT_TOKEN_PREFIX`. */
	readonly token: string;
	readonly tokenUntilMs: number;
	readonly owner: Owner;
	readonly workflow: HostedWorkflow;
	readonly overrides: Overrides;
	/** The overrides as they were sent. */
	readonly prompt: JsonRecord;
	/** The number of the task, 1 for the first one of the platform. Tasks start in this order. */
	readonly number: number;
	readonly submittedAtMs: number;
	startedAtMs?: number;
	/** When the task ended; for a running task, when it will. */
	finishesAtMs?: number;
	status: number;
	errMsg: string;
	outcome: Outcome;
	execution?: Execution;
	/** Whether the whole answer to the submit was sent, so that the caller can know the task's ID. */
	delivered: boolean;
}

export function isFinished(task: Task): boolean {
	return task.status === STATUS.succeeded || task.status === STATUS.failed || task.status === STATUS.denied;
}

/** The share of a running task's work that is done at a time, 0 to 1, in whole sampler steps. */
function shareDone(task: Task, atMs: number): number {
	const { execution, startedAtMs, finishesAtMs } = task;
	if (execution === undefined || startedAtMs === undefined || finishesAtMs === undefined) return 0;
	if (atMs >= finishesAtMs) return 1;
	const share = (atMs - startedAtMs) / (finishesAtMs - startedAtMs);
	return Math.max(0, Math.floor(share * execution.steps) / execution.steps);
}

export function progressOf(task: Task, atMs: number): number {
	if (task.status === STATUS.succeeded) return 100;
	if (task.status === STATUS.queued || task.status === STATUS.denied) return 0;
	// A task that will fail breaks off halfway, where its progress stays.
	const end = task.outcome.kind === 'fail' ? 50 : 99;
	return Math.min(end, Math.floor(shareDone(task, atMs) * (end + 1)));
}

/** The outputs whose images exist. */
export function outputsReady(task: Task, atMs: number): readonly TaskOutput[] {
	const { execution, status } = task;
	if (execution === undefined) return [];
	if (status === STATUS.succeeded) return execution.outputs;
	if (status !== STATUS.generating) return [];
	const steps = shareDone(task, atMs) * execution.steps;
	return execution.outputs.filter(({ afterSteps }) => afterSteps < execution.steps && afterSteps <= steps);
}

/** When the next step of a running task ends; undefined if nothing more will happen. */
export function nextStepAtMs(task: Task, atMs: number): number | undefined {
	const { execution, startedAtMs, finishesAtMs } = task;
	if (task.status !== STATUS.generating || execution === undefined) return undefined;
	if (startedAtMs === undefined || finishesAtMs === undefined || atMs >= finishesAtMs) return undefined;
	const stepMs = (finishesAtMs - startedAtMs) / execution.steps;
	const done = Math.floor((atMs - startedAtMs) / stepMs + 1e-6);
	return Math.min(finishesAtMs, startedAtMs + (done + 1) * stepMs);
}
