// Counts what many workers ask of the platform and of the tables: 100 executions with 1,000 tasks each, in virtual time.
import { TaskRecorder } from '../../nodes/FlowTask/taskLog/taskRecorder';
import {
	runTasks,
	type EngineSettings,
	type TaskClient,
	type TaskJob,
	type TaskOutcome,
} from '../../nodes/FlowTask/tasks/engine';
import { DayCounts } from '../../nodes/shared/effects/dayCounts';
import { badInput, fail, ok } from '../../nodes/shared/errors/failure';
import type { Lane } from '../../nodes/shared/retry/adaptiveRate';
import { Retry } from '../../nodes/shared/retry/retry';
import { redactor } from '../../nodes/shared/text/redact';
import { LINKS_ONLY, taskInfo } from '../../test/unit/FlowTask/taskInfo.builder';
import { MemoryTable } from '../../test/unit/shared/memoryTable';
import { TestClock } from '../../test/unit/testClock';
import { none, sum, told, type Figure } from '../figures';
import type { Row } from '../stage';

const EXECUTIONS = 100;
const TASKS = 1_000;
const TASK_MS = 20_000;
/** With this many, all tasks are done after 1,000 s. */
const RUNNERS = 2_000;
const IDEAL_MS = (EXECUTIONS * TASKS * TASK_MS) / RUNNERS;
const CALL_MS = 200;
/** The executions begin one after the other within this time. */
const BEGIN_WITHIN_MS = 60_000;
/** The setting of each execution; 0 = no limit. */
const REQUESTS_PER_SECOND = [0, 1] as const;
/** The node's default. */
const CONCURRENCY = 10;

/** The node's defaults. */
const ENGINE: Omit<EngineSettings, 'deadlineMs'> = {
	goal: 'finished',
	maxInFlight: 500,
	maxFailures: 0,
	stopAtFailure: false,
	lateIsFailure: true,
	noProgressMs: 0,
	urlExpireSeconds: 3_600,
};
const TIMEOUT_MS = 3_600_000;

/** A platform whose runners take the tasks of all executions in the order of their arrival. */
class SharedPlatform {
	/** When each call was sent. */
	readonly submitsMs: number[] = [];
	readonly pollsMs: number[] = [];
	private readonly startsMs: number[] = [];

	constructor(private readonly clock: TestClock) {}

	client(retry: Retry): TaskClient {
		return {
			api: {
				submit: async () => {
					await this.call(retry, 'work', this.submitsMs);
					return ok({ taskId: this.begin(), promptToken: undefined });
				},
				info: async (ids) => {
					await this.call(retry, 'watch', this.pollsMs);
					return ok(ids.map((id) => this.infoOf(id)));
				},
				upload: async () => fail({ ...badInput('No task has an image', ''), passing: false }),
			},
			mayFetch: () => true,
		};
	}

	private async call(retry: Retry, lane: Lane, sentMs: number[]): Promise<void> {
		await retry.run({ repeatability: 'read', lane, tries: 1, endByMs: Infinity }, async () => {
			sentMs.push(this.clock.elapsedMs);
			await this.clock.sleep(CALL_MS);
			return { kind: 'answered', data: undefined };
		});
	}

	private begin(): string {
		const number = this.startsMs.length;
		const freeMs = (this.startsMs[number - RUNNERS] ?? -Infinity) + TASK_MS;
		this.startsMs.push(Math.max(this.clock.now(), freeMs));
		return String(number);
	}

	private infoOf(id: string): ReturnType<typeof taskInfo> {
		const share = (this.clock.now() - (this.startsMs[Number(id)] ?? Infinity)) / TASK_MS;
		if (share >= 1) return taskInfo(id, { status: 3, progress_num: 100 });
		if (share < 0) return taskInfo(id, { status: 1, current_position: 1 });
		return taskInfo(id, { status: 2, progress_num: Math.floor(share * 100) });
	}
}

class Fleet {
	readonly clock = new TestClock();
	readonly platform = new SharedPlatform(this.clock);
	/** Executions read and change only rows of their own. */
	readonly tables = Array.from({ length: EXECUTIONS }, () => new MemoryTable(this.clock));

	constructor(private readonly requestsPerSecond: number) {}

	async run(): Promise<TaskOutcome[]> {
		const executions = this.tables.map(async (table, index) => await this.execute(table, index));
		return (await this.clock.run(Promise.all(executions))).flat();
	}

	private async execute(table: MemoryTable, index: number): Promise<TaskOutcome[]> {
		const { clock, platform, requestsPerSecond } = this;
		await clock.sleep((index / EXECUTIONS) * BEGIN_WITHIN_MS);
		const runId = `run ${index}`;
		const redact = redactor([]);
		const place = { executionId: runId, workflow: 'Shop', workflowId: 'w', node: 'Flow Task', nodeId: 'n' };
		const recorder = new TaskRecorder(
			{ ...place, timeZone: 'UTC', runId, mostPerDay: 0 },
			{ table: table.open(), clock, redact, counts: new DayCounts() },
		);
		const ending = new AbortController();
		const frame = { clock, signal: ending.signal };
		const limits = { requestsPerSecond, concurrency: CONCURRENCY };
		const client = platform.client(new Retry(limits, frame, Math.random));
		const engine = { ...ENGINE, deadlineMs: clock.now() + TIMEOUT_MS };
		const outcomes = await runTasks(jobs(), engine, {
			client,
			clock,
			redact,
			download: async () => fail({ kind: 'file', message: 'No task has a file', advice: '', expired: false }),
			observers: [recorder],
			book: recorder,
			ending,
		});
		await recorder.flush();
		return outcomes;
	}
}

function jobs(): TaskJob[] {
	return Array.from({ length: TASKS }, (_, itemIndex) => ({
		itemIndex,
		facts: {},
		delivery: LINKS_ONLY,
		start: { kind: 'submit', workflowId: 'w', prompt: {}, images: [] },
	}));
}

function mostInASecond(timesMs: readonly number[]): number {
	const seconds = Map.groupBy(timesMs, (ms) => Math.floor(ms / 1_000));
	return Math.max(...[...seconds.values()].map(({ length }) => length));
}

async function figuresOf(requestsPerSecond: number): Promise<Figure[]> {
	const fleet = new Fleet(requestsPerSecond);
	const outcomes = await fleet.run();
	const { clock, platform, tables } = fleet;
	const { submitsMs, pollsMs } = platform;
	const name = requestsPerSecond > 0 ? `${requestsPerSecond} request a second each` : 'no limit of requests';
	return [
		told(clock.elapsedMs / IDEAL_MS, `${name}: wall time ÷ ideal`),
		told(mostInASecond([...submitsMs, ...pollsMs]), `${name}: most requests in a second`),
		told(pollsMs.length / (clock.elapsedMs / 60_000), `${name}: polls per minute`),
		told(
			sum(tables.map(({ calls }) => calls.length)) / EXECUTIONS,
			`${name}: table operations per execution`,
		),
		told(sum(tables.map((table) => table.all().length)), `${name}: rows of flow_task_runs`),
		none(outcomes.filter(({ failure }) => failure).length, `${name}: failed tasks`),
		none(outcomes.length - EXECUTIONS * TASKS, `${name}: tasks without an outcome`),
	];
}

export const fleet: Row = {
	name: 'fleet',
	async measure() {
		const figures: Figure[] = [];
		for (const limit of REQUESTS_PER_SECOND) figures.push(...(await figuresOf(limit)));
		return figures;
	},
};
