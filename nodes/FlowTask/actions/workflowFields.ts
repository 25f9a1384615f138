// Fields about the hosted workflow that several resources and options share.
import type { INodeProperties } from 'n8n-workflow';

/**
 * Text, because n8n's JSON editor grows with its content to two fifths of the window, so that nobody would see what the
 * form says about it below. The default keeps n8n from taking a pasted text with `{{ … }}` for an expression.
 */
export const definitionField: INodeProperties = {
	displayName: 'Workflow Definition',
	name: 'workflowDefinition',
	type: 'string',
	typeOptions: { rows: 3 },
	default: '{}',
	hint: 'Paste the API-format export: the form below then lists its inputs',
	description:
		"The workflow's API-format export, as it was uploaded to the platform: paste the whole file. It stays in n8n. The node then checks all changed inputs before it submits anything.",
};

export const viewField = {
	displayName: 'Parameter View',
	name: 'parameterSpec',
	type: 'json',
	typeOptions: { rows: 2 },
	default: '{}',
	hint: 'Optional. Lists become drop-downs, and ranges are shown and checked.',
	description: "The workflow's parameter view from the platform's console: paste all of it",
} as const satisfies INodeProperties;

/** A field for a node of the hosted workflow, chosen from a list built from the export, or entered by ID. */
export function nodeField(
	searchListMethod: 'searchImageNodes' | 'searchOutputNodes',
	entered: { readonly displayName: string; readonly placeholder: string },
	description: string,
): INodeProperties {
	return {
		displayName: 'Node',
		name: 'nodeId',
		type: 'resourceLocator',
		required: true,
		default: { mode: 'list', value: '' },
		modes: [
			{
				displayName: 'From List',
				name: 'list',
				type: 'list',
				typeOptions: { searchListMethod, searchable: true },
			},
			{ ...entered, name: 'id', type: 'string' },
		],
		description,
	};
}
