// Large files and slow lines: how much memory an upload takes, and whether downloads use the line fully.
import { createHash } from 'node:crypto';
import { atLeast, atMost, median, none, told } from '../figures';
import { FLOW_TASK, flowTaskFlow, runWell } from '../flow';
import { MB } from '../processMeter';
import type { Row } from '../stage';
import { outputItems, type RunningN8n, type WorkflowDocument } from '../../test/e2e/runner';
import type { BenchPlatform } from '../platform';
import { growthOf, inWarmN8n } from './memory';

const RUNS = 5;
/** Three runs are enough: each measures a fresh n8n, so memory varies little. */
const MEMORY_RUNS = 3;

const UPLOADS = 4;
const UPLOAD_MB = 100;
const UPLOAD_MB_LIMIT = 50;

const DOWNLOADS = 200;
const LINE_MB_PER_SECOND = 10;
const LINE_SHARE = 0.9;

const UPLOAD = 'Upload';

/** A workflow that makes files and uploads them again, all in parallel. */
async function uploadFlow(
	n8n: RunningN8n,
	platform: BenchPlatform,
	label: string,
	uploads: boolean,
): Promise<WorkflowDocument> {
	const customer = await platform.customer();
	// Each item then tells its file's link, by which the bench fetches the file again.
	const parameters = { options: { simplify: false } };
	const flow = await flowTaskFlow({ n8n, platform, customer, count: UPLOADS, label, parameters });
	const made = flow.nodes.find(({ name }) => name === FLOW_TASK);
	if (!uploads || !made) return flow;
	const upload = {
		...{ ...made, id: UPLOAD, name: UPLOAD },
		parameters: { resource: 'image', operation: 'upload', imageSource: 'binary' },
	};
	const to = { main: [[{ node: UPLOAD, type: 'main', index: 0 }]] };
	return {
		...flow,
		nodes: [...flow.nodes, upload],
		connections: { ...flow.connections, [FLOW_TASK]: to },
	};
}

/** Counts files that were changed on the way: the bench fetches each again and compares. */
async function spoiltFiles(n8n: RunningN8n, platform: BenchPlatform, executionId: string): Promise<number> {
	const { uploads } = await platform.books();
	const arrived = new Set(uploads.map(({ bytes, sha256 }) => `${bytes} ${sha256}`));
	let spoilt = Math.abs(uploads.length - UPLOADS);
	for (const { json } of outputItems(await n8n.client.getExecution(executionId), FLOW_TASK)) {
		const { file } = json as { file: { url: string } };
		const hash = createHash('sha256');
		let bytes = 0;
		const { body } = await fetch(file.url);
		for await (const piece of body ?? []) {
			hash.update(piece as Uint8Array);
			bytes += (piece as Uint8Array).byteLength;
		}
		if (!arrived.has(`${bytes} ${hash.digest('hex')}`)) spoilt++;
	}
	return spoilt;
}

export const upload: Row = {
	name: 'upload',
	async measure(stage) {
		// The images must differ, because equal ones are uploaded only once.
		const options = { runners: UPLOADS, taskMs: 0, fileBytes: UPLOAD_MB * MB, images: 'render' } as const;
		return await stage.withPlatform(options, async (platform) => {
			const own = await inWarmN8n(stage, platform, async (n8n) => {
				return await growthOf(n8n, await uploadFlow(n8n, platform, 'made', false));
			});
			const grown: number[] = [];
			let spoilt = 0;
			for (let run = 1; run <= stage.times(MEMORY_RUNS); run++) {
				await inWarmN8n(stage, platform, async (n8n) => {
					await platform.resetBooks();
					const flow = await uploadFlow(n8n, platform, `uploaded ${run}`, true);
					const { megabytes, executionId } = await growthOf(n8n, flow);
					grown.push(megabytes);
					spoilt += await spoiltFiles(n8n, platform, executionId);
				});
			}
			const above = grown.map((megabytes) => megabytes - own.megabytes);
			const what = `${UPLOADS} files of ${UPLOAD_MB} MB`;
			return [
				told(own.megabytes, `${what}, only downloaded: memory`, ' MB'),
				atMost(UPLOAD_MB_LIMIT, median(above), {
					...{ what: `${what}, uploaded at once: memory above that`, kind: 'time', unit: ' MB' },
					runs: above,
				}),
				none(spoilt, `${what}: files that did not arrive byte for byte`),
			];
		});
	},
};

export const downloads: Row = {
	name: 'downloads',
	async measure(stage) {
		const fileBytesPerSecond = LINE_MB_PER_SECOND * MB;
		const options = { runners: 16, taskMs: 0, fileBytes: MB, fileBytesPerSecond };
		return await stage.withPlatform(options, async (platform) => {
			const n8n = await stage.n8n();
			const customer = await platform.customer();
			const shares: number[] = [];
			const wholeShares: number[] = [];
			let lost = 0;
			for (let run = 1; run <= stage.times(RUNS); run++) {
				await platform.resetBooks();
				const flow = await flowTaskFlow({
					...{ n8n, platform, customer, count: DOWNLOADS, label: `downloads ${run}` },
					parameters: { limits: { requestsPerSecond: 0 } },
				});
				const { wallMs } = await runWell(n8n, flow);
				const { bytes, fromMs, untilMs } = (await platform.books()).downloadLine;
				const idealMs = (bytes / fileBytesPerSecond) * 1000;
				shares.push(idealMs / ((untilMs ?? Number.NaN) - (fromMs ?? Number.NaN)));
				wholeShares.push(idealMs / wallMs);
				lost += DOWNLOADS - (await platform.books()).downloads;
			}
			const what = `${DOWNLOADS} files of 1 MB over a line of ${LINE_MB_PER_SECOND} MB/s`;
			return [
				atLeast(LINE_SHARE, median(shares), {
					...{ what: `${what}: throughput ÷ line, first byte to last`, kind: 'time', runs: shares },
				}),
				told(median(wholeShares), `${what}: the same of the whole run`, '', wholeShares),
				none(Math.abs(lost), `${what}: files too many or too few`),
			];
		});
	},
};
