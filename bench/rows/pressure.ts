// An account with a narrow limit: nothing fails, little is refused, and the limit is used.
import { callsIn } from '../books';
import { atMost, median, none, sum, told, type Figure } from '../figures';
import { FLOW_TASK, flowTaskFlow, runWell } from '../flow';
import type { BenchPlatform, Customer } from '../platform';
import type { Row, Stage } from '../stage';
import type { Books } from '../../test/platform/books';
import type { RunningN8n, WorkflowDocument } from '../../test/e2e/runner';

const RATES = [1, 2, 5];
const ON_ERROR = ['stopWorkflow', 'continueRegularOutput'] as const;
const TASKS = 200;
const QUICK_TASKS = 40;
const STEP_MS = 300;
const RUNNERS = 8;
const MOST_REFUSED = 0.15;
const LONGEST = 1.3;

const EXECUTIONS = 20;
const SHARED_RATE = 5;

interface Pressed {
	readonly books: Books;
	readonly wallMs: readonly number[];
	/** Results that are no success. */
	readonly failed: number;
}

export const pressure: Row = {
	name: 'pressure',
	async measure(stage) {
		const n8n = await stage.n8n();
		const count = stage.isQuick ? QUICK_TASKS : TASKS;
		const styles = RATES.flatMap((rate) =>
			[true, false].map((tellsRetryAfter) => ({ rate, tellsRetryAfter })),
		);
		// Beside each other: each account has its own limit, and all of them together ask 16 times a second.
		const batches = await Promise.all(
			styles.map(async (style) => await measureRate(stage, n8n, { ...style, count })),
		);
		return [...batches.flat(), ...(await measureExecutions(stage, n8n))];
	},
};

interface Style {
	readonly rate: number;
	readonly tellsRetryAfter: boolean;
	readonly count: number;
}

async function measureRate(stage: Stage, n8n: RunningN8n, style: Style): Promise<Figure[]> {
	const { rate, tellsRetryAfter, count } = style;
	const options = { runners: RUNNERS, taskMs: STEP_MS, requestsPerSecond: rate, tellsRetryAfter };
	const { books, wallMs, failed } = await stage.withPlatform(options, async (platform) => {
		const runs = await Promise.all(
			ON_ERROR.map(async (onError) => {
				const label = `pressure ${rate} ${tellsRetryAfter} ${onError}`;
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
	const name = `${count} tasks at ${rate} a second, ${tellsRetryAfter ? 'with' : 'without'} Retry-After`;
	const longestMs = (count / rate) * 1_000 + STEP_MS;
	return [
		none(failed + Math.abs(books.tasksMade - ON_ERROR.length * count), `${name}: failed, or made twice`),
		atMost(MOST_REFUSED, books.rateLimited / callsIn(books), {
			...{ what: `${name}: share of refused requests`, kind: 'count' },
		}),
		atMost(LONGEST, Math.max(...wallMs) / longestMs, {
			...{ what: `${name}: wall time ÷ what the limit needs`, kind: 'time', unit: ' ×' },
			runs: wallMs.map((ms) => ms / longestMs),
		}),
	];
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
	const options = { runners: RUNNERS, taskMs: STEP_MS, requestsPerSecond: SHARED_RATE };
	return await stage.withPlatform(options, async (platform) => {
		const customer = await platform.customer();
		const runs = await Promise.all(
			Array.from({ length: EXECUTIONS }, async (_, index) => {
				const label = `pressure shared ${index}`;
				return await pressed(n8n, { platform, customer, count, label, onError: 'stopWorkflow' });
			}),
		);
		const books = await platform.books();
		const name = `${EXECUTIONS} executions at once on one account, ${SHARED_RATE} a second`;
		return [
			none(sum(runs.map(({ failed }) => failed)), `${name}: tasks failed`),
			told(books.rateLimited / callsIn(books), `${name}: share of refused requests`),
			told(median(runs.map(({ wallMs }) => wallMs / 1_000)), `${name}: wall time, median`, ' s'),
		];
	});
}
