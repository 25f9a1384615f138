import { randomBytes, randomUUID } from 'node:crypto';
import type { Agenda } from '../agenda';
import type { Overrides } from '../hosting/overrides';
import type { HostedWorkflow } from '../hosting/workflow';
import type { Owner } from '../owners';
import type { JsonRecord } from '../wireJson';
import type { Artist } from './artist';
import { executeGraph } from './execution';
import type { ImageExists } from './execution';
import { wishesIn } from './outcome';
import type { Outcome } from './outcome';
import { isFinished, PROMPT_TOKEN_PREFIX, STATUS } from './task';
import type { Task } from './task';

/** How long a prompt token is valid (§8). */
const TOKEN_MS = 24 * 60 * 60 * 1000;
const STEP_MS = 5;

export interface DeskOptions {
	readonly runners: number;
	/** The run time of every task; undefined: by its steps. */
	readonly taskMs: number | undefined;
}

export interface Submission {
	readonly owner: Owner;
	readonly workflow: HostedWorkflow;
	readonly overrides: Overrides;
	readonly prompt: JsonRecord;
	/** The outcome, which takes precedence over that of the prompt and the graph. */
	readonly outcome?: Outcome;
}

export interface DeskEvents {
	/** Called before anything else happens to the task, which may end within its submit. */
	made(task: Task): void;
	/** Called when the queue has moved or a task has changed its state. */
	changed(): void;
	finished(task: Task): void;
}

/**
 * The queue and its runners. Start and end are planned times: a runner starts the next task at the very time at which its
 * last one ended, however late the timer or a busy process is.
 */
export class TaskDesk {
	readonly #tasks = new Map<string, Task>();
	readonly #byToken = new Map<string, Task>();
	#waiting: Task[] = [];
	#head = 0;
	#idle: number;
	#submitted = 0;

	constructor(
		private readonly options: DeskOptions,
		private readonly agenda: Agenda,
		private readonly artist: Artist,
		private readonly imageExists: ImageExists,
		private readonly events: DeskEvents,
	) {
		this.#idle = options.runners;
	}

	submit(submission: Submission): Task {
		// Tasks that have ended are handled first, so that an idle runner starts the new task at once.
		this.agenda.advance();
		const now = this.agenda.now();
		const task: Task = {
			id: randomUUID(),
			token: PROMPT_TOKEN_PREFIX + randomBytes(24).toString('base64'),
			tokenUntilMs: now + TOKEN_MS,
			owner: submission.owner,
			workflow: submission.workflow,
			overrides: submission.overrides,
			prompt: submission.prompt,
			number: ++this.#submitted,
			submittedAtMs: now,
			status: STATUS.queued,
			errMsg: '',
			outcome: submission.outcome ?? { kind: 'succeed' },
			delivered: false,
		};
		this.#tasks.set(task.id, task);
		this.#byToken.set(task.token, task);
		this.#waiting.push(task);
		this.events.made(task);
		this.#startWaiting(now);
		this.agenda.advance();
		this.events.changed();
		return task;
	}

	find(taskId: string): Task | undefined {
		return this.#tasks.get(taskId);
	}

	withToken(token: string): Task | undefined {
		const task = this.#byToken.get(token);
		return task !== undefined && task.tokenUntilMs > this.agenda.now() ? task : undefined;
	}

	queueSize(): number {
		return this.#waiting.length - this.#head;
	}

	/** The position of a task in the queue: 1 for the next one to start, 0 for a task that is no longer waiting. */
	positionOf(task: Task): number {
		const next = this.#waiting[this.#head];
		return task.status === STATUS.queued && next !== undefined ? task.number - next.number + 1 : 0;
	}

	#startWaiting(atMs: number): void {
		while (this.#idle > 0) {
			const task = this.#waiting[this.#head];
			if (task === undefined) return;
			this.#head++;
			if (this.#head > 1000 && this.#head * 2 > this.#waiting.length) {
				this.#waiting = this.#waiting.slice(this.#head);
				this.#head = 0;
			}
			this.#start(task, atMs);
		}
	}

	#start(task: Task, atMs: number): void {
		const execution = executeGraph(task.workflow, task.owner, task.overrides, this.imageExists);
		const wishes = wishesIn(execution.texts);
		task.execution = execution;
		task.startedAtMs = atMs;
		if (task.outcome.kind === 'succeed') task.outcome = wishes.outcome ?? task.outcome;
		if (execution.failure !== undefined) task.outcome = { kind: 'fail', errMsg: execution.failure };
		if (task.outcome.kind === 'deny') this.#end(task, atMs, STATUS.denied, task.outcome.errMsg);
		else this.#run(task, atMs, wishes.runMs ?? this.options.taskMs ?? execution.steps * STEP_MS);
	}

	#run(task: Task, atMs: number, runMs: number): void {
		this.#idle--;
		task.status = STATUS.generating;
		task.finishesAtMs = atMs + runMs;
		for (const { images } of task.execution?.outputs ?? []) {
			for (const image of images) this.artist.drawAhead(image);
		}
		this.agenda.at(task.finishesAtMs, (endMs) => {
			this.#idle++;
			const { outcome } = task;
			if (outcome.kind === 'fail') this.#end(task, endMs, STATUS.failed, outcome.errMsg);
			else if (outcome.kind === 'succeed') this.#end(task, endMs, STATUS.succeeded, '');
			this.#startWaiting(endMs);
			this.events.changed();
		});
		this.events.changed();
	}

	#end(task: Task, atMs: number, status: number, errMsg: string): void {
		task.status = status;
		task.errMsg = errMsg;
		task.finishesAtMs = atMs;
		if (isFinished(task)) this.events.finished(task);
	}
}
