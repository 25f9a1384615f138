import { optionGroups } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import type { Operation } from '../../../shared/form/operation';
import { simplifyField, submitForm } from './fields';
import { submitOrPreview } from './run.operation';

export const submit: Operation = {
	value: 'submit',
	name: 'Submit',
	description: 'Submit a task for each item and return its task ID at once',
	action: 'Submit task',
	fields: [
		...submitForm,
		simplifyField,
		...optionGroups(TASK_OPTIONS, [
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'includeInputFields',
			'maxFailures',
			'maxFileSizeMb',
			'maxTasks',
			'maxTasksPerDay',
			'onUnknownSubmit',
			'previewRequest',
			'recordLifetimeDays',
			'recordTasks',
			'requestsPerSecond',
			'timeoutMinutes',
		]),
	],
	async execute(context) {
		return await submitOrPreview(context, 'submitted');
	},
};
