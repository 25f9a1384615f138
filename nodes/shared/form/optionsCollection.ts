import type { INodeProperties } from 'n8n-workflow';

/** The "Options" collection with the given fields, in alphabetical order as n8n shows them. */
export function optionsCollection(fields: readonly INodeProperties[]): INodeProperties {
	return {
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		options: [...fields].sort((left, right) => left.displayName.localeCompare(right.displayName)),
	};
}
