// What a node says below its name on the canvas, evaluated as the editor does.
import { Workflow, type INodeParameters, type INodeTypes } from 'n8n-workflow';
import { AgentBridge } from '../../nodes/AgentBridge/AgentBridge.node';
import { AgentBridgeTrigger } from '../../nodes/AgentBridge/AgentBridgeTrigger.node';
import { AgentInvoke } from '../../nodes/AgentInvoke/AgentInvoke.node';
import { ChatCompletion } from '../../nodes/ChatCompletion/ChatCompletion.node';
import { FlowTask } from '../../nodes/FlowTask/FlowTask.node';

const NODES = { AgentBridge, AgentBridgeTrigger, AgentInvoke, ChatCompletion, FlowTask };

function subtitleOf(type: keyof typeof NODES, parameters: INodeParameters): unknown {
	const nodeType = new NODES[type]();
	const nodeTypes = {
		getByName: () => nodeType,
		getByNameAndVersion: () => nodeType,
		getKnownTypes: () => ({}),
	} satisfies INodeTypes;
	const node = {
		id: '1',
		name: 'Node',
		type,
		typeVersion: 1,
		position: [0, 0] as [number, number],
		parameters,
	};
	const workflow = new Workflow({ nodes: [node], connections: {}, active: false, nodeTypes });
	const [added] = Object.values(workflow.nodes);
	if (!added) throw new Error('no node');
	return workflow.expression.getSimpleParameterValue(
		added,
		nodeType.description.subtitle ?? '',
		'internal',
		{},
	);
}

const chosen = (value: string) => ({ __rl: true, mode: 'list', value });

test.each<[keyof typeof NODES, INodeParameters, string]>([
	['FlowTask', { workflowId: chosen('saved:Red fox') }, 'Red fox'],
	['FlowTask', { workflowId: chosen('wf_8c1f0a'), operation: 'submit' }, 'wf_8c1f0a'],
	['FlowTask', { workflowId: chosen('={{ $json.workflow }}') }, '{{ $json.workflow }}'],
	['FlowTask', {}, 'No workflow yet'],
	['FlowTask', { operation: 'wait' }, 'Wait for completion'],
	['FlowTask', { workflowId: chosen('saved:Red fox'), options: { variants: 2 } }, 'Red fox · 2 variants'],
	['FlowTask', { resource: 'file' }, 'Download files'],
	['ChatCompletion', { model: chosen('family-a-v3') }, 'family-a-v3'],
	['ChatCompletion', {}, 'No model yet'],
	['AgentInvoke', {}, 'Session of the chat'],
	['AgentInvoke', { sessionKey: '={{ $json.customer }}' }, 'Session {{ $json.customer }}'],
	['AgentInvoke', { sessionMode: 'new' }, 'New session'],
	['AgentInvoke', { sessionMode: 'explicit', sessionId: 's-1' }, 'Session s-1'],
	['AgentInvoke', { operation: 'resume' }, 'Resume after an interrupt'],
	['AgentBridge', {}, 'Send and wait for message'],
	['AgentBridge', { operation: 'send' }, 'Send'],
	['AgentBridgeTrigger', { eventFilter: 'order, refund' }, 'On order, refund'],
	['AgentBridgeTrigger', {}, 'On any message'],
])('%s with %j: %s', (type, parameters, subtitle) => {
	expect(subtitleOf(type, parameters)).toBe(subtitle);
});
