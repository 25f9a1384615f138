import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { NODE_NAME } from '../harness';
import { sayings } from '../harness/stage';
import { openAgentStage } from './agent.fixture';

const MB = 1024 * 1024;

/** A server that takes uploads slowly, and counts how many are under way. */
async function openSlowUploads() {
	let underWay = 0;
	const seen = { most: 0, all: 0 };
	const server = createServer((request, response) => {
		seen.all++;
		seen.most = Math.max(seen.most, ++underWay);
		request.resume().on('end', () => {
			setTimeout(() => {
				underWay--;
				const data = { url: 'https://files.example/a' };
				response.end(JSON.stringify({ success_response: true, http_status_code: 200, data }));
			}, 100);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	return { server, seen, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test.each([
	['large files are held and uploaded one at a time', 20 * MB, [1, 1]],
	['small files are uploaded beside each other', 1_000, [2, 4]],
])('%s, whatever their accounts', async (_name, bytes, [atLeast = 0, atMost = 0]) => {
	const stage = await openAgentStage();
	const { server, seen, baseUrl } = await openSlowUploads();
	try {
		const run = await stage.run(
			sayings('a', 'b', 'a', 'b').map((item) => ({
				...item,
				binary: { data: { data: Buffer.alloc(bytes, 'x'), fileName: 'a.txt', mimeType: 'text/plain' } },
			})),
			{ operation: 'uploadMedia', binaryPropertyName: 'data', options: { concurrency: 4 } },
			{ account: { baseUrl, mediaUploadPath: '/media', agentToken: '=agt_{{ $json.say }}0123456789' } },
		);
		expect(run.error).toBeUndefined();
		expect(run.output(NODE_NAME)).toHaveLength(4);
		expect(seen.all).toBe(4);
		expect(seen.most).toBeGreaterThanOrEqual(atLeast);
		expect(seen.most).toBeLessThanOrEqual(atMost);
	} finally {
		await stage.close();
		server.closeAllConnections();
		server.close();
	}
});
