// A credential whose key is an expression over the item: a run uses one account, and each run may use another.
import type { LocalPlatform } from '../platform';
import textToImage from '../platform/workflows/text-to-image.json';
import { batchService, pictures } from './batchService';
import { asks, chatCompletion, modelById } from './chatWorkflows';
import { failureOf } from './runner';
import type { RunningN8n, SavedCredential, WorkflowDocument } from './runner';
import { noteSecrets } from './runner/secretHunt';
import { serviceStage } from './stage';

const RUN_DEADLINE_MS = 120_000;

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
	const parameters = { options: { output: 'urls' }, limits: { requestsPerSecond: 0 } };
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

const SEVERAL = 'different values for rows 1 and 3 of the input';

/** Calls a service with items of two accounts, which it must refuse, and then with those of each account. */
async function callEach(path: string, step: Node): Promise<Map<string, Output[]>> {
	const call = await serviceOf(path, step);
	platform.resetBooks();
	const refused = await n8n.client.callWebhook(
		path,
		{ keys: itemsOf(['anna', 'anna', 'ben']) },
		RUN_DEADLINE_MS,
	);
	expect(await refused.text()).not.toContain('succeeded');
	const { tasks, invocations, chats } = platform.books();
	expect([tasks, invocations, chats]).toEqual([[], [], []]);
	const outputs = new Map<string, Output[]>();
	for (const name of ['anna', 'ben']) outputs.set(name, await call(itemsOf([name, name])));
	return outputs;
}

test('FlowTask refuses items of two accounts, and each run uses the account of its items', async () => {
	const outputs = await callEach('tasks', images('Pictures', perItem, '={{ $json.key.flow }}'));

	const { tasks, unauthorized, duplicates } = platform.books();
	expect([unauthorized, duplicates]).toEqual([0, 0]);
	const ownerOf = new Map(tasks.map(({ taskId, owner }) => [taskId, owner]));
	for (const [name, output] of outputs) {
		expect(output.map(({ taskId, status }) => [ownerOf.get(String(taskId)), status])).toEqual(
			[name, name].map((owner) => [owner, 'succeeded']),
		);
	}
});

test('AgentInvoke refuses items of two agents, and a session key has a session with each agent', async () => {
	const token = await n8n.client.createCredential('flowAgentApi', 'Agent of the item', {
		agentToken: '=agt_{{ $json.key.token }}',
		baseUrl: platform.apiUrl,
	});
	const outputs = await callEach('turns', turns(token, { sessionKey: 'the same for all' }));

	const nameOf = new Map([...accounts].map(([name, { agentId }]) => [agentId, name]));
	const { sessions, agentRefusals } = platform.books();
	expect([sessions.length, agentRefusals]).toEqual([2, {}]);
	const ownerOf = new Map(sessions.map(({ sessionId, agentId }) => [sessionId, nameOf.get(agentId)]));
	for (const [name, output] of outputs) {
		const told = output.map(({ session }) => ownerOf.get(String(Reflect.get(Object(session), 'id'))));
		expect(told).toEqual([name, name]);
	}
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
		expect(failureOf(await n8n.client.waitForExecution(failed!.id))).toContain(SEVERAL);

		// As stored, once per item to compare them, and at most once per item to supply the model.
		expect(await readsOf(async () => await callAs('anna', 'anna', 'anna'))).toBeLessThanOrEqual(7);
		expect(platform.books().chats.map(({ owner }) => owner)).toEqual(['anna', 'anna', 'anna']);
	},
);

/** One whose key comes from the items is compared item by item. */
describe('a credential is read at most twice in a run, however many items there are', () => {
	test.each([
		['Flow Task', 2, (workflowId: string) => images('Pictures', stage.account, workflowId)],
		['Chat Completion', 2, () => chats(stage.account)],
		['Agent Invoke', 2, () => turns(stage.agent, { sessionMode: 'new' })],
		['Chat Completion with a key from the items', 1 + 40, () => chats(perItem)],
	] as const)('by %s', async (name, most, step) => {
		const { workflowId } = await platform.hostWorkflow(textToImage);
		const call = await serviceOf(`reads-${name.replaceAll(' ', '-')}`, step(workflowId));
		const items = itemsOf(Array.from({ length: 40 }, () => 'anna'));

		const reads = await readsOf(async () => expect(await call(items)).toHaveLength(items.length));

		expect(reads).toBeGreaterThan(0);
		expect(reads).toBeLessThanOrEqual(most);
	});
});
