import type { INodeProperties } from 'n8n-workflow';

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
				hint: `From the saved workflow or "Workflow Definition". Without either, choose "${entered.displayName}".`,
				typeOptions: { searchListMethod, searchable: true },
			},
			{ ...entered, name: 'id', type: 'string' },
		],
		description,
	};
}
