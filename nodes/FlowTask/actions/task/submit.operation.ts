import { optionGroups } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import type { Operation } from '../../../shared/run/operation';
import { submitForm } from './fields';
import { OUTPUT_OPTIONS } from './outputOptions';
import { submitOrPreview } from './run.operation';
import { SUBMIT_OPTIONS } from './submitOptions';

export const submit: Operation = {
	value: 'submit',
	name: 'Submit',
	description: 'Submit a task for each item and return its task ID at once',
	action: 'Submit task',
	fields: [
		...submitForm,
		...optionGroups({ ...TASK_OPTIONS, ...SUBMIT_OPTIONS, ...OUTPUT_OPTIONS }, [
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'imageSlots',
			'includeInputFields',
			'maxFailures',
			'maxFileSizeMb',
			'maxTasks',
			'maxTasksPerDay',
			'onUnknownOutcome',
			'overrideFields',
			'parameterSpec',
			'previewRequest',
			'prompt',
			'recordLifetimeDays',
			'recordTasks',
			'requestsPerSecond',
			'seed',
			'seedMode',
			'seedTargets',
			'simplify',
			'timeoutMinutes',
			'variants',
		]),
	],
	async execute(context) {
		return await submitOrPreview(context, 'submitted');
	},
};
