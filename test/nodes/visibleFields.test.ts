import { NodeHelpers, type INode, type INodeParameters, type INodeTypeDescription } from 'n8n-workflow';

import { ChatCompletion } from '../../nodes/ChatCompletion/ChatCompletion.node';
import { FlowTask } from '../../nodes/FlowTask/FlowTask.node';

/** The labels of what a node's form shows, as n8n decides it, for a node with the defaults and these parameters. */
function visible(description: INodeTypeDescription, parameters: INodeParameters): string[] {
	const { properties, name: type } = description;
	const node: INode = { id: '1', name: 'N', type, typeVersion: 1, position: [0, 0], parameters };
	const filled = NodeHelpers.getNodeParameters(properties, parameters, true, false, node, description);
	const values: INodeParameters = { ...filled, ...parameters };
	return properties
		.filter((field) => NodeHelpers.displayParameter(values, field, node, description))
		.filter((field) => field.type !== 'hidden')
		.map(({ displayName }) => displayName);
}

const task = (parameters: INodeParameters) => visible(new FlowTask().description, parameters);
const saved = { __rl: true, mode: 'list', value: 'saved:Portrait' };

test.each(['run', 'submit'])(
	'%s shows seven fields for a saved workflow, and eight for an export',
	(operation) => {
		const before = ['Resource', 'Operation', 'Workflow', 'Prompt'];
		const after = ['Inputs to Change', 'Options', 'Cost and Speed'];
		expect(task({ operation, workflowId: saved })).toEqual([...before, ...after]);
		expect(task({ operation })).toEqual([...before, 'Workflow Definition', ...after]);
		const workflowId = { __rl: true, mode: 'id', value: 'wf_1' };
		const options = { seedMode: 'fixed', prompt: '{}', variants: 2 };
		expect(task({ operation, workflowId, options })).toEqual([...before, 'Workflow Definition', ...after]);
	},
);

test('Chat Completion shows six fields, seven with reasoning, and no rows of messages beside their JSON', () => {
	// The editor computes this field, which chooses a notice.
	const chat = (parameters: INodeParameters) =>
		visible(new ChatCompletion().description, { reasoningSent: '', ...parameters });
	const after = ['Response Format', 'Options', 'Cost and Speed'];
	expect(chat({})).toEqual(['Model', 'Messages', 'Reasoning', ...after]);
	expect(chat({ reasoning: 'on' })).toEqual([
		'Model',
		'Messages',
		'Reasoning',
		'Reasoning Control',
		...after,
	]);
	expect(chat({ options: { messagesJson: '[]' } })).toEqual(['Model', 'Reasoning', ...after]);
});
