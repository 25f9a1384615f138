import { optionsWith } from '../options';
import type { Operation } from '../../../shared/form/operation';
import { definitionFields, outputFields, simplifyField, SUBMITTED_FIELDS } from './fields';
import { taskReader } from './inputs';
import { runItems } from './taskRun';

/** Upload, submit, wait and download for all input items together (§1.2, §4.1 to §4.3). */
export const run: Operation = {
	value: 'run',
	name: 'Run',
	description: 'Run an image workflow for each item and get its images',
	action: 'Run an image workflow',
	fields: [...SUBMITTED_FIELDS, ...outputFields, simplifyField, ...definitionFields, optionsWith()],
	async execute(context) {
		return await runItems(context, 'finished', taskReader(context));
	},
};
