// What a pasted export of 470 KB costs each item, above the same run by node ID and parameter, which needs no export.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { atMost, median, none, told } from '../figures';
import { flowTaskFlow, runWell, type FlowTaskRun } from '../flow';
import { hotPlaces } from '../hotPlaces';
import { INSPECTED, Inspector } from '../inspector';
import { cpuSecondsOf } from '../processMeter';
import type { Row } from '../stage';
import textToImage from '../../test/platform/workflows/text-to-image.json';

const TASKS = 500;
const EXPORT_CHARS = 470_000;
/** About the size of one of its nodes. */
const ONE_CHARS = 515;
const LIMIT_MS = 0.3;
const PAIRS = 7;
const PLACES = 5;
const PERCENT = 100;

const folder = join(__dirname, '..', '..', '.e2e');
const profileFile = join(folder, 'bench-export.cpuprofile');

/** The usual export and as many further encoders, in a row, as make it large. */
function largeExport(): string {
	const nodes: Record<string, object> = { ...textToImage };
	const text = 'a quiet harbour at dawn, painted in oil, wide strokes, cold light, '.repeat(6).trim();
	for (let id = 1_000; id < 1_000 + EXPORT_CHARS / ONE_CHARS; id++) {
		nodes[id] = {
			class_type: 'CLIPTextEncode',
			inputs: { text: `${id} ${text}`, clip: ['4', 1] },
			_meta: { title: `Aside ${id}` },
		};
	}
	return JSON.stringify(nodes);
}

export const largeExports: Row = {
	name: 'export',
	async measure(stage) {
		const workflowDefinition = largeExport();
		const ways = { with: { workflowDefinition }, without: {} } as const;
		return await stage.withPlatform(
			{ runners: 64, taskMs: 0 },
			async (platform) =>
				await stage.withFreshN8n(async (n8n) => {
					const customer = await platform.customer();
					const cpuSeconds = async (label: string, parameters: object): Promise<number> => {
						const shared = { options: { output: 'urls' }, limits: { requestsPerSecond: 0 } };
						const run: FlowTaskRun = { n8n, platform, customer, count: TASKS, label };
						const flow = await flowTaskFlow({ ...run, parameters: { ...shared, ...parameters } });
						const before = cpuSecondsOf(n8n.pid);
						await runWell(n8n, flow);
						return cpuSecondsOf(n8n.pid) - before;
					};
					for (const [way, parameters] of Object.entries(ways))
						await cpuSeconds(`warm-up ${way}`, parameters);
					await platform.resetBooks();
					const aboveMs: number[] = [];
					const pairs = stage.times(PAIRS);
					for (let pair = 1; pair <= pairs; pair++) {
						const without = await cpuSeconds(`without ${pair}`, ways.without);
						aboveMs.push(((await cpuSeconds(`with ${pair}`, ways.with)) - without) * (1_000 / TASKS));
					}
					const made = (await platform.books()).tasksMade;
					const inspector = await Inspector.of(n8n);
					await inspector.startProfile();
					await cpuSeconds('profile', ways.with);
					const profile = await inspector.stopProfile();
					inspector.close();
					mkdirSync(folder, { recursive: true });
					writeFileSync(profileFile, JSON.stringify(profile));
					const { functions, owners } = hotPlaces(profile, PLACES);
					const name = `${TASKS} tasks with an export of ${Math.round(workflowDefinition.length / 1_000)} KB`;
					return [
						atMost(LIMIT_MS, median(aboveMs), {
							...{ what: `${name}: CPU of a task above the same without it`, kind: 'time', unit: ' ms' },
							runs: aboveMs,
						}),
						none(Math.abs(made - 2 * pairs * TASKS), `${name}: tasks too many or too few`),
						...owners.map(({ place, share }) => told(share * PERCENT, `of its CPU, in ${place}`, ' %')),
						...functions.map(({ place, share }) => told(share * PERCENT, `hottest: ${place}`, ' %')),
					];
				}, INSPECTED),
		);
	},
};
