import { optionsWith } from '../options';
import type { Operation } from '../../../shared/form/operation';
import { outputFields, simplifyField, submitForm } from './fields';
import { previewField, submitOrPreview } from './preview';

/** Upload, submit, wait and download for all input items together (§1.2, §4.1 to §4.3). */
export const run: Operation = {
	value: 'run',
	name: 'Run',
	description: 'Run an image workflow for each item and get its images',
	action: 'Run an image workflow',
	fields: [...submitForm, ...outputFields, simplifyField, previewField, optionsWith()],
	async execute(context) {
		return await submitOrPreview(context, 'finished');
	},
};
