// ADK's API server with an agent whose model is `script.mjs`.
import { setTimeout as sleep } from 'node:timers/promises';
import { BaseLlm, LlmAgent, LongRunningFunctionTool, SequentialAgent } from '@google/adk';
import { AdkApiServer } from '@google/adk-devtools';
import express from 'express';
import { z } from 'zod';
import { answerAfter, answerTo, asksOf, listens, refusalOf } from './script.mjs';

const textOf = ({ parts = [] }) => parts.map(({ text = '' }) => text).join('');
const filesOf = ({ parts = [] }) => parts.flatMap(({ fileData }) => fileData?.fileUri ?? []);
const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 };

class ScriptLlm extends BaseLlm {
	connect() {
		throw new Error('not live');
	}
	async *generateContentAsync({ contents }, isStreamed) {
		const said = contents.filter(({ role, parts }) => role === 'user' && parts.some(({ text }) => text));
		const last = said.at(-1);
		const results = contents.at(-1).parts.flatMap(({ functionResponse }) => functionResponse?.response ?? []);
		const asks = results.length > 0 ? [] : asksOf(textOf(last));
		if (asks.length > 0) {
			const parts = asks.map((args) => ({ functionCall: { name: 'pay', args } }));
			yield { content: { role: 'model', parts }, usageMetadata };
			return;
		}
		const words = [textOf(last), ...filesOf(last)].join(' ');
		let whole = '';
		for await (const text of results.length > 0 ? answerAfter(results) : answerTo(words, said.length)) {
			whole += text;
			if (isStreamed) yield { content: { role: 'model', parts: [{ text }] }, partial: true };
		}
		yield { content: { role: 'model', parts: [{ text: whole }] }, usageMetadata };
	}
}

/** Takes longer than the node waits for what may follow an answer. */
const EDITING_MS = 4_000;

class EditorLlm extends ScriptLlm {
	async *generateContentAsync(_request, isStreamed) {
		await sleep(EDITING_MS);
		for (const text of isStreamed ? ['edi', 'ted'] : [])
			yield { content: { role: 'model', parts: [{ text }] }, partial: true };
		yield { content: { role: 'model', parts: [{ text: 'edited' }] }, usageMetadata };
	}
}

const inTurn = new SequentialAgent({
	name: 'in_turn',
	subAgents: [
		new LlmAgent({ name: 'drafter', model: new ScriptLlm({ model: 'script' }) }),
		new LlmAgent({ name: 'editor', model: new EditorLlm({ model: 'script' }) }),
	],
});

const agent = new LlmAgent({
	name: 'helper',
	model: new ScriptLlm({ model: 'script' }),
	instruction: 'Be brief.',
	tools: [
		new LongRunningFunctionTool({
			name: 'pay',
			description: 'Pays an amount once somebody has approved.',
			parameters: z.object({ amount: z.number() }),
			execute: () => undefined,
		}),
	],
});
const fileOf = (loaded) => ({
	load: async () => loaded,
	loadAgent: async () => loaded,
	dispose: async () => {},
});
const agentLoader = {
	listAgents: async () => ['mine-1'],
	listApps: async () => [],
	listLoadFailures: async () => [],
	getAgentFile: async (name) => {
		const file = fileOf(name === 'in-turn' ? inTurn : agent);
		return { ...file, [Symbol.asyncDispose]: file.dispose };
	},
	disposeAll: async () => {},
};
const port = Number(process.env.PORT) || 0;
const server = new AdkApiServer({ agentLoader, host: '127.0.0.1', port });
await server.init();
const gate = express();
gate.use((request, response, next) => {
	const status = refusalOf(request.get('authorization'));
	if (status) response.status(status).json({ error: status === 429 ? 'Too many requests' : 'Unauthorized' });
	else next();
});
gate.use(server.app);
const listening = gate.listen(port, '127.0.0.1', () => listens(listening.address().port));
