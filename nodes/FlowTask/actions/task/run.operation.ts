import { optionsWith } from '../options';
import type { Operation } from '../../../shared/form/operation';
import {
	definitionFields,
	imageSlotFields,
	outputFields,
	overrideFields,
	seedFields,
	simplifyField,
	workflowIdField,
} from './fields';
import { taskReader } from './inputs';
import { runItems } from './taskRun';

/** Upload, submit, wait and download for all input items together (§1.2, §4.1 to §4.3). */
export const run: Operation = {
	value: 'run',
	name: 'Run',
	description: 'Run an image workflow for each item and get its images',
	action: 'Run an image workflow',
	fields: [
		workflowIdField,
		...overrideFields,
		imageSlotFields,
		...seedFields,
		...outputFields,
		simplifyField,
		...definitionFields,
		optionsWith([
			'files',
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxFailures',
			'maxFileSizeMb',
			'maxInFlight',
			'maxTasks',
			'noProgressMinutes',
			'onTimeout',
			'onUnknownSubmit',
			'progressChannel',
			'requestsPerSecond',
			'timeoutMinutes',
			'urlExpirePeriod',
		]),
	],
	async execute(context) {
		return await runItems(context, 'finished', taskReader(context));
	},
};
