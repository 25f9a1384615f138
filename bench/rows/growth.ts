// Growth: 10,000 tasks in one execution, against as many bare requests, against fewer tasks, and in pieces.
import { join } from 'node:path';
import { atMost, median, none, told, type Figure } from '../figures';
import { FLOW_TASK, flowTaskFlow, promptFlow, PROMPTS, type FlowTaskRun, type Step } from '../flow';
import type { BenchPlatform } from '../platform';
import type { Row, Stage } from '../stage';
import type { RunningN8n, WorkflowDocument } from '../../test/e2e/runner';
import { baseline, growthOf, inWarmN8n, MEMORY_RUNS } from './memory';

const MANY = 10_000;
const FEW = 1_000;
const GROWTH_LIMIT = 11;
/** The memory of tasks ÷ that of bare requests of the same number. */
const REQUESTS_LIMIT = 1.15;

interface GrowthCase {
	readonly name: string;
	readonly parameters: NonNullable<FlowTaskRun['parameters']>;
	/** Numbers of tasks, run one after another in a fresh n8n; memory is measured in the first run. */
	readonly counts: readonly number[];
}

const BY_DEFAULT: GrowthCase = {
	name: 'default options',
	parameters: { options: { output: 'urls' } },
	counts: [MANY],
};
/** The node runs as fast as it can, which is harder than any real use. */
const UNLIMITED: GrowthCase = {
	name: 'no limit of requests',
	parameters: { options: { output: 'urls' }, limits: { requestsPerSecond: 0 } },
	counts: [MANY, FEW],
};

export const growth: Row = {
	name: 'growth',
	async measure(stage) {
		return await stage.withPlatform({ runners: 16, taskMs: 0 }, async (platform) => {
			const own = await baseline(stage, platform, MANY);
			const byDefault = await grow(stage, platform, BY_DEFAULT);
			const { info } = (await platform.books()).requests;
			const bare = await requestsAlone(stage, platform, info);
			const unlimited = await grow(stage, platform, UNLIMITED);
			const [many = [], few = []] = unlimited.wallMs;
			const ratios = many.map((timeMs, run) => timeMs / (few[run] ?? Number.NaN));
			return [
				told(own, `${MANY} items through Edit Fields: memory`, ' MB'),
				told(median(bare), `${MANY} bare requests by n8n's client: memory`, ' MB', bare),
				told(
					median(byDefault.megabytes),
					`${MANY} tasks, ${BY_DEFAULT.name}: memory`,
					' MB',
					byDefault.megabytes,
				),
				atMost(REQUESTS_LIMIT, median(byDefault.megabytes) / median(bare), {
					what: `${MANY} tasks, ${BY_DEFAULT.name}: memory ÷ bare requests of the same number`,
					kind: 'time',
					unit: ' ×',
					runs: byDefault.megabytes.map((used) => used / median(bare)),
				}),
				atMost(GROWTH_LIMIT, median(ratios), {
					what: `time for ${MANY} ÷ time for ${FEW}, ${UNLIMITED.name}`,
					kind: 'time',
					unit: ' ×',
					runs: ratios,
				}),
				...timesOf(BY_DEFAULT, byDefault),
				...timesOf(UNLIMITED, unlimited),
			];
		});
	},
};

interface Growth {
	readonly megabytes: readonly number[];
	/** By the counts of the case, then by run. */
	readonly wallMs: ReadonlyArray<readonly number[]>;
	/** Tasks too many or too few. */
	readonly wrong: number;
}

async function grow(stage: Stage, platform: BenchPlatform, one: GrowthCase): Promise<Growth> {
	const megabytes: number[] = [];
	const wallMs: number[][] = one.counts.map(() => []);
	let wrong = 0;
	for (let run = 1; run <= stage.times(MEMORY_RUNS); run++) {
		await inWarmN8n(stage, platform, async (n8n) => {
			const customer = await platform.customer();
			await platform.resetBooks();
			let surplus = 0;
			for (const [index, count] of one.counts.entries()) {
				const label = `growth ${one.name} ${count} ${run}`;
				const { parameters } = one;
				const flow = await flowTaskFlow({ n8n, platform, customer, count, label, parameters });
				const grown = await growthOf(n8n, flow);
				wallMs[index]?.push(grown.wallMs);
				if (index === 0) megabytes.push(grown.megabytes);
				surplus -= count;
			}
			wrong += Math.abs(surplus + (await platform.books()).tasksMade);
		});
	}
	return { megabytes, wallMs, wrong };
}

function timesOf({ name, counts }: GrowthCase, { wallMs, wrong }: Growth): Figure[] {
	const times = wallMs.map((runs, index) => {
		const seconds = runs.map((timeMs) => timeMs / 1000);
		const what = `${counts[index]} instant tasks, ${name}: wall time`;
		return told(median(seconds), what, ' s', seconds);
	});
	const what = `${counts.join(' and ')} tasks, ${name}: too many or too few`;
	return [...times, none(wrong, what)];
}

/** The memory of as many requests with the same body, by the same helper of n8n, and of items as large as the node's. */
async function requestsAlone(stage: Stage, platform: BenchPlatform, more: number): Promise<number[]> {
	const grown: number[] = [];
	for (let run = 1; run <= stage.times(MEMORY_RUNS); run++) {
		const measure = async (n8n: RunningN8n, sample: object): Promise<void> => {
			const { apiKey, workflowId } = await platform.customer();
			const url = `${platform.apiUrl}/api/maas/flow_task_api/prompt`;
			const step: Step = {
				name: 'Requests Floor',
				type: 'CUSTOM.requestsFloor',
				typeVersion: 1,
				parameters: { url, apiKey, workflowId, more, item: JSON.stringify(sample) },
			};
			grown.push((await growthOf(n8n, promptFlow(MANY, `bare requests ${run}`, [step]))).megabytes);
		};
		const floor = join(__dirname, '..', 'floor');
		await inWarmN8n(stage, platform, measure, { N8N_CUSTOM_EXTENSIONS: floor });
	}
	return grown;
}

/** A batch in pieces, one after another, in one execution: FlowTask after Loop Over Items. */
function looped(flow: WorkflowDocument, batchSize: number): WorkflowDocument {
	const loop = 'Loop Over Items';
	const to = (node: string) => [{ node, type: 'main', index: 0 }];
	return {
		...flow,
		nodes: [
			...flow.nodes,
			{
				...{ id: loop, name: loop, type: 'n8n-nodes-base.splitInBatches', typeVersion: 3 },
				position: [0, 240],
				parameters: { batchSize, options: {} },
			},
		],
		connections: {
			...flow.connections,
			[PROMPTS]: { main: [to(loop)] },
			[loop]: { main: [[], to(FLOW_TASK)] },
			[FLOW_TASK]: { main: [to(loop)] },
		},
	};
}

/** The same 10,000 tasks in three ways; what to choose stands in docs/scaling.md. */
export const pieces: Row = {
	name: 'pieces',
	async measure(stage) {
		return await stage.withPlatform({ runners: 16, taskMs: 0 }, async (platform) => {
			const flowOf = async (n8n: RunningN8n, count: number, label: string): Promise<WorkflowDocument> => {
				const customer = await platform.customer();
				const { parameters } = BY_DEFAULT;
				return await flowTaskFlow({ n8n, platform, customer, count, label, parameters });
			};
			const inPieces = Array.from({ length: MANY / FEW }, (_, piece) => piece);
			const ways: Record<string, (n8n: RunningN8n, run: number) => Promise<readonly WorkflowDocument[]>> = {
				'one execution': async (n8n, run) => [await flowOf(n8n, MANY, `whole ${run}`)],
				[`one execution, Loop Over Items by ${FEW}`]: async (n8n, run) => [
					looped(await flowOf(n8n, MANY, `looped ${run}`), FEW),
				],
				[`executions of ${FEW}`]: async (n8n, run) =>
					await Promise.all(inPieces.map(async (piece) => await flowOf(n8n, FEW, `piece ${run}.${piece}`))),
			};
			const figures: Figure[] = [];
			for (const [way, flowsOf] of Object.entries(ways)) {
				const megabytes: number[] = [];
				const seconds: number[] = [];
				let wrong = 0;
				for (let run = 1; run <= stage.times(MEMORY_RUNS); run++) {
					await inWarmN8n(stage, platform, async (n8n) => {
						await platform.resetBooks();
						const grown = await growthOf(n8n, ...(await flowsOf(n8n, run)));
						megabytes.push(grown.megabytes);
						seconds.push(grown.wallMs / 1_000);
						wrong += Math.abs((await platform.books()).tasksMade - MANY);
					});
				}
				const what = `${MANY} tasks in ${way}`;
				figures.push(told(median(megabytes), `${what}: memory`, ' MB', megabytes));
				figures.push(told(median(seconds), `${what}: wall time`, ' s', seconds));
				figures.push(none(wrong, `${what}: too many or too few`));
			}
			return figures;
		});
	},
};
