// An account with a low rate limit: nothing may fail, little be refused, and the limit must be used.
import { callsIn } from '../books';
import { atMost, median, none, sum, told, type Figure } from '../figures';
import { FLOW_TASK, flowTaskFlow, runWell } from '../flow';
import type { BenchPlatform, Customer } from '../platform';
import type { Row, Stage } from '../stage';
import type { PlatformOptions } from '../../test/platform';
import type { Books } from '../../test/platform/books';
import type { RunningN8n, WorkflowDocument } from '../../test/e2e/runner';

const ON_ERROR = ['stopWorkflow', 'continueRegularOutput'] as const;
/** At one task per second, a batch takes more than two minutes. */
const TASKS = 120;
const QUICK_TASKS = 40;
const STEP_MS = 300;
const RUNNERS = 8;
const MOST_REFUSED = 0.1;
/** The limit for a short run, which spends most of its time learning the rate. */
const MOST_REFUSED_AT_FIRST = 0.15;
const LONGEST = 1.25;
/** The share of requests refused at random; a batch may then take `MOST_BY_CHANCE` times as long. */
const CHANCE = 0.1;
const MOST_BY_CHANCE = 1.4;
const PAIRS = 7;

const EXECUTIONS = 20;
const SHARED_RATE = 5;
/** How many keys learn the limit independently, as n8n processes that share an account do. */
const STRANGERS = 5;
const MOST_REFUSED_OF_STRANGERS = 0.3;
/** How much longer the slower of two executions on one key may take than the faster one. */
const MOST_UNEVEN = 1.2;

interface Pressed {
	readonly books: Books;
	readonly wallMs: readonly number[];
	/** The number of results that are not a success. */
	readonly failed: number;
}

/** A platform, and how many tasks per second it accepts from an account. */
interface Style {
	readonly name: string;
	readonly options: PlatformOptions;
	readonly rate: number;
}

const bucketsOf = (rate: number): Style[] =>
	[true, false].map((tellsRetryAfter) => ({
		name: `at ${rate} a second, ${tellsRetryAfter ? 'with' : 'without'} Retry-After`,
		options: { requestsPerSecond: rate, tellsRetryAfter },
		rate,
	}));
const slowBuckets = bucketsOf(1);
const fastBuckets = [...bucketsOf(2), ...bucketsOf(5)];

const others: readonly Style[] = [
	{
		name: 'at 2 a second in fixed windows of 1 s',
		options: { requestsPerSecond: 2, limitCounts: 'fixedWindow' },
		rate: 2,
	},
	{
		name: 'at 2 a second in sliding windows of 1 s',
		options: { requestsPerSecond: 2, limitCounts: 'slidingWindow' },
		rate: 2,
	},
	{
		name: 'at 2 a second, with a Retry-After of 5 s',
		options: { requestsPerSecond: 2, retryAfterSeconds: 5 },
		rate: 2,
	},
];

export const pressure: Row = {
	name: 'pressure',
	async measure(stage) {
		const n8n = await stage.n8n();
		const count = stage.isQuick ? QUICK_TASKS : TASKS;
		const measured: Figure[] = [];
		// The styles run in parallel, because each account has its own limit, and in rounds, because a dozen executions
		// that start at once keep n8n too busy to send requests when they are due.
		for (const styles of [slowBuckets, fastBuckets, others]) {
			const some = await Promise.all(
				styles.map(async (style) => await measureStyle(stage, n8n, style, count)),
			);
			measured.push(...some.flat());
		}
		return [
			...measured,
			...(await measureChance(stage, n8n, count)),
			...(await measurePair(stage, n8n, count / 2)),
			...(await measureStrangers(stage, n8n, count / STRANGERS)),
			...(await measureExecutions(stage, n8n)),
		];
	},
};

async function measureStyle(stage: Stage, n8n: RunningN8n, style: Style, count: number): Promise<Figure[]> {
	const options = { runners: RUNNERS, taskMs: STEP_MS, ...style.options };
	const { books, wallMs, failed } = await stage.withPlatform(options, async (platform) => {
		const runs = await Promise.all(
			ON_ERROR.map(async (onError) => {
				const label = `pressure ${style.name} ${onError}`;
				const customer = await platform.newCustomer(onError);
				return await pressed(n8n, { platform, customer, count, label, onError });
			}),
		);
		return {
			books: await platform.books(),
			wallMs: runs.map((run) => run.wallMs),
			failed: sum(runs.map((run) => run.failed)),
		} satisfies Pressed;
	});
	const name = `${count} tasks ${style.name}`;
	const longestMs = (count / style.rate) * 1_000 + STEP_MS;
	const refused = books.rateLimited / callsIn(books);
	const most = stage.isQuick ? MOST_REFUSED_AT_FIRST : MOST_REFUSED;
	return [
		none(failed + Math.abs(books.tasksMade - wallMs.length * count), `${name}: failed, or made twice`),
		atMost(most, refused, { what: `${name}: share of refused requests`, kind: 'count' }),
		atMost(LONGEST, Math.max(...wallMs) / longestMs, {
			...{ what: `${name}: wall time ÷ what the limit needs`, kind: 'time', unit: ' ×' },
			runs: wallMs.map((ms) => ms / longestMs),
		}),
	];
}

/** Compares a batch with refusals that say nothing about a limit with the same batch without any; the two take turns. */
async function measureChance(stage: Stage, n8n: RunningN8n, count: number): Promise<Figure[]> {
	const walls = { without: [] as number[], with: [] as number[] };
	const options = { runners: RUNNERS, taskMs: STEP_MS, tellsRetryAfter: false };
	const failed = await stage.withPlatform(options, async (platform) => {
		let failures = 0;
		for (let pair = 1; pair <= stage.times(PAIRS); pair++) {
			// What one pair has learned about its key must not speed up or slow down the next one.
			const customer = await platform.newCustomer(`chance ${pair}`);
			for (const chance of ['without', 'with'] as const) {
				await (chance === 'with' ? platform.refuseSomeRequests(CHANCE) : platform.failNone());
				const label = `pressure ${chance} chance ${pair}`;
				const run = await pressed(n8n, { platform, customer, count, label, onError: 'stopWorkflow' });
				walls[chance].push(run.wallMs);
				failures += run.failed;
			}
		}
		return failures;
	});
	const name = `${count} tasks with ${CHANCE * 100} % of requests refused at random`;
	const ratio = median(walls.with) / median(walls.without);
	return [
		none(failed, `${name}: failed`),
		atMost(MOST_BY_CHANCE, ratio, {
			...{ what: `${name}: wall time ÷ without refusals`, kind: 'time', unit: ' ×' },
			runs: walls.with.map((ms) => ms / median(walls.without)),
		}),
	];
}

/** Measures two executions of one account at the same time. */
async function measurePair(stage: Stage, n8n: RunningN8n, count: number): Promise<Figure[]> {
	const { wallMs } = await pressedTogether(stage, n8n, { name: 'pair', options: {}, runs: 2, count });
	const what = `2 executions at once on one account, ${SHARED_RATE} a second: the slower ÷ the faster`;
	return [atMost(MOST_UNEVEN, Math.max(...wallMs) / Math.min(...wallMs), { what, kind: 'time', unit: ' ×' })];
}

/** Measures keys of one account, none of which learns what the others were refused. */
async function measureStrangers(stage: Stage, n8n: RunningN8n, count: number): Promise<Figure[]> {
	const { books, failed } = await pressedTogether(stage, n8n, {
		...{ name: 'strangers', options: { limitIsShared: true }, runs: STRANGERS, count },
		ownKeys: true,
	});
	const name = `${STRANGERS} keys of one account, ${SHARED_RATE} a second in all`;
	const refused = books.rateLimited / callsIn(books);
	const what = `${name}: share of refused requests`;
	return [
		none(failed, `${name}: tasks failed`),
		stage.isQuick ? told(refused, what) : atMost(MOST_REFUSED_OF_STRANGERS, refused, { what, kind: 'count' }),
	];
}

interface Together {
	readonly name: string;
	readonly options: PlatformOptions;
	readonly runs: number;
	/** The number of tasks of each run. */
	readonly count: number;
	readonly ownKeys?: boolean;
}

async function pressedTogether(
	stage: Stage,
	n8n: RunningN8n,
	{ name, options, runs, count, ownKeys }: Together,
): Promise<Pressed> {
	const limits = { runners: RUNNERS, taskMs: STEP_MS, requestsPerSecond: SHARED_RATE, ...options };
	return await stage.withPlatform(limits, async (platform) => {
		const shared = await platform.customer();
		const ended = await Promise.all(
			Array.from({ length: runs }, async (_, index) => {
				const label = `pressure ${name} ${index}`;
				const customer = ownKeys ? await platform.newCustomer(label) : shared;
				return await pressed(n8n, { platform, customer, count, label, onError: 'stopWorkflow' });
			}),
		);
		return {
			books: await platform.books(),
			wallMs: ended.map(({ wallMs }) => wallMs),
			failed: sum(ended.map(({ failed }) => failed)),
		};
	});
}

interface Press {
	readonly platform: BenchPlatform;
	readonly customer: Customer;
	readonly count: number;
	readonly label: string;
	readonly onError: (typeof ON_ERROR)[number];
}

async function pressed(
	n8n: RunningN8n,
	{ onError, ...run }: Press,
): Promise<{ wallMs: number; failed: number }> {
	const flow = await flowTaskFlow({ n8n, ...run });
	const { wallMs, executionId } = await runWell(n8n, withOnError(flow, onError));
	const { runData } = (await n8n.client.getExecution(executionId)).data?.resultData ?? {};
	const items = runData?.[FLOW_TASK]?.[0]?.data?.main?.[0];
	const done = items?.filter(({ json }) => json.status === 'succeeded').length ?? 0;
	return { wallMs, failed: run.count - done };
}

function withOnError(flow: WorkflowDocument, onError: string): WorkflowDocument {
	const nodes = flow.nodes.map((node) => (node.name === FLOW_TASK ? { ...node, onError } : node));
	return { ...flow, nodes };
}

async function measureExecutions(stage: Stage, n8n: RunningN8n): Promise<Figure[]> {
	const count = (stage.isQuick ? QUICK_TASKS : TASKS) / EXECUTIONS;
	const { books, wallMs, failed } = await pressedTogether(stage, n8n, {
		...{ name: 'shared', options: {}, runs: EXECUTIONS, count },
	});
	const name = `${EXECUTIONS} executions at once on one account, ${SHARED_RATE} a second`;
	return [
		none(failed, `${name}: tasks failed`),
		told(books.rateLimited / callsIn(books), `${name}: share of refused requests`),
		told(median(wallMs.map((ms) => ms / 1_000)), `${name}: wall time, median`, ' s'),
	];
}
