import type { INodeParameters } from 'n8n-workflow';

import { until } from '../../until';
import { NODE_NAME, to, type ActiveTrigger, type WorkflowJson } from '../harness';
import { freshStage } from '../harness/stage';
import { openStage } from './agentBridge.fixture';

// Frames that the action hands over to the trigger, for accounts that may have only one connection.

const stage = freshStage(openStage, { oneSocket: true });

const SEND: INodeParameters = {
	operation: 'send',
	frame: '={{ { type: "message", reply_to: $json.frameId, text: "Re: " + $json.frame.text } }}',
	options: { useTriggerConnection: true },
};

/** A workflow of the trigger, the action and a node that may fail. */
function workflow(parameters: INodeParameters = SEND, last = '{}'): WorkflowJson {
	return {
		nodes: [
			{ name: NODE_NAME, type: 'n8n-nodes-flowtask.agentBridgeTrigger', parameters: { idPath: 'id' } },
			{ name: 'Send', type: 'n8n-nodes-flowtask.agentBridge', parameters },
			{ name: 'Last', type: 'harness.set', parameters: { json: last } },
		],
		connections: { [NODE_NAME]: { main: [to('Send')] }, Send: { main: [to('Last')] } },
	};
}

async function activate(...of: Parameters<typeof workflow>): Promise<ActiveTrigger> {
	const trigger = await stage.harness.activate({
		workflow: workflow(...of),
		credentials: stage.credentials,
	});
	await until(() => stage.channel.open === 1, 'the connection');
	return trigger;
}

const received = (): string[] => stage.platform.books().bridge.received.map(({ text }) => text);

test("sends all frames of an execution over the trigger's connection, in order", async () => {
	const trigger = await activate();
	const ids = stage.channel.pushBurst(20);
	await until(() => received().length === 20);
	expect(received()).toEqual(
		ids.map((id, i) => JSON.stringify({ type: 'message', reply_to: id, text: `Re: Message ${i}` })),
	);
	const { connections, maxOpen } = stage.platform.books().bridge;
	expect([connections.length, maxOpen, connections[0]?.closeCode]).toEqual([1, 1, null]);
	expect(trigger.runs.at(-1)?.output('Send').at(-1)?.json).toMatchObject({ handedOver: true });
});

test('sends frames at once, not at the end of the execution, which may fail', async () => {
	const trigger = await activate(SEND, '={{ $json.nobody.there }}');
	stage.channel.push({ text: 'x' });
	await trigger.waitForRuns(1);
	expect(trigger.runs[0]?.status).toBe('error');
	await until(() => received().length === 1);
});

test('sends pasted text unchanged, including long numbers', async () => {
	const frame = '{ "n": 12345678901234567890, "reply_to": "x" }';
	await activate({ ...SEND, frame });
	stage.channel.push({ text: 'x' });
	// The channel answers an unknown frame, which starts the workflow again.
	await until(() => received().length > 0);
	expect(received()[0]).toBe(frame);
});

test("in n8n's Retry no trigger listens, so the frame is sent over a connection of its own", async () => {
	const trigger = await activate({ ...SEND, frame: '={{ $json.nobody.there }}' });
	stage.channel.push({ text: 'x' });
	await trigger.waitForRuns(1);
	const [failed] = trigger.runs;
	if (!failed) throw new Error('no run');
	expect(received()).toEqual([]);
	const run = await stage.harness.retry(failed, workflow());
	expect(run.output('Send')[0]?.json).toMatchObject({ sent: true, frame: { text: 'Re: x' } });
	expect(received()).toHaveLength(1);
});

test('opens a connection of its own in a test in the editor', async () => {
	const testing = stage.runWorkflow(workflow(), [{}], { mode: 'manual' });
	await until(() => stage.channel.open === 1);
	stage.channel.push({ text: 'x' });
	expect((await testing).output('Send')[0]?.json).toMatchObject({ sent: true });
	expect(received()).toHaveLength(1);
	expect(stage.platform.books().bridge.maxOpen).toBe(1);
});

test('fails for an item whose frame is too large', async () => {
	const frame = '={{ { text: "x".repeat(16000000) } }}';
	const trigger = await activate({ ...SEND, frame });
	stage.channel.push({ text: 'x' });
	await trigger.waitForRuns(1);
	expect(trigger.runs[0]?.error?.message).toBe('The frame is larger than 16 million characters');
	expect(received()).toEqual([]);
});

test('says after another trigger that there is no such connection', async () => {
	const run = await stage.run([{ json: { frameId: '1', frame: { text: 'x' } } }], SEND);
	expect(run.error?.message).toContain('not started by an Agent Bridge Trigger');
	expect(stage.platform.books().requests.bridge).toBe(0);
});

test('displaces the trigger if the option is off', async () => {
	const trigger = await activate({ ...SEND, options: {} });
	stage.channel.push({ text: 'x' });
	await trigger.waitForRuns(1);
	await until(() => stage.platform.books().bridge.connections.length >= 2);
	expect(received()).toHaveLength(1);
});
