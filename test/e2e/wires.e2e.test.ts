// Tests ready-made descriptions in a real n8n, pasted into the credential as by a person, against strict simulations of
// their products: the credential test, a stream, an interrupt and its answer, and the session of a key afterwards.
import { accountOf, dialectCases, type DialectCase } from '../nodes/AgentInvoke/dialects/dialectCases';
import { StandIn } from '../nodes/AgentInvoke/dialects/standIn';
import { askAgent, type AgentItem, type Ask } from './agentWorkflows';
import { chunksOf, textOf, webhook, type Chunk } from './chatWorkflows';
import type { SavedCredential, WorkflowDocument } from './runner';
import { serviceStage } from './stage';

const CALL_DEADLINE_MS = 30_000;
/** A text with all kinds of characters that a cut between two pieces could damage. */
const TEXT = 'Grüße, “you”: 日本語 and 🙂';

const stage = serviceStage('flowtask-wires-');

const WIRES = dialectCases.filter(({ description }) => ['dify', 'responses'].includes(description));

test('two of the descriptions are used', () => {
	expect(WIRES).toHaveLength(2);
});

/** `askAgent` with a second node that answers interrupts. */
function service(path: string, account: SavedCredential): WorkflowDocument {
	const asking = askAgent(path, account);
	const resume = {
		id: 'resume',
		name: 'Resume',
		type: 'n8n-nodes-flowtask.agentInvoke',
		typeVersion: 1,
		position: [440, 100] satisfies [number, number],
		parameters: { operation: 'resume', result: 'paid' },
		credentials: { flowAgentApi: { id: account.id, name: account.name } },
	};
	return {
		...asking,
		nodes: [...asking.nodes, resume],
		connections: {
			...asking.connections,
			'Agent Invoke': { main: [[], [{ node: 'Resume', type: 'main', index: 0 }]] },
		},
	};
}

function streamed(path: string, account: SavedCredential): WorkflowDocument {
	const asking = askAgent(path, account, { stream: true });
	const hook = webhook(path, 'streaming');
	return { ...asking, nodes: asking.nodes.map((node) => (node.id === 'hook' ? { ...node, ...hook } : node)) };
}

describe.each(WIRES)('$name', (dialect: DialectCase) => {
	const path = `ask-${dialect.description}`;
	let server: StandIn;
	let account: SavedCredential;

	beforeAll(async () => {
		server = await StandIn.open(dialect.server);
		account = await stage.n8n.client.createCredential(
			'flowAgentApi',
			dialect.name,
			accountOf(dialect, server),
		);
		for (const document of [service(path, account), streamed(`${path}-streamed`, account)])
			await stage.n8n.client.activate(await stage.n8n.client.createWorkflow(document));
	}, CALL_DEADLINE_MS);

	afterAll(async () => {
		await server?.close();
	});

	beforeEach(() => {
		server.reset();
	});

	/** Calls the workflow, which starts one execution. */
	async function ask(body: Ask): Promise<AgentItem> {
		const response = await stage.n8n.client.callWebhook(path, body, CALL_DEADLINE_MS);
		return JSON.parse(await response.text()) as AgentItem;
	}

	test('the credential test accepts it, and the agent does not run', async () => {
		const { id, name, type } = account;
		const data = accountOf(dialect, server);
		const credentials = { id, name, type, data };
		expect(await stage.n8n.client.call('POST', '/rest/credentials/test', { credentials })).toMatchObject({
			status: 'OK',
		});
		expect(server.requests.filter(({ verdict }) => verdict === 'ran')).toEqual([]);
	});

	test('a streamed answer reaches the caller of the webhook in pieces', async () => {
		server.plan = () => ({ says: TEXT });
		const body: Ask = { key: 'streams', say: 'hello' };
		const response = await stage.n8n.client.callWebhook(`${path}-streamed`, body, CALL_DEADLINE_MS);
		const chunks: Chunk[] = [];
		for await (const chunk of chunksOf(response)) chunks.push(chunk);
		expect(textOf(chunks)).toBe(TEXT);
		expect(chunks.filter(({ type }) => type === 'item').length).toBeGreaterThan(1);
		expect(server.requests.map(({ verdict }) => verdict)).toEqual(['ran']);
	});

	test('an interrupt goes to its own output, Resume answers it, and the key continues afterwards', async () => {
		const refund = { kind: 'tool', tool: 'refund', arguments: { order: 'A-1043' } } as const;
		server.plan = (said) => (said === 'refund it' ? { asks: [refund] } : {});
		expect(await ask({ key: 'interrupted', say: 'refund it' })).toMatchObject({ answer: 'given paid' });
		const next = await ask({ key: 'interrupted', say: 'thank you' });
		expect(next).toMatchObject({ answer: '2: thank you', session: { source: 'mapped' } });
		expect(server.conversations).toEqual([
			{ turns: ['refund it', 'thank you'], results: [{ id: expect.any(String), output: 'paid' }] },
		]);
		expect(server.requests.map(({ verdict, problem }) => verdict + problem)).toEqual(['ran', 'ran', 'ran']);
	});
});

test('n8n logs no errors', () => {
	expect(stage.n8n.log.errors()).toEqual([]);
});
