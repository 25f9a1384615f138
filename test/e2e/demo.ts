// npm run demo:n8n: a real n8n with this package makes a batch of images on the local platform. With `--once`, it ends
// after the run, with exit code 0 only if every image exists, can be read and differs from the others.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { startPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { saveImages } from './demoImages';
import {
	failureOf,
	fillTemplate,
	hostedWorkflow,
	killEveryN8n,
	outputItems,
	packTarball,
	readTemplate,
	startN8n,
} from './runner';
import type { RunningN8n } from './runner';

const packageRoot = join(__dirname, '..', '..');
const demoFolder = join(packageRoot, '.demo');
const imagesFolder = join(demoFolder, 'pictures');

const BATCH_DEADLINE_MS = 300_000;

type Closer = () => Promise<unknown>;

/** What closes each thing that was started; called in reverse order. */
const closers: Closer[] = [];
let closing: Promise<void> | undefined;

function closeAll(): Promise<void> {
	closing ??= (async () => {
		for (const close of closers.reverse()) {
			await close().catch((error: unknown) => console.error(messageOf(error)));
		}
	})();
	return closing;
}

async function step<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
	const started = Date.now();
	process.stdout.write(`${what} … `);
	try {
		const result = await work();
		console.log(`${((Date.now() - started) / 1000).toFixed(1)} s`);
		return result;
	} catch (error) {
		console.log('failed');
		throw error;
	}
}

async function startEverything() {
	await mkdir(demoFolder, { recursive: true });
	const scratch = await mkdtemp(join(demoFolder, 'run-'));
	closers.push(() => rm(scratch, { recursive: true, force: true, maxRetries: 3 }));
	// n8n is killed instead of stopped, because it would first wait for a running batch, its database is thrown away
	// anyway, and it may still be starting.
	closers.push(killEveryN8n);

	const tarball = await step('Building and packing n8n-nodes-flowtask', () => packTarball(scratch));
	const platform = await step('Starting the local platform', () =>
		startPlatform({ runners: 4, taskMs: 1000 }),
	);
	closers.push(() => platform.close());
	const n8n = await step('Installing the package into n8n and starting n8n', () =>
		startN8n({ userFolder: join(scratch, 'n8n'), tarball }),
	);
	return { platform, n8n };
}

/** Adds the account and imports the template as a person would, and runs the batch manually. */
async function runBatch({ platform, n8n }: Awaited<ReturnType<typeof startEverything>>) {
	const workflow = await step('Importing the account and the template "Image batch"', async () => {
		const account = await n8n.client.createCredential('flowPlatformApi', 'FlowPlatform account', {
			apiKey: platform.apiKey,
			baseUrl: platform.apiUrl,
			wsBaseUrl: '',
		});
		const { workflowId } = await platform.hostWorkflow(textToImage);
		const template = fillTemplate(readTemplate('image-batch.json'), {
			fields: { 'Make the pictures': hostedWorkflow(workflowId, textToImage) },
			credentials: { flowPlatformApi: account },
		});
		return await n8n.client.createWorkflow(template);
	});
	const execution = await step('Running the batch', async () => {
		const id = await n8n.client.run(workflow, 'Run now');
		const ended = await n8n.client.waitForExecution(id, { timeoutMs: BATCH_DEADLINE_MS });
		if (ended.status !== 'success') {
			throw new Error(`The run ended as "${ended.status}": ${failureOf(ended) ?? 'no reason given'}`);
		}
		return ended;
	});
	return { workflow, execution };
}

async function main(): Promise<void> {
	console.log('This takes about half a minute.\n');
	const everything = await startEverything();
	const { workflow, execution } = await runBatch(everything);

	const wanted = outputItems(execution, 'One item per prompt').length;
	const failed = outputItems(execution, 'Make the pictures', 1);
	const images = await saveImages(everything.n8n.client, outputItems(execution, 'Pictures'), imagesFolder);
	console.log('');
	for (const { taskId, seed, width, height, kilobytes, path } of images) {
		const size = `${width} x ${height}, ${kilobytes} KB`;
		console.log(`${taskId}  seed ${seed}  ${size}  ${relative(process.cwd(), path)}`);
	}
	for (const { json } of failed) {
		console.log(`failed: "${String(json.prompt)}": ${String(json.error)}. ${String(json.message)}`);
	}

	const different = new Set(images.map(({ pixelHash }) => pixelHash)).size;
	const isGood = wanted > 0 && images.length === wanted && different === wanted;
	console.log(`\n${images.length} of ${wanted} pictures, ${different} of them different.`);
	if (!isGood) process.exitCode = 1;
	if (!process.argv.includes('--once')) await keepOpen(everything.n8n, workflow.id);
}

/** Keeps everything running until Ctrl-C is pressed or n8n itself ends. */
async function keepOpen(n8n: RunningN8n, workflowId: string): Promise<void> {
	console.log(`
n8n is open at ${n8n.url}/workflow/${workflowId}
  e-mail    ${n8n.login.email}
  password  ${n8n.login.password}
Change the prompts, press "Execute workflow", look at the node "Pictures". Ctrl-C ends everything.`);
	await n8n.ended;
	if (closing === undefined) throw new Error(`n8n ended by itself:\n${n8n.log.tail()}`);
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
	process.on(signal, () => {
		// Ctrl-C was pressed again, so this process exits at once, which kills everything that was started.
		if (closing !== undefined) process.exit(1);
		console.log('\nStopping …');
		void closeAll().then(() => process.exit());
	});
}

main()
	.catch((error: unknown) => {
		// Errors while everything is being stopped are of no interest.
		if (closing !== undefined) return;
		console.error(`\nThe demo failed: ${messageOf(error)}`);
		process.exitCode = 1;
	})
	.finally(closeAll);
