// What it costs to keep a row for each task in the Data Table: the same batch with Record Tasks Never and Always.
import { atMost, median, none, told, type Figure } from '../figures';
import { flowTaskFlow, runWell } from '../flow';
import type { Row, Stage } from '../stage';
import { dataTableRows } from '../../test/e2e/databases';

const TASKS = 300;
const RUNNERS = 16;
const TASK_MS = 1_000;
const PAIRS = 5;
const MOST_RATIO = 1.03;
const TABLE = 'flow_task_runs';

export const record: Row = {
	name: 'record',
	async measure(stage) {
		const walls = { never: [] as number[], always: [] as number[] };
		const rows = await stage.withFreshN8n(async (n8n) => {
			await stage.withPlatform({ runners: RUNNERS, taskMs: TASK_MS }, async (platform) => {
				const customer = await platform.customer();
				// They take turns, and the one that is first changes: whatever else the machine does hits both.
				for (let pair = 1; pair <= stage.times(PAIRS); pair++) {
					const turns = ['never', 'always'] as const;
					for (const recordTasks of pair % 2 === 0 ? [...turns].reverse() : turns) {
						const label = `record ${recordTasks} ${pair}`;
						const parameters = { options: { recordTasks } };
						const flow = await flowTaskFlow({ n8n, platform, customer, count: TASKS, label, parameters });
						walls[recordTasks].push((await runWell(n8n, flow)).wallMs);
					}
				}
			});
			return await dataTableRows(n8n.client, TABLE);
		});
		return figuresOf(stage, walls, rows);
	},
};

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
