import type { INodeProperties } from 'n8n-workflow';

import { defineOptions } from '../../../shared/form/options';
import { simplifyField } from '../../../shared/form/sharedFields';

export const outputFieldName = {
	displayName: 'Put Output File in Field',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	hint: 'The name of the output binary field to put the file in',
} as const satisfies INodeProperties;

/** How results are output; these options are read for each item. */
export const OUTPUT_OPTIONS = defineOptions({
	binaryPropertyName: {
		...outputFieldName,
		displayOptions: { hide: { output: ['urls'] } },
		description:
			'If an item has several files, the second and later ones get a number after the name, e.g. data_1',
	},
	files: {
		displayName: 'Files',
		name: 'files',
		isExpert: true,
		type: 'options',
		default: 'finalFiles',
		options: [
			{ name: 'Final Files', value: 'finalFiles', description: 'The files that the platform marks as final' },
			{ name: 'All Files', value: 'all', description: 'What every output node of the workflow saved' },
		],
		description: "Which of a task's files to return",
	},
	output: {
		displayName: 'Output',
		name: 'output',
		type: 'options',
		default: 'filePerItem',
		options: [
			{
				name: 'All Files in One Item',
				value: 'allFiles',
				description: 'One item for each task, with all its files',
			},
			{ name: 'Links Only', value: 'urls', description: 'One item for each task; nothing is downloaded' },
			{ name: 'One Item per File', value: 'filePerItem', description: 'An item for each file' },
		],
		description: 'How the result files are output',
	},
	simplify: simplifyField,
});
