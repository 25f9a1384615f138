// Sends as many requests as a batch, with the same body and by the same helper of n8n, and does nothing else: the memory
// that a batch takes above it is the package's own.
const { setTimeout: sleep } = require('node:timers/promises');

const AT_ONCE = 16;

class RequestsFloor {
	description = {
		displayName: 'Requests Floor',
		name: 'requestsFloor',
		group: ['transform'],
		version: 1,
		description: 'Sends requests',
		defaults: { name: 'Requests Floor' },
		inputs: ['main'],
		outputs: ['main'],
		properties: [
			{ displayName: 'URL', name: 'url', type: 'string', default: '' },
			{ displayName: 'API Key', name: 'apiKey', type: 'string', default: '' },
			{ displayName: 'Workflow ID', name: 'workflowId', type: 'string', default: '' },
			{ displayName: 'Requests per Second', name: 'perSecond', type: 'number', default: 100 },
			{ displayName: 'More Requests', name: 'more', type: 'number', default: 0 },
			{ displayName: 'Item', name: 'item', type: 'json', default: '{}' },
		],
	};

	async execute() {
		const [url, apiKey, workflowId, more, sample] = ['url', 'apiKey', 'workflowId', 'more', 'item'].map(
			(name) => this.getNodeParameter(name, 0),
		);
		const item = JSON.parse(sample);
		const prompts = this.getInputData().map(({ json }) => json.prompt);
		const waiting = [...prompts, ...Array(more).fill('one more')].values();
		const spacingMs = 1_000 / this.getNodeParameter('perSecond', 0);
		let dueMs = Date.now();
		const send = async () => {
			for (const prompt of waiting) {
				dueMs = Math.max(dueMs + spacingMs, Date.now() - 1_000);
				await sleep(dueMs - Date.now());
				await this.helpers.httpRequest({
					method: 'POST',
					url,
					headers: { authorization: `Bearer ${apiKey}` },
					body: { workflow_id: workflowId, prompt: { 6: { inputs: { text: prompt } } } },
					json: true,
				});
			}
		};
		await Promise.all(Array.from({ length: AT_ONCE }, send));
		return [prompts.map((prompt, index) => ({ json: { ...item, prompt }, pairedItem: index }))];
	}
}

module.exports = { RequestsFloor };
