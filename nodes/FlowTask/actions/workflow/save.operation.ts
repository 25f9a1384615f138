import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { badInput, fail, failInput, ok, type Failure, type Result } from '../../../shared/errors/failure';
import { failItem, failRun } from '../../../shared/errors/nodeError';
import type { Operation } from '../../../shared/run/operation';
import { refuseRounded } from '../../../shared/form/pastedJson';
import { openPlatform } from '../../../shared/platform/platform';
import { excerpt } from '../../../shared/text/json';
import { readDefinition } from '../../../shared/workflow/definition';
import { readParameterView } from '../../../shared/workflow/parameterView';
import {
	canBeId,
	readSavedWorkflows,
	savedWorkflowsText,
	type WorkflowSource,
} from '../../../shared/workflow/savedWorkflows';
import { countsOf } from '../../workflow/inputRanking';
import { textParameter } from '../enteredText';
import { definitionField, viewField } from '../workflowFields';

/** Outputs the account's list of saved workflows with a new entry, because n8n lets no node write to a credential. */
export const save: Operation = {
	value: 'save',
	name: 'Save',
	description: 'Generate the text that saves a hosted workflow in the account under a name',
	action: 'Save workflow',
	fields: [
		{
			displayName:
				"Execute this step, choose <b>JSON</b> above the output, copy all of it with the button next to it, and paste it over 'Saved Workflows' in the credential. Everyone who uses the credential then finds the workflow in the list of 'Workflow'.",
			name: 'saveNotice',
			type: 'notice',
			default: '',
		},
		{
			displayName: 'Name',
			name: 'savedName',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'e.g. Portrait',
			description:
				'The name that people choose the workflow by. A workflow that was saved under this name is replaced.',
		},
		{
			displayName: 'Workflow ID',
			name: 'hostedId',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'e.g. wf_8c1f0a',
			description: "The ID that the platform's console shows for the hosted workflow",
		},
		{
			...definitionField,
			hint: 'Paste the API-format export: the form of Run and Submit then lists its inputs',
		},
		viewField,
	],
	async execute(context) {
		const saved = await readSaved(context);
		return saved.ok ? [[saveAll(context, saved.value)]] : failRun(context, saved.failure);
	},
};

/** Reads the account's list. A list with a wrong entry is refused, because the new list would lose that entry. */
async function readSaved(context: IExecuteFunctions): Promise<Result<Map<string, WorkflowSource>>> {
	const platform = await openPlatform(context);
	if (!platform.ok) return platform;
	const list = readSavedWorkflows(platform.value.account.savedWorkflows);
	if (!list.ok) return list;
	const saved = new Map<string, WorkflowSource>();
	for (const [name, workflow] of list.value) {
		if (!workflow.ok) return workflow;
		saved.set(name, workflow.value);
	}
	return ok(saved);
}

/** Makes a single item of all input items, because the list is pasted as a whole. */
function saveAll(context: IExecuteFunctions, saved: Map<string, WorkflowSource>): INodeExecutionData {
	const items = [...context.getInputData().keys()];
	const added: Array<{ name: string; workflowId: string } & ReturnType<typeof countsOf>> = [];
	for (const itemIndex of items) {
		const one = readOne(context, itemIndex);
		if (!one.ok) return failItem(context, one.failure, itemIndex);
		const { name, source, counts } = one.value;
		if (added.some((before) => before.name === name)) return failItem(context, savedTwice(name), itemIndex);
		saved.set(name, source);
		added.push({ name, workflowId: source.workflowId, ...counts });
	}
	return {
		json: { saved: added, savedWorkflows: savedWorkflowsText(saved) },
		pairedItem: items.map((item) => ({ item })),
	};
}

function savedTwice(name: string): Failure {
	return badInput(
		`Another item has the same name, "${excerpt(name, 60)}"`,
		'Only the last of them would be saved: give each item its own name.',
	);
}

function readOne(context: IExecuteFunctions, itemIndex: number) {
	const name = textParameter(context, 'savedName', itemIndex);
	const workflowId = textParameter(context, 'hostedId', itemIndex);
	if (!name || !workflowId) {
		return failInput(
			`'${name ? 'Workflow ID' : 'Name'}' is empty`,
			'Enter it. If it is an expression, check that it returns a value for each item.',
		);
	}
	const rounded = refuseRounded('Workflow ID', context.getNodeParameter('hostedId', itemIndex, ''));
	if (rounded) return fail(rounded);
	if (!canBeId(workflowId)) {
		return failInput(
			`'Workflow ID' contains "${excerpt(workflowId, 40)}", which is not an ID`,
			"Enter only the ID that the platform's console shows for the hosted workflow.",
		);
	}
	const definition: unknown = context.getNodeParameter('workflowDefinition', itemIndex, '');
	const view: unknown = context.getNodeParameter('parameterSpec', itemIndex, '');
	const read = readDefinition(definition);
	if (!read.ok) return read;
	const readView = readParameterView(view);
	if (!readView.ok) return readView;
	return ok({ name, source: { workflowId, definition, view }, counts: countsOf(read.value) });
}
