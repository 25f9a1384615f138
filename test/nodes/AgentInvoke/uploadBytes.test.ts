import { sharedStage, sayings } from '../harness/stage';
import { openServer } from '../harness/server';
import { openAgentStage } from './agent.fixture';

const MB = 1024 * 1024;

const stage = sharedStage(openAgentStage);

/** Opens a server that takes uploads slowly and counts how many run at the same time. */
async function openSlowUploads() {
	let underWay = 0;
	const seen = { most: 0, all: 0, lengths: [] as number[] };
	const server = await openServer((request, response) => {
		seen.all++;
		seen.most = Math.max(seen.most, ++underWay);
		let received = 0;
		request.on('data', (piece: Buffer) => (received += piece.length));
		request.on('end', () => {
			// 0 if a content length was sent and is correct.
			seen.lengths.push(Number(request.headers['content-length']) - received);
			setTimeout(() => {
				underWay--;
				const data = { url: 'https://files.example/a' };
				response.end(JSON.stringify({ success_response: true, http_status_code: 200, data }));
			}, 100);
		});
	});
	return { server, seen };
}

const stored = (bytes: number) => ({ data: Buffer.alloc(bytes, 'x') });
/** A file as an n8n that keeps files in memory holds it. */
const inItem = (bytes: number) => ({ data: Buffer.alloc(bytes, 'x').toString('base64'), bytes });

test.each([
	['uploads large files held in items one at a time', inItem(20 * MB), [1, 1]],
	['streams large stored files in parallel', stored(20 * MB), [2, 4]],
	['uploads small files in parallel', stored(1_000), [2, 4]],
])('%s', async (_name, file, [atLeast = 0, atMost = 0]) => {
	const { server, seen } = await openSlowUploads();
	const run = await stage.run(
		sayings('a', 'b', 'a', 'b').map((item) => ({
			...item,
			binary: { data: { ...file, fileName: 'a.txt', mimeType: 'text/plain' } },
		})),
		{ operation: 'uploadMedia', binaryPropertyName: 'data', options: { concurrency: 4 } },
		{ account: { baseUrl: server.url, mediaUploadPath: '/media' } },
	);
	expect(run.error).toBeUndefined();
	expect(run.items()).toHaveLength(4);
	expect(seen.lengths).toEqual([0, 0, 0, 0]);
	expect(seen.most).toBeGreaterThanOrEqual(atLeast);
	expect(seen.most).toBeLessThanOrEqual(atMost);
	await server.close();
});
