// Memory and growth: 200 large files, 10,000 tasks, and how time grows with their number.
import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, median, none, told, type Figure } from '../figures';
import { FLOW_TASK, flowTaskFlow, promptFlow, runWell, type FlowTaskRun, type Step } from '../flow';
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

/** Three are enough: each run measures a fresh n8n, so the figures vary little. */
const RUNS = 3;
const SETTLE_MS = 1_000;

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
	for (let run = 1; run <= stage.times(RUNS); run++) {
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
			for (let run = 1; run <= stage.times(RUNS); run++) {
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
			const byDefault = await grow(stage, platform, BY_DEFAULT);
			const unlimited = await grow(stage, platform, UNLIMITED);
			const megabytes = byDefault.megabytes.map((used) => used - own);
			const [many = [], few = []] = unlimited.wallMs;
			const ratios = many.map((timeMs, run) => timeMs / (few[run] ?? Number.NaN));
			return [
				told(own, `${MANY} items through Edit Fields: memory`, ' MB'),
				atMost(TASKS_MB_LIMIT, median(megabytes), {
					what: `${MANY} tasks, ${BY_DEFAULT.name}: memory above that`,
					kind: 'time',
					unit: ' MB',
					runs: megabytes,
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
	for (let run = 1; run <= stage.times(RUNS); run++) {
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
