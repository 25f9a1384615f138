// Measures what the Data Tables cost: the same batch with Record Tasks Never and Always, and the operations that n8n
// carries out for a batch.
import { atMost, median, none, told, type Figure } from '../figures';
import { flowTaskFlow, promptFlow, runWell } from '../flow';
import type { BenchPlatform } from '../platform';
import type { Row, Stage } from '../stage';
import type { RunningN8n } from '../../test/e2e/runner';
import { dataTableRows } from '../../test/e2e/databases';

const TASKS = 300;
const RUNNERS = 16;
const TASK_MS = 1_000;
const PAIRS = 5;
const MOST_RATIO = 1.03;
const TABLE = 'flow_task_runs';

/** The size of a batch whose table operations are counted; docs/scaling.md states the most that it may need. */
const COUNTED_TASKS = 1_000;
const COUNTED = [
	{ name: 'recorded by default', limits: {}, most: 40 },
	{ name: 'with idempotency keys', limits: { idempotencyKey: '={{ $json.prompt }}' }, most: 350 },
] as const;

export const record: Row = {
	name: 'record',
	async measure(stage) {
		const walls = { never: [] as number[], always: [] as number[] };
		const operations: Figure[] = [];
		const rows = await stage.withFreshN8n(async (n8n) => {
			await stage.withPlatform({ runners: RUNNERS, taskMs: TASK_MS }, async (platform) => {
				const customer = await platform.customer();
				// The two take turns, and the order alternates, so that any other load on the machine affects both.
				for (let pair = 1; pair <= stage.times(PAIRS); pair++) {
					const turns = ['never', 'always'] as const;
					for (const recordTasks of pair % 2 === 0 ? [...turns].reverse() : turns) {
						const label = `record ${recordTasks} ${pair}`;
						const parameters = { options: { expert: { recordTasks } } };
						const flow = await flowTaskFlow({ n8n, platform, customer, count: TASKS, label, parameters });
						walls[recordTasks].push((await runWell(n8n, flow)).wallMs);
					}
				}
			});
			const recorded = await dataTableRows(n8n.client, TABLE);
			operations.push(...(await countOperations(stage, n8n)));
			return recorded;
		});
		return [...figuresOf(stage, walls, rows), ...operations];
	},
};

async function countOperations(stage: Stage, n8n: RunningN8n): Promise<Figure[]> {
	return await stage.withPlatform({ runners: RUNNERS, taskMs: 100 }, async (platform) => {
		// These runs create the tables.
		for (const { name, limits } of COUNTED) await operationsOf(n8n, platform, 11, `new ${name}`, limits);
		const figures: Figure[] = [];
		for (const { name, limits, most } of COUNTED) {
			const operations = await operationsOf(n8n, platform, COUNTED_TASKS, name, limits);
			const what = `${COUNTED_TASKS} tasks ${name}: table operations`;
			figures.push(atMost(most, operations, { what, kind: 'count' }));
		}
		return figures;
	});
}

/** Counts table operations by execution IDs, because each operation is an n8n sub-execution, which uses up an ID. */
async function operationsOf(
	n8n: RunningN8n,
	platform: BenchPlatform,
	count: number,
	label: string,
	limits: Record<string, unknown>,
): Promise<number> {
	const customer = await platform.customer();
	const parameters = { options: { output: 'urls' }, limits };
	const run = await runWell(n8n, await flowTaskFlow({ n8n, platform, customer, count, label, parameters }));
	const next = await runWell(n8n, promptFlow(1, `after ${label}`, []));
	return Number(next.executionId) - Number(run.executionId) - 1;
}

function figuresOf(
	stage: Stage,
	{ never, always }: Readonly<Record<'always' | 'never', readonly number[]>>,
	rows: ReadonlyArray<Record<string, unknown>>,
): Figure[] {
	const name = `${TASKS} tasks, ${RUNNERS} runners, ${TASK_MS / 1000} s`;
	const ratios = always.map((wallMs, index) => wallMs / (never[index] ?? NaN));
	const wrong = rows.filter(({ status, finishedAt }) => status !== 'succeeded' || !finishedAt).length;
	return [
		atMost(MOST_RATIO, median(ratios), {
			...{ what: `${name}: wall time recorded ÷ not`, kind: 'time', unit: ' ×', runs: ratios },
		}),
		told(median(never) / 1_000, `${name}: wall time not recorded`, ' s'),
		none(Math.abs(rows.length - TASKS * stage.times(PAIRS)) + wrong, `${name}: rows missing or wrong`),
	];
}
