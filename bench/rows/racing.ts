// Fifty idempotency keys in four executions at once, compared with fifty in one execution alone.
import { batchService, flowTask } from '../../test/e2e/batchService';
import type { RunningN8n } from '../../test/e2e/runner';
import { atMost, median, none, told, type Figure } from '../figures';
import { cpuSecondsOf } from '../processMeter';
import type { Row } from '../stage';

const KEYS = 50;
const EXECUTIONS = 4;
const RUNS = 5;
const SERVICE = 'bench-racing';
const ANSWER_DEADLINE_MS = 170_000;
/** How much longer the first execution to finish may take than one that runs alone. */
const WINNER_LIMIT = 1.5;

interface Race {
	/** The times of the executions, from the first to finish to the last. */
	readonly timesMs: readonly number[];
	readonly cpuMs: number;
}

export const racing: Row = {
	name: 'racing',
	async measure(stage) {
		return await stage.withPlatform(
			{ runners: 50, taskMs: 100 },
			async (platform) =>
				await stage.withFreshN8n(async (n8n) => {
					const { apiKey, workflowId } = await platform.customer();
					const account = await n8n.client.createCredential('flowPlatformApi', 'Platform racing', {
						...{ apiKey, baseUrl: platform.apiUrl, wsBaseUrl: '' },
					});
					const override = [
						{ nodeId: '6', parameter: 'text', value: '={{ $json.key }}', valueType: 'string' },
					];
					const step = flowTask('FlowTask', account, {
						...{ operation: 'run', workflowId },
						options: { output: 'urls', expert: { overrideFields: { override } } },
						limits: { idempotencyKey: '={{ $json.key }}' },
					});
					const service = batchService({ path: SERVICE, answers: 'lastNode', steps: [step] });
					await n8n.client.activate(await n8n.client.createWorkflow(service));
					// This creates the table, and lets n8n load and compile what it needs.
					for (const name of ['first', 'second']) await race(n8n, 1, name);
					await platform.resetBooks();
					const alone: Race[] = [];
					const raced: Race[] = [];
					const runs = stage.times(RUNS);
					for (let run = 1; run <= runs; run++) {
						alone.push(await race(n8n, 1, `alone ${run}`));
						raced.push(await race(n8n, EXECUTIONS, `raced ${run}`));
					}
					const { tasksMade, duplicates } = await platform.books();
					const lost = Math.abs(tasksMade - 2 * runs * KEYS) + duplicates;
					return figuresOf(alone, raced, lost);
				}),
		);
	},
};

async function race(n8n: RunningN8n, executions: number, name: string): Promise<Race> {
	const keys = Array.from({ length: KEYS }, (_, index) => `${name} key ${index}`);
	const startMs = performance.now();
	const cpuBefore = cpuSecondsOf(n8n.pid);
	const timesMs = await Promise.all(
		Array.from({ length: executions }, async () => {
			const response = await n8n.client.callWebhook(SERVICE, { keys }, ANSWER_DEADLINE_MS);
			const items = (await response.json()) as unknown[];
			if (items.length !== KEYS) throw new Error(`racing: ${JSON.stringify(items).slice(0, 500)}`);
			return performance.now() - startMs;
		}),
	);
	const cpuMs = (cpuSecondsOf(n8n.pid) - cpuBefore) * 1000;
	return { timesMs: timesMs.toSorted((left, right) => left - right), cpuMs };
}

function figuresOf(alone: readonly Race[], raced: readonly Race[], lost: number): Figure[] {
	const first = (races: readonly Race[]): number[] => races.map(({ timesMs }) => (timesMs[0] ?? NaN) / 1000);
	const last = (races: readonly Race[]): number[] =>
		races.map(({ timesMs }) => (timesMs.at(-1) ?? NaN) / 1000);
	const cpu = (races: readonly Race[]): number => median(races.map(({ cpuMs }) => cpuMs)) / 1000;
	const ratios = first(raced).map((seconds) => seconds / median(first(alone)));
	const of = `${KEYS} keys`;
	return [
		told(median(first(alone)), `${of}, one execution alone`, ' s', first(alone)),
		told(median(first(raced)), `${of}, ${EXECUTIONS} at once: the first that is done`, ' s', first(raced)),
		told(median(last(raced)), `${of}, ${EXECUTIONS} at once: the last`, ' s', last(raced)),
		atMost(WINNER_LIMIT, median(ratios), {
			...{ what: `${of}: the first of ${EXECUTIONS} ÷ alone`, kind: 'time', unit: ' ×', runs: ratios },
		}),
		told(cpu(alone), `${of}, alone: CPU of n8n`, ' s'),
		told(cpu(raced), `${of}, ${EXECUTIONS} at once: CPU of n8n`, ' s'),
		none(lost, `${of}: tasks too many or too few`),
	];
}
