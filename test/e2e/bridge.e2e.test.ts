// AgentBridge in a real n8n: a trigger that stays connected, and an action that answers.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPlatform, type BridgeChannel, type LocalPlatform } from '../platform';
import { until } from '../until';
import { packedTarball } from './packOnce';
import { outputItems, startN8n } from './runner';
import type { RunningN8n, SavedCredential, SavedWorkflow, WorkflowDocument } from './runner';

const START_DEADLINE_MS = 200_000;
/** For what takes seconds: two slow cores, n8n's own start and the tests share them. */
const DEADLINE_MS = 150_000;
const PATIENCE = { withinMs: DEADLINE_MS, everyMs: 50 };
const BURST = 10_000;

let platform: LocalPlatform;
let channel: BridgeChannel;
let n8n: RunningN8n;
let account: SavedCredential;
let inbox: SavedWorkflow;
const userFolder = mkdtempSync(join(tmpdir(), 'bridge-n8n-'));

beforeAll(async () => {
	platform = await startPlatform();
	channel = platform.createChannel();
	n8n = await startN8n({ userFolder, tarball: packedTarball() });
	account = await n8n.client.createCredential(
		'flowBridgeApi',
		'FlowBridge account',
		credential(channel.token),
	);
	inbox = await n8n.client.createWorkflow(answering(account));
}, START_DEADLINE_MS);

afterAll(async () => {
	await n8n?.stop();
	await platform?.close();
	rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
});

function credential(channelToken: string): Record<string, string> {
	return { channelToken, wsBaseUrl: platform.wsUrl };
}

/** Every message that comes over the bridge is answered over it. */
function answering({ id, name }: SavedCredential): WorkflowDocument {
	const credentials = { flowBridgeApi: { id, name } };
	return {
		name: 'Inbox',
		nodes: [
			{
				id: 'trigger',
				name: 'AgentBridge Trigger',
				type: 'n8n-nodes-flowtask.agentBridgeTrigger',
				typeVersion: 1,
				position: [0, 0],
				parameters: { eventPath: 'type', eventFilter: 'message', idPath: 'id', options: {} },
				credentials,
			},
			{
				id: 'answer',
				name: 'Answer',
				type: 'n8n-nodes-flowtask.agentBridge',
				typeVersion: 1,
				position: [220, 0],
				parameters: {
					operation: 'send',
					frame: '={{ { type: "message", reply_to: $json.frameId, text: "Re: " + $json.frame.text } }}',
					options: {},
				},
				credentials,
			},
		],
		connections: { 'AgentBridge Trigger': { main: [[{ node: 'Answer', type: 'main', index: 0 }]] } },
	};
}

const answers = (): Array<Record<string, unknown>> =>
	platform.books().bridge.received.map(({ frame }) => frame);

test('the credential is tested by a connection', async () => {
	const { id, name, type } = account;
	const tested = async (token: string): Promise<{ status: string; message: string }> =>
		await n8n.client.call('POST', '/rest/credentials/test', {
			credentials: { id, name, type, data: credential(token) },
		});
	expect(await tested(channel.token)).toMatchObject({ status: 'OK' });
	const refused = await tested('wst_of_nobody');
	expect(refused.status).toBe('Error');
	expect(refused.message).toContain('refused the channel token (HTTP 401)');
	expect(refused.message).not.toContain('wst_of_nobody');
});

test('10,000 frames in a burst: in order, none lost, each answered through the action', async () => {
	await n8n.client.activate(inbox);
	await until(() => channel.open === 1, 'the trigger is connected', PATIENCE);
	platform.resetBooks();

	const ids = channel.pushBurst(BURST);

	await until(() => answers().length >= BURST, 'all answers', PATIENCE);
	expect(answers().map(({ reply_to: id }) => id)).toEqual(ids);
	expect(answers().at(-1)?.text).toBe(`Re: Message ${BURST - 1}`);
	await until(() => channel.open === 1, 'only the trigger is connected', PATIENCE);
	const { bridge, leaks } = platform.books();
	// The trigger and one execution at a time.
	expect([bridge.maxOpen, leaks]).toEqual([2, []]);
	expect(bridge.connections.length).toBeLessThan(300);

	const [newest] = await n8n.client.listExecutions(inbox);
	const execution = await n8n.client.waitForExecution(newest?.id ?? '');
	expect(execution.status).toBe('success');
	const items = outputItems(execution, 'AgentBridge Trigger');
	expect(items.at(-1)?.json).toMatchObject({ event: 'message', frameId: ids.at(-1) });
	expect(JSON.stringify(execution)).not.toContain(channel.token);
	expect(n8n.log.errors()).toEqual([]);
});

test('the platform is stopped and started again: the trigger is back and goes on', async () => {
	const { port } = new URL(platform.apiUrl);
	const { token } = channel;
	await platform.close();
	platform = await startPlatform({ port: Number(port) });
	channel = platform.createChannel({ token });
	await until(() => channel.open === 1, 'the trigger is back', PATIENCE);

	const ids = channel.pushBurst(25);

	await until(() => answers().length >= ids.length, 'all answers', PATIENCE);
	expect(answers().map(({ reply_to: id }) => id)).toEqual(ids);
	expect(n8n.log.errors()).toEqual([]);
});

test('deactivating closes the connection, and nothing comes back', async () => {
	await n8n.client.deactivate(inbox);
	await until(() => channel.open === 0, 'the trigger is gone', PATIENCE);
	const { connections } = platform.books().bridge;
	expect(connections[0]).toMatchObject({ closeCode: 1000, closedBy: 'client' });
	const handshakes = platform.books().requests.bridge;
	channel.push({ text: 'nobody is there' });
	await sleep(2_000);
	expect(platform.books().requests.bridge).toBe(handshakes);
});

test('a refused token fails the activation with a sentence', async () => {
	channel.refuse(403);
	await expect(n8n.client.activate(await n8n.client.createWorkflow(answering(account)))).rejects.toThrow(
		'refused the channel token (HTTP 403)',
	);
	// What was logged over all of this, refusals included.
	expect(n8n.log.text()).not.toContain(channel.token);
	expect(n8n.log.text()).not.toContain(Buffer.from(channel.token).toString('base64url'));
});
