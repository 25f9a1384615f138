// Measures how long a finished task waits to be noticed: the platform's clock against the item's `timing.finishedAt`.
import { pollsIn } from '../books';
import { atMost, median, told, type Figure } from '../figures';
import { FLOW_TASK, flowTaskFlow, runWell } from '../flow';
import type { Row, Stage } from '../stage';
import { outputItems } from '../../test/e2e/runner';
import type { BenchPlatform, Customer } from '../platform';

/** With up to this many tasks, a socket's message is followed by a poll at once. */
const MOST_TASKS = 4;
/** A duration that makes a task end neither at a poll nor together with another task. */
const TASK_MS = 1_730;
const RUNS = 5;

const WITH_SOCKET_MS = 60;
const INTERVALS_WITHOUT = 1.2;

interface Waits {
	readonly latenciesMs: readonly number[];
	readonly intervalsMs: readonly number[];
}

export const latency: Row = {
	name: 'latency',
	async measure(stage) {
		return await stage.withPlatform({ runners: MOST_TASKS, taskMs: TASK_MS }, async (platform) => {
			const customer = await platform.customer();
			const sockets = await waitsOf(stage, platform, customer, 'auto');
			const polling = await waitsOf(stage, platform, customer, 'polling');
			return [...withSockets(sockets), ...withoutSockets(polling)];
		});
	},
};

/** Measures runs of 1, 2, 3 and 4 tasks. */
async function waitsOf(
	stage: Stage,
	platform: BenchPlatform,
	customer: Customer,
	progressChannel: 'auto' | 'polling',
): Promise<Waits> {
	const n8n = await stage.n8n();
	const latenciesMs: number[] = [];
	const intervalsMs: number[] = [];
	for (let run = 1; run <= stage.times(RUNS); run++) {
		for (let count = 1; count <= MOST_TASKS; count++) {
			await platform.resetBooks();
			const label = `latency ${progressChannel} ${run} ${count}`;
			const parameters = { options: { output: 'urls', simplify: false }, limits: { progressChannel } };
			const flow = await flowTaskFlow({ n8n, platform, customer, count, label, parameters });
			const { executionId } = await runWell(n8n, flow);
			const { tasks, polls } = await platform.books();
			const times = pollsIn(polls).map(({ atMs }) => atMs);
			intervalsMs.push(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? Number.NaN)));
			const ends = new Map(tasks.map(({ taskId, finishedAtMs }) => [taskId, finishedAtMs ?? Number.NaN]));
			for (const { json } of outputItems(await n8n.client.getExecution(executionId), FLOW_TASK)) {
				const seenAt: unknown = Reflect.get(Object(json.timing), 'finishedAt');
				latenciesMs.push(Date.parse(String(seenAt)) - (ends.get(String(json.taskId)) ?? Number.NaN));
			}
		}
	}
	return { latenciesMs, intervalsMs };
}

function withSockets({ latenciesMs }: Waits): Figure[] {
	return [
		atMost(WITH_SOCKET_MS, median(latenciesMs), {
			what: `"succeeded" to the item, up to ${MOST_TASKS} tasks with sockets: median of ${latenciesMs.length}`,
			...{ kind: 'time', unit: ' ms', runs: latenciesMs },
		}),
		told(Math.max(...latenciesMs), '"succeeded" to the item with sockets: longest', ' ms'),
	];
}

function withoutSockets({ latenciesMs, intervalsMs }: Waits): Figure[] {
	const intervalMs = median(intervalsMs);
	return [
		told(intervalMs, 'polling interval without sockets: median', ' ms'),
		told(median(latenciesMs), '"succeeded" to the item without sockets: median', ' ms', latenciesMs),
		atMost(INTERVALS_WITHOUT, median(latenciesMs) / intervalMs, {
			...{ what: 'the same ÷ polling interval', kind: 'time', unit: ' ×' },
		}),
	];
}
