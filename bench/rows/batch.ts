// Wall time, calls and polling rules of batches in three sizes, by FlowTask alone.
import { callsIn, pollsIn, pollingFaults } from '../books';
import { atMost, median, none, sum, told, type Figure } from '../figures';
import { flowTaskFlow, runWell, type FlowRun } from '../flow';
import type { Row, Stage } from '../stage';
import type { Books } from '../../test/platform/books';

interface Size {
	readonly tasks: number;
	readonly runners: number;
	readonly taskMs: number;
	readonly limit: number;
}

const SIZES: readonly Size[] = [
	{ tasks: 200, runners: 8, taskMs: 1_000, limit: 1.05 },
	{ tasks: 200, runners: 8, taskMs: 300, limit: 1.08 },
	{ tasks: 500, runners: 32, taskMs: 1_000, limit: 1.1 },
];
const QUICK_SIZES: readonly Size[] = [{ tasks: 144, runners: 12, taskMs: 1_000, limit: 1.1 }];

const RUNS = 5;
const CALLS_A_TASK = 1.2;
const MOST_IDS = 100;
const MOST_SOCKETS = 20;

export const batch: Row = {
	name: 'batch',
	isQuick: true,
	async measure(stage) {
		const figures: Figure[] = [];
		for (const size of stage.isQuick ? QUICK_SIZES : SIZES) figures.push(...(await measureSize(stage, size)));
		return figures;
	},
};

/** Where the time of a run went. */
interface Span {
	readonly beforeMs: number;
	readonly platformMs: number;
	readonly noticedMs: number;
	readonly afterMs: number;
}

function spanOf({ startedAtMs, wallMs }: FlowRun, { tasks, polls }: Books): Span {
	const submittedMs = Math.min(...tasks.map((task) => task.submittedAtMs));
	const finishedMs = Math.max(...tasks.map((task) => task.finishedAtMs ?? Infinity));
	const polledMs = Math.max(...polls.map(({ atMs }) => atMs));
	return {
		beforeMs: submittedMs - startedAtMs,
		platformMs: finishedMs - submittedMs,
		noticedMs: polledMs - finishedMs,
		afterMs: startedAtMs + wallMs - polledMs,
	};
}

async function measureSize(stage: Stage, { tasks, runners, taskMs, limit }: Size): Promise<Figure[]> {
	const n8n = await stage.n8n();
	const ratios: number[] = [];
	const shelf: Books[] = [];
	const spans: Span[] = [];
	await stage.withPlatform({ runners, taskMs }, async (platform) => {
		const customer = await platform.customer();
		for (let run = 1; run <= stage.times(RUNS); run++) {
			await platform.resetBooks();
			const label = `batch ${tasks} ${run}`;
			const flow = await flowTaskFlow({ n8n, platform, customer, count: tasks, label });
			const flowRun = await runWell(n8n, flow);
			const books = await platform.books();
			ratios.push(flowRun.wallMs / ((tasks * taskMs) / runners));
			shelf.push(books);
			spans.push(spanOf(flowRun, books));
		}
	});
	const most = (of: (books: Books) => number): number => Math.max(...shelf.map(of));
	const all = (of: (books: Books) => number): number => sum(shelf.map(of));
	const name = `${tasks} tasks, ${runners} runners, ${taskMs / 1000} s`;
	const span = (part: keyof Span, what: string): Figure => {
		const runs = spans.map((one) => one[part]);
		return told(median(runs), `${name}: ${what}`, ' ms', runs);
	};
	return [
		atMost(limit, median(ratios), {
			...{ what: `${name}: wall time ÷ ideal`, kind: 'time', unit: ' ×', runs: ratios },
		}),
		span('beforeMs', 'start of the run to the first submit'),
		span('platformMs', 'first submit to the end of the last task'),
		span('noticedMs', 'end of the last task to the last poll'),
		span('afterMs', 'last poll to the end of the run'),
		atMost(
			CALLS_A_TASK,
			most((books) => callsIn(books) / tasks),
			{
				...{ what: `${name}: HTTP calls per task, most`, kind: 'count' },
			},
		),
		told(
			most(({ polls }) => pollsIn(polls).length),
			`${name}: polls, most`,
		),
		atMost(
			MOST_IDS,
			most(({ maxIdsInPoll }) => maxIdsInPoll),
			{ what: `${name}: IDs per poll, most`, kind: 'count' },
		),
		none(
			all(({ duplicates }) => duplicates),
			`${name}: tasks made twice`,
		),
		none(
			all(({ tasksMade, downloads }) => Math.abs(tasksMade - tasks) + Math.abs(downloads - tasks)),
			`${name}: tasks or files too many or too few`,
		),
		none(
			all((books) => pollingFaults(books).leftOut),
			`${name}: running tasks left out by a poll`,
		),
		none(
			all((books) => pollingFaults(books).wasteful),
			`${name}: polls of more than ⌈n/100⌉ calls`,
		),
		none(
			all((books) => pollingFaults(books).hasty),
			`${name}: polls within a second of the last`,
		),
		atMost(
			MOST_SOCKETS,
			most(({ sockets }) => sockets.maxOpen),
			{
				what: `${name}: sockets open at once, most`,
				kind: 'count',
			},
		),
	];
}
