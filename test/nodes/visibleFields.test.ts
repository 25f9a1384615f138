import {
	NodeHelpers,
	type INode,
	type INodeParameters,
	type INodeProperties,
	type INodePropertyCollection,
	type INodePropertyOptions,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { AgentInvoke } from '../../nodes/AgentInvoke/AgentInvoke.node';
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

/** In a window of 1280 pixels, n8n cuts off a longer label of a row within other fields. */
const LONGEST_ROW_LABEL_CHARS = 18;

/** The labels in rows that are themselves within options or rows. */
function nestedRowLabels(
	fields: ReadonlyArray<INodeProperties | INodePropertyCollection | INodePropertyOptions>,
	depth = 0,
): string[] {
	return fields.flatMap((field) => {
		if (!('type' in field)) return [];
		const groups = field.type === 'fixedCollection' ? (field.options ?? []) : [];
		const rows = groups.flatMap((group) => ('values' in group ? group.values : []));
		const labels = depth > 0 ? rows.map(({ displayName }) => displayName) : [];
		const options = field.type === 'collection' ? (field.options ?? []) : [];
		return [...labels, ...nestedRowLabels([...rows, ...options], depth + 1)];
	});
}

test.each([new AgentInvoke(), new ChatCompletion(), new FlowTask()])(
	'labels of rows within other fields are not cut off: $description.displayName',
	({ description }) => {
		const labels = nestedRowLabels(description.properties);
		expect(labels).not.toEqual([]);
		expect(labels.filter((label) => label.length > LONGEST_ROW_LABEL_CHARS)).toEqual([]);
	},
);
