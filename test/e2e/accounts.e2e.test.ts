// A credential whose key is an expression over the item: every node reaches the platform with each item's own account.
import type { LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { batchService, pictures } from './batchService';
import { asks, chatCompletion, modelById } from './chatWorkflows';
import { failureOf } from './runner';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';
import { noteSecrets } from './runner/secretHunt';
import { serviceStage } from './stage';

const RUN_DEADLINE_MS = 120_000;
const TURNS = ['anna', 'ben', 'anna', 'ben', 'ben', 'anna'];

type Node = WorkflowDocument['nodes'][number];
type Output = Record<string, unknown>;

interface Account {
	/** The part of the account's API key after `sk-`. */
	key: string;
	/** The part of its agent's token after `agt_`. */
	token: string;
	agentId: string;
	/** The workflow, which only its owner can use. */
	flow: string;
}

const stage = serviceStage(
	'flowtask-accounts-',
	{ runners: 20, taskMs: 50, images: 'prepared' },
	{ env: { DB_LOGGING_ENABLED: 'true', DB_LOGGING_OPTIONS: 'query' } },
);
const accounts = new Map<string, Account>();
let platform: LocalPlatform;
let n8n: RunningN8n;
let perItem: SavedCredential;

beforeAll(async () => {
	({ platform, n8n } = stage);
	for (const name of ['anna', 'ben']) {
		const { apiKey } = platform.createOwner(name);
		const { token, agentId } = platform.createAgent({ name });
		const { workflowId: flow } = await platform.hostWorkflow(textToImage, { apiKey });
		accounts.set(name, { key: apiKey.slice('sk-'.length), token: token.slice('agt_'.length), agentId, flow });
		// Items contain only a part of the key, so the whole key must not appear anywhere.
		noteSecrets(stage.userFolder, { apiKey, token });
	}
	perItem = await n8n.client.createCredential('flowPlatformApi', 'Account of the item', {
		apiKey: '=sk-{{ $json.key.key }}',
		baseUrl: platform.apiUrl,
		wsBaseUrl: '',
	});
});

beforeEach(() => {
	platform.resetBooks();
});

/** Makes an item per name, with its message and the fields that identify its account. */
function itemsOf(names: readonly string[]): object[] {
	return names.map((name, index) => ({ say: `${name} ${index}`, ...accounts.get(name) }));
}

/** Publishes a step as a service. @returns a function that runs it in an execution and returns the output items */
async function serviceOf(path: string, step: Node): Promise<(items: object[]) => Promise<Output[]>> {
	const workflow = await n8n.client.createWorkflow(
		batchService({ path, answers: 'lastNode', steps: [step] }),
	);
	await n8n.client.activate(workflow);
	return async (keys) => {
		const response = await n8n.client.callWebhook(path, { keys }, RUN_DEADLINE_MS);
		const answer: unknown = JSON.parse(await response.text());
		if (!Array.isArray(answer)) throw new Error(`no items: ${JSON.stringify(answer).slice(0, 500)}`);
		return answer as Output[];
	};
}

function images(name: string, account: SavedCredential, workflowId: string): Node {
	const parameters = { output: 'urls', limits: { requestsPerSecond: 0 } };
	return pictures(name, account, workflowId, parameters, '={{ $json.key.say }}');
}

function chats(account: SavedCredential): Node {
	const step = chatCompletion(account, {
		model: modelById('plain-1'),
		messages: asks('={{ $json.key.say }}'),
	});
	return { id: 'chat', type: '', typeVersion: 1, position: [400, 0], parameters: {}, ...step };
}

function turns(account: SavedCredential, session: Node['parameters']): Node {
	return {
		...{ id: 'agent', name: 'Agent', type: 'n8n-nodes-flowtask.agentInvoke', typeVersion: 1 },
		...{ position: [400, 0], parameters: { message: '={{ $json.key.say }}', ...session } },
		credentials: { [account.type]: { id: account.id, name: account.name } },
	};
}

/** Matches the read by ID and type that precedes decryption, not the check of who may use the credential. */
const READ = /FROM "credentials_entity".*WHERE.*"id" = \?.*"type" = \?/;

async function readsOf(work: () => Promise<unknown>): Promise<number> {
	const before = n8n.log.lines.length;
	await work();
	return n8n.log.lines.slice(before).filter(({ message }) => READ.test(message)).length;
}

const expected = (names: readonly string[]): string[][] => names.map((name, i) => [`${name} ${i}`, name]);
const byItem = (pairs: string[][]): string[][] =>
	pairs.sort(([a = ''], [b = '']) => Number(a.split(' ')[1]) - Number(b.split(' ')[1]));

test('FlowTask creates and watches each task with the key of its item, and outputs them in order', async () => {
	const call = await serviceOf('tasks', images('Pictures', perItem, '={{ $json.key.flow }}'));

	const output = await call(itemsOf(TURNS));

	const { tasks, polls, unauthorized, duplicates } = platform.books();
	const said = ({ prompt }: (typeof tasks)[number]): string =>
		/\w+ \d+(?=")/.exec(JSON.stringify(prompt))?.[0] ?? '';
	expect(byItem(tasks.map((task) => [said(task), task.owner]))).toEqual(expected(TURNS));
	expect([unauthorized, duplicates]).toEqual([0, 0]);
	expect(polls.filter(({ unknown }) => unknown > 0)).toEqual([]);
	const made = new Map(tasks.map((task) => [task.taskId, said(task)]));
	expect(output.map(({ taskId }) => made.get(String(taskId)))).toEqual(expected(TURNS).map(([item]) => item));
	expect(output.map(({ status }) => status)).toEqual(TURNS.map(() => 'succeeded'));
});

test('AgentInvoke calls the agent of each item, and one session key has a separate session with each agent', async () => {
	const token = await n8n.client.createCredential('flowAgentApi', 'Agent of the item', {
		agentToken: '=agt_{{ $json.key.token }}',
		baseUrl: platform.apiUrl,
	});
	const call = await serviceOf('turns', turns(token, { sessionKey: 'the same for all' }));

	const output = await call(itemsOf(TURNS));

	const nameOf = new Map([...accounts].map(([name, { agentId }]) => [agentId, name]));
	const { invocations, sessions, agentRefusals } = platform.books();
	const heard = invocations.map(({ message, agentId }) => [message ?? '', nameOf.get(agentId) ?? '']);
	expect(byItem(heard)).toEqual(expected(TURNS));
	expect([sessions.length, agentRefusals]).toEqual([2, {}]);
	const ownerOf = new Map(sessions.map(({ sessionId, agentId }) => [sessionId, nameOf.get(agentId)]));
	const told = output.map(({ session }) => ownerOf.get(String(Reflect.get(Object(session), 'id'))));
	expect(told).toEqual(TURNS);
});

test.each([
	['an AI Agent', { type: '@n8n/n8n-nodes-langchain.agent', typeVersion: 3.1 }],
	['a chain', { type: '@n8n/n8n-nodes-langchain.chainLlm', typeVersion: 1.9 }],
])(
	'%s, to which n8n gives the chat model of item 0, asks nothing for an item of another account',
	async (path, kind) => {
		const parameters = { promptType: 'define', text: '={{ $json.key.say }}', options: {} };
		const asker: Node = { id: 'asker', name: 'Asker', position: [400, 0], parameters, ...kind };
		const document = batchService({ path, answers: 'lastNode', steps: [asker] });
		const model = { name: 'Model', type: 'n8n-nodes-flowtask.lmChatFlowPlatform' };
		document.nodes.push({ ...chats(perItem), ...model });
		document.connections.Model = {
			ai_languageModel: [[{ node: 'Asker', type: 'ai_languageModel', index: 0 }]],
		};
		const workflow = await n8n.client.createWorkflow({ ...document, settings: { executionOrder: 'v1' } });
		await n8n.client.activate(workflow);
		const callAs = async (...names: string[]) =>
			await n8n.client.callWebhook(path, { keys: itemsOf(names) }, RUN_DEADLINE_MS);

		await callAs('anna', 'anna', 'ben');
		expect(platform.books().chats).toEqual([]);
		const [failed] = await n8n.client.listExecutions(workflow);
		expect(failureOf(await n8n.client.waitForExecution(failed!.id))).toContain('item 2 needs another key');

		// As stored, once per item to compare them, and at most once per item to supply the model.
		expect(await readsOf(async () => await callAs('anna', 'anna', 'anna'))).toBeLessThanOrEqual(7);
		expect(platform.books().chats.map(({ owner }) => owner)).toEqual(['anna', 'anna', 'anna']);
	},
);

describe('a plain credential is read at most twice in a run, however many items there are', () => {
	test.each([
		['Flow Task', (workflowId: string) => images('Pictures', stage.account, workflowId)],
		['Chat Completion', () => chats(stage.account)],
		['Agent Invoke', () => turns(stage.agent, { sessionMode: 'new' })],
	] as const)('by %s', async (name, step) => {
		const { workflowId } = await platform.hostWorkflow(textToImage);
		const call = await serviceOf(`reads-${name}`, step(workflowId));
		const items = Array.from({ length: 40 }, (_, index) => ({ say: `item ${index}` }));

		const reads = await readsOf(async () => expect(await call(items)).toHaveLength(items.length));

		expect(reads).toBeGreaterThan(0);
		expect(reads).toBeLessThanOrEqual(2);
	});

	test('reads of a credential appear in the log: one that depends on the item is read for each item', async () => {
		const call = await serviceOf('reads-each', chats(perItem));
		expect(await readsOf(async () => await call(itemsOf(TURNS)))).toBeGreaterThanOrEqual(TURNS.length);
	});
});
