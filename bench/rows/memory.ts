// Memory and growth: 200 large files, 10,000 tasks, and how time grows with their number.
import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, median, none, told, type Figure } from '../figures';
import { FLOW_TASK, flowTaskFlow, promptFlow, runWell, type Step } from '../flow';
import { INSPECTED, Inspector } from '../inspector';
import { forgetPeak, MB, memoryOf } from '../processMeter';
import type { Row, Stage } from '../stage';
import { outputItems, type RunningN8n, type WorkflowDocument } from '../../test/e2e/runner';
import type { BenchPlatform } from '../platform';

const FILES = 200;
const FILE_MB = 10;
const FILES_MB_LIMIT = 150;

const MANY = 10_000;
const FEW = 1_000;
const TASKS_MB_LIMIT = 300;
const GROWTH_LIMIT = 11;

const RUNS = 5;
/** Three runs are enough: each measures a fresh n8n, so memory varies little. */
const MEMORY_RUNS = 3;
const SETTLE_MS = 1_000;

interface GrowthCase {
	readonly name: string;
	readonly parameters: Record<string, unknown>;
	readonly runs: number;
	/** The limit above what the same items through Edit Fields take. */
	readonly limitMb?: number;
}

const GROWTH_CASES: readonly GrowthCase[] = [
	{ name: 'default options', parameters: { output: 'urls' }, runs: MEMORY_RUNS, limitMb: TASKS_MB_LIMIT },
	// The node runs as fast as it can, which is harder than any real use.
	{
		name: 'no limit of requests',
		parameters: { output: 'urls', limits: { requestsPerSecond: 0 } },
		runs: RUNS,
	},
];

/** Starts a fresh n8n and uses every part once, so that loading and compiling do not count. */
export async function inWarmN8n<T>(
	stage: Stage,
	platform: BenchPlatform,
	work: (n8n: RunningN8n, sample: object) => Promise<T>,
): Promise<T> {
	return await stage.withFreshN8n(async (n8n) => {
		const customer = await platform.customer();
		const flow = await flowTaskFlow({ n8n, platform, customer, count: 10, label: 'warm-up' });
		const { executionId } = await runWell(n8n, flow);
		const [item] = outputItems(await n8n.client.getExecution(executionId), FLOW_TASK);
		const sample = item?.json ?? {};
		await runWell(n8n, promptFlow(10, 'warm-up', [editFields(sample)]));
		return await work(n8n, sample);
	}, INSPECTED);
}

/** @returns by how many MB the peak exceeds the idle level, and the run's time */
export async function growthOf(
	n8n: RunningN8n,
	flow: WorkflowDocument,
): Promise<{ megabytes: number; wallMs: number; executionId: string }> {
	const inspector = await Inspector.of(n8n);
	await inspector.collectGarbage();
	inspector.close();
	await sleep(SETTLE_MS);
	const idle = memoryOf(n8n.pid).nowBytes;
	forgetPeak(n8n.pid);
	const { wallMs, executionId } = await runWell(n8n, flow);
	return { megabytes: (memoryOf(n8n.pid).peakBytes - idle) / MB, wallMs, executionId };
}

/** A step that outputs items as large as FlowTask's own, to measure what they cost n8n itself. */
function editFields(sample: object): Step {
	return {
		name: 'Edit Fields',
		type: 'n8n-nodes-base.set',
		typeVersion: 3.4,
		parameters: {
			mode: 'raw',
			// The sample is a text in which no brace ends the expression.
			jsonOutput: `={{ Object.assign(JSON.parse(${JSON.stringify(JSON.stringify(sample)).replaceAll('}}', '} }')}), { "prompt": $json.prompt }) }}`,
			options: {},
		},
	};
}

async function baseline(stage: Stage, platform: BenchPlatform, count: number): Promise<number> {
	const grown: number[] = [];
	for (let run = 1; run <= stage.times(MEMORY_RUNS); run++) {
		const { megabytes } = await inWarmN8n(stage, platform, async (n8n, sample) => {
			return await growthOf(n8n, promptFlow(count, `edit fields ${run}`, [editFields(sample)]));
		});
		grown.push(megabytes);
	}
	return median(grown);
}

export const files: Row = {
	name: 'files',
	async measure(stage) {
		const options = { runners: 16, taskMs: 0, fileBytes: FILE_MB * MB };
		return await stage.withPlatform(options, async (platform) => {
			const own = await baseline(stage, platform, FILES);
			const grown: number[] = [];
			let lost = 0;
			for (let run = 1; run <= stage.times(MEMORY_RUNS); run++) {
				await inWarmN8n(stage, platform, async (n8n) => {
					const customer = await platform.customer();
					await platform.resetBooks();
					const label = `files ${run}`;
					const flow = await flowTaskFlow({ n8n, platform, customer, count: FILES, label });
					grown.push((await growthOf(n8n, flow)).megabytes - own);
					lost += FILES - (await platform.books()).downloads;
				});
			}
			return [
				told(own, `${FILES} items through Edit Fields: memory`, ' MB'),
				atMost(FILES_MB_LIMIT, median(grown), {
					...{ what: `${FILES} files of ${FILE_MB} MB: memory above that`, kind: 'time', unit: ' MB' },
					runs: grown,
				}),
				none(lost, `${FILES} files of ${FILE_MB} MB: files too few`),
			];
		});
	},
};

export const growth: Row = {
	name: 'growth',
	async measure(stage) {
		return await stage.withPlatform({ runners: 16, taskMs: 0 }, async (platform) => {
			const own = await baseline(stage, platform, MANY);
			const figures = [told(own, `${MANY} items through Edit Fields: memory`, ' MB')];
			for (const one of GROWTH_CASES) figures.push(...(await grow(stage, platform, one, own)));
			return figures;
		});
	},
};

async function grow(stage: Stage, platform: BenchPlatform, one: GrowthCase, own: number): Promise<Figure[]> {
	const manyMs: number[] = [];
	const fewMs: number[] = [];
	const megabytes: number[] = [];
	let lost = 0;
	for (let run = 1; run <= stage.times(one.runs); run++) {
		await inWarmN8n(stage, platform, async (n8n) => {
			const customer = await platform.customer();
			const flowOf = async (count: number): Promise<WorkflowDocument> => {
				const label = `growth ${one.name} ${count} ${run}`;
				const { parameters } = one;
				return await flowTaskFlow({ n8n, platform, customer, count, label, parameters });
			};
			await platform.resetBooks();
			const many = await growthOf(n8n, await flowOf(MANY));
			manyMs.push(many.wallMs);
			megabytes.push(many.megabytes - own);
			fewMs.push((await runWell(n8n, await flowOf(FEW))).wallMs);
			lost += Math.abs(MANY + FEW - (await platform.books()).tasksMade);
		});
	}
	return figuresOf(one, megabytes, manyMs, fewMs, lost);
}

function figuresOf(
	{ name, limitMb }: GrowthCase,
	megabytes: readonly number[],
	manyMs: readonly number[],
	fewMs: readonly number[],
	lost: number,
): Figure[] {
	const seconds = (times: readonly number[]): number[] => times.map((timeMs) => timeMs / 1000);
	const ratios = manyMs.map((timeMs, index) => timeMs / (fewMs[index] ?? Number.NaN));
	const memory = `${MANY} tasks, ${name}: memory above that`;
	return [
		limitMb === undefined
			? told(median(megabytes), memory, ' MB', megabytes)
			: atMost(limitMb, median(megabytes), { what: memory, kind: 'time', unit: ' MB', runs: megabytes }),
		told(median(manyMs) / 1000, `${MANY} instant tasks, ${name}: wall time`, ' s', seconds(manyMs)),
		told(median(fewMs) / 1000, `${FEW} instant tasks, ${name}: wall time`, ' s', seconds(fewMs)),
		atMost(GROWTH_LIMIT, median(ratios), {
			...{ what: `time for ${MANY} ÷ time for ${FEW}, ${name}`, kind: 'time', unit: ' ×', runs: ratios },
		}),
		none(lost, `${MANY} and ${FEW} tasks, ${name}: too many or too few`),
	];
}
