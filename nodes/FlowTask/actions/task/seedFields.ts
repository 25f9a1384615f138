import type { INodeProperties } from 'n8n-workflow';

export const seedFields: INodeProperties[] = [
	{
		displayName: 'Seed Mode',
		name: 'seedMode',
		type: 'options',
		default: 'random',
		options: [
			{ name: 'Fixed', value: 'fixed', description: 'The same seed for each item' },
			{ name: 'Increment by Item', value: 'increment', description: 'Seed, seed + 1, seed + 2 …' },
			{
				name: 'Keep',
				value: 'keep',
				description:
					"The workflow's own seed, or what is set above: the same inputs give the same image again",
			},
			{
				name: 'Random',
				value: 'random',
				description: 'A new seed for each item, unless one is set above; the output contains it',
			},
		],
		description: 'The same seed and inputs give the same image',
	},
	{
		displayName: 'Seed',
		name: 'seed',
		type: 'number',
		default: 1,
		typeOptions: { minValue: -1 },
		displayOptions: { show: { seedMode: ['fixed', 'increment'] } },
		description: 'The seed of the first item; with Fixed, of every item. -1 is random.',
	},
	{
		displayName: 'Seed Targets',
		name: 'seedTargets',
		type: 'resourceLocator',
		default: { mode: 'list', value: '' },
		displayOptions: { show: { seedMode: ['fixed', 'increment', 'random'] } },
		modes: [
			{
				displayName: 'From List',
				name: 'list',
				type: 'list',
				placeholder: 'Every seed',
				typeOptions: { searchListMethod: 'searchSeeds', searchable: true },
			},
			{
				displayName: 'By Name',
				name: 'id',
				type: 'string',
				placeholder: 'e.g. 3.seed',
				hint: 'Node ID and parameter; several are separated by commas',
			},
		],
		description:
			'Which inputs are the seeds. Empty means every seed in the workflow definition and in the inputs changed above.',
	},
];

/** Shown in the form, so that the operator reads it before a run fails. */
export const seedNotice: INodeProperties = {
	displayName:
		"Without a saved workflow or a 'Workflow Definition', the node cannot tell which inputs are seeds. Paste the export, enter their names under 'Seed Targets', or set a seed in the inputs above.",
	name: 'seedNotice',
	type: 'notice',
	default: '',
	displayOptions: {
		show: {
			seedMode: ['fixed', 'increment'],
			workflowDefinition: ['{}', ''],
			seedTargets: [''],
		},
	},
};
