// npm run demo: Flow Task in n8n's own engine makes a batch of images on the local platform, and a page that shows them.
// The exit code is 0 only if every image exists, can be read and differs from the others.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startPlatform, type LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import imageBatch from '../../templates/image-batch.json';
import { createHarness, singleNode, type Harness, type HarnessRun } from '../nodes/harness';
import { pictureOf, savePage, type Picture } from './contactSheet';

const PAGE = join(__dirname, '..', '..', '.demo', 'pictures.html');
const RUNNERS = 4;
const TASK_MS = 1000;
const REPORT_EVERY_MS = 1000;

/** A number of seconds for a person, such as "2.3 s". */
const secondsSince = (startedMs: number): string => `${((Date.now() - startedMs) / 1000).toFixed(1)} s`;

async function step<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
	const startedMs = Date.now();
	process.stdout.write(`${what} … `);
	try {
		const result = await work();
		console.log(secondsSince(startedMs));
		return result;
	} catch (error) {
		console.log('failed');
		throw error;
	}
}

/** The template's node and its list of prompts, so that the demo shows what one can import. */
function templateParts() {
	const [list, make] = ['Prompts', 'Make the pictures'].map((name) =>
		imageBatch.nodes.find((node) => node.name === name),
	);
	const entered = list?.parameters.assignments?.assignments[0]?.value;
	if (entered === undefined || make === undefined) throw new Error('The template "Image batch" has changed.');
	const prompts: unknown = JSON.parse(entered);
	if (!Array.isArray(prompts)) throw new Error('The prompts of the template "Image batch" are not a list.');
	return { prompts: prompts.map(String), type: make.type, parameters: make.parameters };
}

async function runBatch(harness: Harness, platform: LocalPlatform): Promise<HarnessRun> {
	const { prompts, type, parameters } = templateParts();
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const live = await harness.start({
		workflow: singleNode({
			type,
			parameters: { ...parameters, workflowId, workflowDefinition: JSON.stringify(textToImage) },
			outputs: [['Pictures'], ['Failed']],
			onError: 'continueErrorOutput',
		}),
		items: prompts.map((prompt) => ({ json: { prompt } })),
		credentials: { flowPlatformApi: { apiKey: platform.apiKey, baseUrl: platform.apiUrl } },
	});
	const report = setInterval(() => {
		const { tasks } = platform.books();
		const done = tasks.filter(({ finishedAtMs }) => finishedAtMs !== null).length;
		console.log(`  ${done} of ${prompts.length} pictures done`);
	}, REPORT_EVERY_MS);
	try {
		return await live.done;
	} finally {
		clearInterval(report);
	}
}

async function picturesOf(run: HarnessRun): Promise<Picture[]> {
	const { prompts } = templateParts();
	return await Promise.all(
		run.items().map(async (item) => {
			const from = item.pairedItem;
			const prompt = typeof from === 'object' && 'item' in from ? prompts[from.item] : undefined;
			return await pictureOf(await run.binary(item), { ...item.json, prompt });
		}),
	);
}

function describe(pictures: readonly Picture[], run: HarnessRun): boolean {
	const { prompts } = templateParts();
	console.log('');
	for (const { taskId, seed, width, height, prompt } of pictures) {
		console.log(`  ${taskId}  seed ${seed}  ${width} × ${height}  ${prompt}`);
	}
	for (const { json } of run.items(1)) console.log(`  failed: ${JSON.stringify(json)}`);
	const different = new Set(pictures.map(({ pixelHash }) => pixelHash)).size;
	console.log(`\n${pictures.length} of ${prompts.length} pictures, ${different} of them different.`);
	return pictures.length === prompts.length && different === prompts.length;
}

async function main(): Promise<void> {
	const platform = await step('Starting the local platform', async () => {
		return await startPlatform({ runners: RUNNERS, taskMs: TASK_MS });
	});
	const harness = await step("Loading the nodes into n8n's engine", async () => {
		return await createHarness({ passTime: () => () => {} });
	});
	try {
		console.log(`Running the template "Image batch": Flow Task, ${RUNNERS} pictures at a time`);
		const run = await runBatch(harness, platform);
		if (run.status !== 'success') throw new Error(run.error?.message ?? `The run ended as "${run.status}".`);
		const pictures = await picturesOf(run);
		if (!describe(pictures, run)) process.exitCode = 1;
		await savePage(PAGE, pictures);
		console.log(`Open them in a browser: ${pathToFileURL(PAGE).href}

Next: npm run demo:n8n starts n8n's editor with this package, to click through it
(about five minutes at the first time, a download of 2.2 GB).`);
	} finally {
		await harness.close();
		await platform.close();
	}
}

main().catch((error: unknown) => {
	console.error(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
	process.exitCode = 1;
});
