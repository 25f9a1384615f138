// Memory: how it is measured, and that of 200 large files.
import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, median, none, told } from '../figures';
import { FLOW_TASK, flowTaskFlow, promptFlow, runWell, type Step } from '../flow';
import { INSPECTED, Inspector } from '../inspector';
import { forgetPeak, MB, memoryOf } from '../processMeter';
import type { Row, Stage } from '../stage';
import { outputItems, type RunningN8n, type WorkflowDocument } from '../../test/e2e/runner';
import type { BenchPlatform } from '../platform';

const FILES = 200;
const FILE_MB = 10;
const FILES_MB_LIMIT = 150;

/** Three are enough: each run measures a fresh n8n, so the figures vary little. */
export const MEMORY_RUNS = 3;
const SETTLE_MS = 1_000;

/** Starts a fresh n8n and uses every part once, so that loading and compiling do not count. */
export async function inWarmN8n<T>(
	stage: Stage,
	platform: BenchPlatform,
	work: (n8n: RunningN8n, sample: object) => Promise<T>,
	env: NodeJS.ProcessEnv = {},
): Promise<T> {
	return await stage.withFreshN8n(
		async (n8n) => {
			const customer = await platform.customer();
			const flow = await flowTaskFlow({ n8n, platform, customer, count: 10, label: 'warm-up' });
			const { executionId } = await runWell(n8n, flow);
			const [item] = outputItems(await n8n.client.getExecution(executionId), FLOW_TASK);
			const sample = item?.json ?? {};
			await runWell(n8n, promptFlow(10, 'warm-up', [editFields(sample)]));
			return await work(n8n, sample);
		},
		{ ...INSPECTED, ...env },
	);
}

export interface Grown {
	/** By how much the peak exceeds the idle level. */
	readonly megabytes: number;
	/** The time of all executions together. */
	readonly wallMs: number;
	/** The last execution. */
	readonly executionId: string;
}

/** Runs workflows, one after another. */
export async function growthOf(n8n: RunningN8n, ...flows: readonly WorkflowDocument[]): Promise<Grown> {
	const inspector = await Inspector.of(n8n);
	await inspector.collectGarbage();
	inspector.close();
	await sleep(SETTLE_MS);
	const idle = memoryOf(n8n.pid).nowBytes;
	forgetPeak(n8n.pid);
	let wallMs = 0;
	let executionId = '';
	for (const flow of flows) {
		const run = await runWell(n8n, flow);
		wallMs += run.wallMs;
		({ executionId } = run);
	}
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

export async function baseline(stage: Stage, platform: BenchPlatform, count: number): Promise<number> {
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
