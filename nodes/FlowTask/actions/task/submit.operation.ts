import { optionsWith } from '../options';
import type { Operation } from '../../../shared/form/operation';
import { definitionFields, SUBMITTED_FIELDS } from './fields';
import { taskReader } from './inputs';
import { runItems } from './taskRun';

/** Submits and returns at once with the task id (§4.1). */
export const submit: Operation = {
	value: 'submit',
	name: 'Submit',
	description: 'Submit a task for each item and return its task ID at once',
	action: 'Submit a task',
	fields: [
		...SUBMITTED_FIELDS,
		...definitionFields,
		optionsWith([
			'idempotencyKey',
			'idempotencyScope',
			'idempotencyTtlHours',
			'maxFailures',
			'maxFileSizeMb',
			'maxTasks',
			'onUnknownSubmit',
			'requestsPerSecond',
			'timeoutMinutes',
		]),
	],
	async execute(context) {
		return await runItems(context, 'submitted', taskReader(context));
	},
};
