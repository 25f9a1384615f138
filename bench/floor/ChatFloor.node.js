// Does the least that n8n lets a node do to stream an answer: what Chat Completion costs above it is the package's own.
// n8n loads this folder by N8N_CUSTOM_EXTENSIONS.
const { setTimeout: sleep } = require('node:timers/promises');

const WORD = 'word ';

class ChatFloor {
	description = {
		displayName: 'Chat Floor',
		name: 'chatFloor',
		group: ['transform'],
		version: 1,
		description: 'Streams words',
		defaults: { name: 'Chat Floor' },
		inputs: ['main'],
		outputs: ['main'],
		properties: [
			{ displayName: 'Words', name: 'words', type: 'number', default: 600 },
			{ displayName: 'Pause (ms)', name: 'pauseMs', type: 'number', default: 10 },
			// If this is empty, no model is asked. Otherwise each piece of the answer's bytes becomes a word, whatever it says.
			{ displayName: 'URL', name: 'url', type: 'string', default: '' },
			{ displayName: 'API Key', name: 'apiKey', type: 'string', default: '' },
			{ displayName: 'Body', name: 'body', type: 'string', default: '' },
		],
	};

	async execute() {
		await this.sendChunk('begin', 0);
		for await (const word of wordsOf(this)) await this.sendChunk('item', 0, word);
		await this.sendChunk('end', 0);
		return [this.getInputData()];
	}
}

async function* wordsOf(context) {
	const given = (name) => context.getNodeParameter(name, 0);
	if (given('url') === '') {
		for (let sent = 0; sent < given('words'); sent++) {
			await sleep(given('pauseMs'));
			yield WORD;
		}
		return;
	}
	const { body } = await context.helpers.httpRequest({
		method: 'POST',
		url: given('url'),
		headers: { authorization: `Bearer ${given('apiKey')}`, 'content-type': 'application/json' },
		body: given('body'),
		encoding: 'stream',
		returnFullResponse: true,
	});
	for await (const { length } of body) if (length > 0) yield WORD;
}

module.exports = { ChatFloor };
