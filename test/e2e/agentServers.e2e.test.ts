// A chat with agents on the servers of other makers, in a real n8n: the answer arrives in pieces, an interrupt is
// approved by Resume, and the session continues.
import { descriptionOf, REAL_CASES, type RealCase } from '../wires/cases';
import { TOKEN, type RealServer } from '../wires/realServer';
import { chatTrigger, chunksOf, inARow, textOf, type Chunk } from './chatWorkflows';
import type { SavedCredential, WorkflowDocument } from './runner';
import { serviceStage } from './stage';

const START_MS = 60_000;

const stage = serviceStage('flowtask-agent-servers-');

const SERVERS = REAL_CASES.filter(({ name }) => ['LangGraph', 'A2A 1.0'].includes(name));

test('both servers are used', () => {
	expect(SERVERS).toHaveLength(2);
});

/** A chat with an agent, in which a second node approves what the agent asks for. */
function approvingChat(path: string, real: RealCase, { id, name }: SavedCredential): WorkflowDocument {
	const type = 'n8n-nodes-flowtask.agentInvoke';
	const credentials = { flowAgentApi: { id, name } };
	const ask = {
		...{ name: 'Agent Invoke', type, credentials },
		parameters: { message: '={{ $json.chatInput }}', sessionKey: '={{ $json.sessionId }}', stream: true },
	};
	const chat = inARow(`Chat with ${real.name}`, [chatTrigger(path, 'streaming'), ask]);
	const approve = {
		...{ id: 'approve', name: 'Approve', type, typeVersion: 1, credentials },
		position: [440, 100] satisfies [number, number],
		parameters: { operation: 'resume', result: real.approval, stream: true },
	};
	const onInterrupt = { main: [[], [{ node: 'Approve', type: 'main', index: 0 }]] };
	return {
		...chat,
		nodes: [...chat.nodes, approve],
		connections: { ...chat.connections, 'Agent Invoke': onInterrupt },
	};
}

describe.each(SERVERS)('$name', (real) => {
	const path = `chat-${real.description}`;
	let server: RealServer;

	beforeAll(async () => {
		server = await real.open();
		const account = await stage.n8n.client.createCredential('flowAgentApi', real.name, {
			agentToken: TOKEN,
			baseUrl: server.baseUrl,
			invokePath: real.invokePath,
			mediaUploadPath: '',
			wire: 'described',
			description: descriptionOf(real),
		});
		const workflow = await stage.n8n.client.createWorkflow(approvingChat(path, real, account));
		await stage.n8n.client.activate(workflow);
	}, START_MS);

	afterAll(async () => {
		await server?.stop();
	});

	async function say(chatInput: string): Promise<Chunk[]> {
		const body = { action: 'sendMessage', sessionId: 'visitor-1', chatInput };
		const response = await stage.n8n.client.callWebhook(`${path}/chat`, body);
		const chunks: Chunk[] = [];
		for await (const chunk of chunksOf(response)) chunks.push(chunk);
		return chunks;
	}

	test('streams an answer, lets an interrupt be approved, and continues', async () => {
		const first = await say('one two three four');
		expect(textOf(first)).toBe('1: one two three four');
		expect(first.filter(({ type }) => type === 'item').length).toBeGreaterThan(2);
		expect(textOf(await say('pay'))).toMatch(/given \[.*approve/);
		expect(textOf(await say('thanks'))).toBe('3: thanks');
		expect(server.ran).toHaveLength(3);
	});
});

test('n8n logs no errors', () => {
	expect(stage.n8n.log.errors()).toEqual([]);
});
