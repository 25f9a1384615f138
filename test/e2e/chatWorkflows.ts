// Workflows around the chat nodes, and how their answers are read from outside.
import type { LocalPlatform } from '../platform';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';

type Node = WorkflowDocument['nodes'][number];
type Parameters = Record<string, unknown>;

/** A model that is entered by its ID; in n8n, the list and the box for the ID are one field. */
export function modelById(value: string): Parameters {
	return { __rl: true, mode: 'id', value };
}

/** The parameters of one user message. */
export function asks(content: string): Parameters {
	return { message: [{ role: 'user', content }] };
}

export function webhook(
	path: string,
	responseMode: 'lastNode' | 'responseNode' | 'streaming',
): Pick<Node, 'name'> & Partial<Node> {
	return {
		name: 'Webhook',
		type: 'n8n-nodes-base.webhook',
		typeVersion: 2.1,
		webhookId: path,
		parameters: { httpMethod: 'POST', path, responseMode, options: {} },
	};
}

export function chatTrigger(
	webhookId: string,
	responseMode: 'lastNode' | 'streaming',
): Pick<Node, 'name'> & Partial<Node> {
	return {
		name: 'Chat',
		type: '@n8n/n8n-nodes-langchain.chatTrigger',
		typeVersion: 1.3,
		webhookId,
		parameters: { public: true, mode: 'webhook', options: { responseMode } },
	};
}

export function chatCompletion(
	account: SavedCredential,
	parameters: Parameters,
): Pick<Node, 'name'> & Partial<Node> {
	return {
		name: 'Chat Completion',
		type: 'n8n-nodes-flowtask.chatCompletion',
		typeVersion: 1,
		parameters,
		credentials: { flowPlatformApi: { id: account.id, name: account.name } },
	};
}

/** A workflow of nodes in a row, and of nodes below the last one with connections of their own kind. */
export function inARow(
	name: string,
	nodes: ReadonlyArray<Pick<Node, 'name'> & Partial<Node>>,
	below: ReadonlyArray<{ node: Pick<Node, 'name'> & Partial<Node>; by: string }> = [],
): WorkflowDocument {
	const place = (node: Pick<Node, 'name'> & Partial<Node>, index: number, y: number): Node => ({
		id: node.name,
		type: '',
		typeVersion: 1,
		position: [240 * index, y],
		parameters: {},
		...node,
	});
	const last = nodes[nodes.length - 1]?.name ?? '';
	const to = (node: string, type: string) => ({ [type]: [[{ node, type, index: 0 }]] });
	return {
		name,
		nodes: [
			...nodes.map((node, index) => place(node, index, 0)),
			...below.map(({ node }, index) => place(node, nodes.length - 1 + index, 240)),
		],
		connections: {
			...Object.fromEntries(
				nodes.slice(1).map((node, index) => [nodes[index]?.name ?? '', to(node.name, 'main')]),
			),
			...Object.fromEntries(below.map(({ node, by }) => [node.name, to(last, by)])),
		},
		// The editor gives new workflows this setting. In the older order, an agent goes on before its tools have run.
		settings: { executionOrder: 'v1' },
	};
}

/** A piece of an answer, as n8n streams it to a chat or a webhook: one line of JSON each. */
export interface Chunk {
	type: 'begin' | 'item' | 'end' | 'error';
	content?: string;
}

/** Yields the pieces of a streamed answer, each as soon as it arrives. */
export async function* chunksOf(response: Response): AsyncGenerator<Chunk> {
	if (response.body === null) return;
	const decoder = new TextDecoder();
	let rest = '';
	for await (const bytes of response.body) {
		const lines = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split('\n');
		rest = lines.pop() ?? '';
		for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Chunk;
	}
	if (rest.trim() !== '') yield JSON.parse(rest) as Chunk;
}

/** The text of an answer alone. */
export function textOf(chunks: readonly Chunk[]): string {
	return chunks
		.filter(({ type }) => type === 'item')
		.map(({ content = '' }) => content)
		.join('');
}

/**
 * Asks for twelve words of which the model holds back the last eight until the first four were heard, and expects all.
 * The model says nothing more before it is released, so everything heard by then was streamed live.
 */
export async function expectLiveWords(
	n8n: RunningN8n,
	path: string,
	platform: LocalPlatform,
): Promise<string> {
	const response = await n8n.client.callWebhook(path, { question: '[words: 12] [hold after: 4]' });
	const heard: Chunk[] = [];
	let wasReleased = false;
	for await (const chunk of chunksOf(response)) {
		heard.push(chunk);
		// A last digit is held back, because a secret may begin with it.
		if (wasReleased || !/word3 word4?$/.test(textOf(heard))) continue;
		expect(platform.books().chats).toEqual([expect.objectContaining({ endedAt: null })]);
		expect(platform.chat.release()).toBe(1);
		wasReleased = true;
	}
	expect(wasReleased).toBe(true);
	expect([heard[0]?.type, heard.at(-1)?.type]).toEqual(['begin', 'end']);
	const words = Array.from({ length: 12 }, (_, index) => `word${index + 1}`).join(' ');
	expect(textOf(heard)).toBe(words);
	return words;
}
