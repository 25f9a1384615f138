// Tests FlowTask in a real n8n, installed as a user does, against the local platform over real sockets.
import sharp from 'sharp';
import textToImage from '../platform/workflows/text-to-image.json';
import { flowTask } from './batchService';
import { inARow, webhook } from './chatWorkflows';
import { templateStage } from './stage';

const stage = templateStage('flowtask-n8n-');

test('a webhook call becomes one task, and its image is the answer', async () => {
	const { platform, n8n, account } = stage;
	const { workflowId } = await platform.hostWorkflow(textToImage);
	const override = [
		{ nodeId: '6', parameter: 'text', value: '={{ $json.body.prompt }}', valueType: 'string' },
		{ nodeId: '3', parameter: 'seed', value: '={{ $json.body.seed }}', valueType: 'number' },
		{ nodeId: '5', parameter: 'width', value: '={{ $json.body.width }}', valueType: 'number' },
		{ nodeId: '5', parameter: 'height', value: '={{ $json.body.height }}', valueType: 'number' },
	];
	const task = flowTask('Flow Task', account, {
		operation: 'run',
		workflowId,
		options: { expert: { overrideFields: { override } }, seedMode: 'keep', output: 'filePerItem' },
	});
	const answer = {
		name: 'Respond to Webhook',
		type: 'n8n-nodes-base.respondToWebhook',
		typeVersion: 1.1,
		parameters: { respondWith: 'binary', options: {} },
	};
	const service = inARow('Picture service', [webhook('picture', 'responseNode'), task, answer]);
	await n8n.client.activate(await n8n.client.createWorkflow(service));
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
