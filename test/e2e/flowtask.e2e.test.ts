// Tests FlowTask in a real n8n, installed as a user does, against the local platform over real sockets.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { startPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { packedTarball } from './packOnce';
import { startN8n } from './runner';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';

const START_DEADLINE_MS = 200_000;

let platform: Awaited<ReturnType<typeof startPlatform>>;
let n8n: RunningN8n;
let account: SavedCredential;
const userFolder = mkdtempSync(join(tmpdir(), 'flowtask-n8n-'));

beforeAll(async () => {
	platform = await startPlatform({ runners: 4, taskMs: 300 });
	n8n = await startN8n({ userFolder, tarball: packedTarball() });
	account = await n8n.client.createCredential('flowPlatformApi', 'FlowPlatform account', {
		apiKey: platform.apiKey,
		baseUrl: platform.apiUrl,
		wsBaseUrl: '',
	});
}, START_DEADLINE_MS);

afterAll(async () => {
	await n8n?.stop();
	await platform?.close();
	rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
});

/** A webhook that answers with an image; the call contains the prompt and the seed. */
function imageService(path: string, workflowId: string): WorkflowDocument {
	return {
		name: `Picture service ${path}`,
		nodes: [
			{
				id: 'hook',
				name: 'Webhook',
				type: 'n8n-nodes-base.webhook',
				typeVersion: 2,
				position: [0, 0],
				webhookId: path,
				parameters: { httpMethod: 'POST', path, responseMode: 'responseNode', options: {} },
			},
			{
				id: 'task',
				name: 'Flow Task',
				type: 'n8n-nodes-flowtask.flowTask',
				typeVersion: 1,
				position: [220, 0],
				parameters: {
					resource: 'task',
					operation: 'run',
					workflowId,
					overridesMode: 'fields',
					overrideFields: {
						override: [
							{ nodeId: '6', parameter: 'text', value: '={{ $json.body.prompt }}', valueType: 'string' },
							{ nodeId: '3', parameter: 'seed', value: '={{ $json.body.seed }}', valueType: 'number' },
							{ nodeId: '5', parameter: 'width', value: '={{ $json.body.width }}', valueType: 'number' },
							{ nodeId: '5', parameter: 'height', value: '={{ $json.body.height }}', valueType: 'number' },
						],
					},
					seedMode: 'keep',
					output: 'filePerItem',
					binaryPropertyName: 'data',
					options: {},
				},
				credentials: { flowPlatformApi: { id: account.id, name: account.name } },
			},
			{
				id: 'answer',
				name: 'Respond to Webhook',
				type: 'n8n-nodes-base.respondToWebhook',
				typeVersion: 1.1,
				position: [440, 0],
				parameters: { respondWith: 'binary', options: {} },
			},
		],
		connections: {
			Webhook: { main: [[{ node: 'Flow Task', type: 'main', index: 0 }]] },
			'Flow Task': { main: [[{ node: 'Respond to Webhook', type: 'main', index: 0 }]] },
		},
	};
}

test('a webhook call becomes one task, and its image is the answer', async () => {
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const workflow = await n8n.client.createWorkflow(imageService('picture', workflowId));
	await n8n.client.activate(workflow);
	const order = { prompt: 'a red fox asleep in fresh snow', seed: 4711, width: 320, height: 192 };

	const response = await n8n.client.callWebhook('picture', order);

	const body = Buffer.from(await response.arrayBuffer());
	expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
	const { format, width, height } = await sharp(body).metadata();
	expect({ format, width, height }).toEqual({ format: 'png', width: 320, height: 192 });
	// The file is decoded to its last line, because reading the metadata would accept a cut-off file.
	await sharp(body).raw().toBuffer();
	const { tasks, leaks } = platform.books();
	expect(tasks.map(({ prompt }) => prompt)).toEqual([
		{
			'3': { inputs: { seed: 4711 } },
			'5': { inputs: { width: 320, height: 192 } },
			'6': { inputs: { text: order.prompt } },
		},
	]);
	expect(leaks).toEqual([]);
	expect(n8n.log.errors()).toEqual([]);
});
