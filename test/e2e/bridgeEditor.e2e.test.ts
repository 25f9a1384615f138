// AgentBridge in n8n's own editor, in a real browser, as a person sees it who tries it for the first time.
import type { BridgeChannel, LocalPlatform } from '../platform';
import { until } from '../until';
import type { Editor } from './browser';
import { docsImage } from './browser';
import { inARow } from './chatWorkflows';
import type { RunningN8n, SavedWorkflow } from './runner';
import { editorStage } from './stage';

let platform: LocalPlatform;
let channel: BridgeChannel;
let n8n: RunningN8n;
let editor: Editor;
let workflow: SavedWorkflow;
const stage = editorStage('bridge-editor-', {
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		channel = platform.createChannel();
		const { id, name } = await n8n.client.createCredential('flowBridgeApi', 'FlowBridge account', {
			channelToken: channel.token,
			wsBaseUrl: platform.wsUrl,
		});
		const node = { typeVersion: 1, parameters: {}, credentials: { flowBridgeApi: { id, name } } };
		const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger' };
		const ask = { ...node, name: 'Agent Bridge', type: 'n8n-nodes-flowtask.agentBridge' };
		const document = inARow('Support inbox', [start, ask]);
		document.nodes.push({
			...node,
			...{ id: 'trigger', name: 'Agent Bridge Trigger', position: [0, 240] },
			type: 'n8n-nodes-flowtask.agentBridgeTrigger',
		});
		workflow = await n8n.client.createWorkflow(document);
	},
});

beforeAll(async () => {
	({ editor } = stage);
	await editor.openWorkflow(workflow);
});

test('the trigger shows the first frame that arrives, and closes the connection', async () => {
	await editor.openNode('Agent Bridge Trigger');
	const executed = editor.executeStep();
	await until(() => channel.open === 1, 'the test listens');
	channel.push({ conversation_id: 'c-17', text: 'Where is my order A-1042?' });
	await executed;
	await editor.output.getByText('Where is my order A-1042?').first().waitFor();
	await editor.dismissMessages();
	await docsImage(editor.page, 'bridge-trigger');
	await until(() => platform.books().bridge.open === 0, 'the connection is closed');
	await editor.closeNode();
});

test('the action sends a request and gets the reply; missing values are reported before anything is sent', async () => {
	await editor.openNode('Agent Bridge');
	await editor.paste('frame', '{"type": "message", "text": "Where is my order? [tool]"}');
	await editor.type('eventFilter', ' ');
	const before = platform.books().bridge.received.length;
	await editor.executeStep();
	await editor.output.getByText('The node cannot tell which frame is the reply').first().waitFor();
	expect(platform.books().bridge.received).toHaveLength(before);

	await editor.type('eventFilter', 'message, interrupt');
	await editor.type('correlationPath', 'id');
	await editor.type('replyPath', 'correlation_id');
	await editor.executeStep();
	await editor.output.getByText('Agent: Where is my order? [tool]').first().waitFor();
	await editor.dismissMessages();
	await docsImage(editor.page, 'bridge-request');
	expect(platform.books().bridge.received.at(-1)?.frame).toMatchObject({ text: 'Where is my order? [tool]' });
	expect(n8n.log.text()).not.toContain(channel.token);
});
