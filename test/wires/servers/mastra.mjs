// Mastra's HTTP server with an agent whose model is `script.mjs`.
import { ReadableStream } from 'node:stream/web';
import { serve } from '@hono/node-server';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { MockMemory } from '@mastra/core/memory';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { MastraServer } from '@mastra/hono';
import { Hono } from 'hono';
import { z } from 'zod';
import { answerAfter, answerTo, asksOf, listens, refusalOf } from './script.mjs';

const USAGE = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };

const textOf = ({ content }) =>
	typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');
const filesOf = ({ content }) =>
	typeof content === 'string'
		? []
		: content.filter(({ type }) => type === 'file').map(({ data }) => String(data));

async function* partsOf(prompt) {
	const said = prompt.filter(({ role }) => role === 'user');
	const last = said.at(-1);
	const results =
		prompt.at(-1).role === 'tool' ? prompt.at(-1).content.map(({ output }) => output.value) : [];
	const asks = results.length > 0 ? [] : asksOf(textOf(last));
	yield { type: 'stream-start', warnings: [] };
	for (const [index, args] of asks.entries()) {
		const toolCallId = `call-${said.length}-${index}`;
		yield { type: 'tool-call', toolCallId, toolName: 'pay', input: JSON.stringify(args) };
	}
	if (asks.length === 0) {
		const files = filesOf(last);
		const words = textOf(last) + files.map((url) => ` ${url}`).join('');
		const pieces = results.length > 0 ? answerAfter(results) : answerTo(words, said.length);
		yield { type: 'text-start', id: 't' };
		for await (const delta of pieces) yield { type: 'text-delta', id: 't', delta };
		yield { type: 'text-end', id: 't' };
	}
	yield { type: 'finish', usage: USAGE, finishReason: asks.length > 0 ? 'tool-calls' : 'stop' };
}

const model = {
	specificationVersion: 'v2',
	provider: 'script',
	modelId: 'script',
	// Files are passed to the model by their addresses, not fetched.
	supportedUrls: { '*/*': [/^https?:/], 'image/*': [/^https?:/], 'text/*': [/^https?:/] },
	doStream: async ({ prompt }) => ({ stream: ReadableStream.from(partsOf(prompt)) }),
	doGenerate: async () => {
		throw new Error('not streamed');
	},
};

const pay = createTool({
	id: 'pay',
	description: 'Pays an amount.',
	inputSchema: z.object({ amount: z.number() }),
	requireApproval: true,
	execute: async ({ amount }) => ({ paid: amount }),
});

const storage = new InMemoryStore();
const agent = new Agent({
	id: 'mine-1',
	name: 'mine-1',
	instructions: 'Be brief.',
	model,
	maxRetries: 0,
	tools: { pay },
	memory: new MockMemory({ storage, enableMessageHistory: true, options: { lastMessages: 100 } }),
});
const mastra = new Mastra({ agents: { 'mine-1': agent }, storage, logger: false });
const app = new Hono();
app.use(async (context, next) => {
	const status = refusalOf(context.req.header('authorization'));
	return status
		? context.json({ error: status === 429 ? 'Too many requests' : 'Unauthorized' }, status)
		: await next();
});
await new MastraServer({ app, mastra }).init();
const port = Number(process.env.PORT) || 0;
serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, (address) => listens(address.port));
