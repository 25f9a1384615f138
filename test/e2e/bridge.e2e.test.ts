// Tests AgentBridge in a real n8n: a trigger that stays connected, and an action that answers.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPlatform, type BridgeChannel, type LocalPlatform } from '../platform';
import { until } from '../until';
import { answers as answerNode, bridgeInbox, REPLY, thinks } from './bridgeWorkflows';
import { packedTarball } from './packOnce';
import { outputItems, startN8n } from './runner';
import type { RunningN8n, SavedCredential, SavedWorkflow, WorkflowDocument } from './runner';

const START_DEADLINE_MS = 200_000;
/** Generous, although the work takes seconds: n8n's own start and the tests may share two slow cores. */
const DEADLINE_MS = 150_000;
const PATIENCE = { withinMs: DEADLINE_MS, everyMs: 50 };
const BURST = 10_000;
const SMALL_BURST = 1_000;

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

/** A workflow that answers every message from the bridge over the bridge. */
function answering(saved: SavedCredential): WorkflowDocument {
	return bridgeInbox('Inbox', saved, {}, [answerNode(saved)]);
}

const answers = (): Array<Record<string, unknown>> =>
	platform.books().bridge.received.map(({ frame }) => frame);

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
	// The trigger and one execution at a time are connected.
	expect([bridge.maxOpen, leaks]).toEqual([2, []]);
	expect(bridge.connections.length).toBeLessThan(300);

	const [newest] = await n8n.client.listExecutions(inbox);
	const execution = await n8n.client.waitForExecution(newest?.id ?? '');
	expect(execution.status).toBe('success');
	const items = outputItems(execution, 'Agent Bridge Trigger');
	expect(items.at(-1)?.json).toMatchObject({ event: 'message', frameId: ids.at(-1) });
	expect(JSON.stringify(execution)).not.toContain(channel.token);
	expect(n8n.log.errors()).toEqual([]);
});

test('the trigger reconnects and goes on after the platform is stopped and started again', async () => {
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

test('deactivating closes the connection, and it is not opened again', async () => {
	await n8n.client.deactivate(inbox);
	await until(() => channel.open === 0, 'the trigger is gone', PATIENCE);
	const { connections } = platform.books().bridge;
	expect(connections[0]).toMatchObject({ closeCode: 1000, closedBy: 'client' });
	const handshakes = platform.books().requests.bridge;
	channel.push({ text: 'nobody is there' });
	await sleep(2_000);
	expect(platform.books().requests.bridge).toBe(handshakes);
});

describe('an account that may have only one connection', () => {
	test.each([
		['Reply of the trigger', { reply: REPLY }, () => thinks()],
		[
			"Send over the trigger's connection",
			{},
			(saved: SavedCredential) => answerNode(saved, { useTriggerConnection: true }),
		],
	])(
		`%s: ${SMALL_BURST} frames, each answered once, the trigger never displaced`,
		async (name, options, step) => {
			const single = platform.createChannel({ oneSocket: true });
			const saved = await n8n.client.createCredential('flowBridgeApi', name, credential(single.token));
			const workflow = await n8n.client.createWorkflow(bridgeInbox(name, saved, options, [step(saved)]));
			await n8n.client.activate(workflow);
			await until(() => single.open === 1, 'the trigger is connected');
			platform.resetBooks();

			const ids = single.pushBurst(SMALL_BURST);

			await until(() => answers().length >= SMALL_BURST, 'all answers');
			expect(answers()).toEqual(
				ids.map((id, i) => ({ type: 'message', text: `Re: Message ${i}`, reply_to: id })),
			);
			const { connections, maxOpen } = platform.books().bridge;
			expect([connections.length, maxOpen]).toEqual([1, 1]);
			await n8n.client.deactivate(workflow);
			await until(() => single.open === 0, 'the trigger is gone');
		},
	);
});

test('a refused token fails the activation with a clear message', async () => {
	channel.refuse(403);
	await expect(n8n.client.activate(await n8n.client.createWorkflow(answering(account)))).rejects.toThrow(
		'refused the channel token (HTTP 403)',
	);
	// This covers everything that was logged, refusals included.
	expect(n8n.log.text()).not.toContain(channel.token);
	expect(n8n.log.text()).not.toContain(Buffer.from(channel.token).toString('base64url'));
});
