import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failRun } from '../../../shared/errors/nodeError';
import type { Operation } from '../../../shared/form/operation';
import { readPreviewSwitches, withPreviews } from '../../../shared/form/previewRequest';
import type { EngineSettings } from '../../tasks/engine';
import { optionGroups } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import { inNodeRun } from '../run';
import { outputFields, simplifyField, submitForm } from './fields';
import { taskReader, type PrepareItem } from './inputs/readTask';
import { previewTasks } from './preview';
import { runItems } from './runItems';

/** Uploads, submits, waits and downloads for all input items together (§1.2, §4.1 to §4.3). */
export const run: Operation = {
	value: 'run',
	name: 'Run',
	description: 'Run an image workflow for each item and get its images',
	action: 'Run image workflow',
	fields: [...submitForm, ...outputFields, simplifyField, ...optionGroups(TASK_OPTIONS)],
	async execute(context) {
		return await submitOrPreview(context, 'finished');
	},
};

/** Submits the tasks of all items, except those that are only previewed. */
export async function submitOrPreview(
	context: IExecuteFunctions,
	goal: EngineSettings['goal'],
): Promise<INodeExecutionData[][]> {
	const switches = readPreviewSwitches(context);
	const isShown = (itemIndex: number): boolean => {
		const preview = switches[itemIndex];
		return preview?.ok === true && preview.value;
	};
	const readTasks = taskReader(context);
	return await inNodeRun(context, async (run) => {
		const shown = [...switches.keys()].filter(isShown);
		const previews = await previewTasks(context, run, shown, readTasks);
		if (!previews.ok) return failRun(context, previews.failure);
		if (shown.length === switches.length) return [withPreviews([], previews.value)];
		const prepareItem: PrepareItem = (itemIndex) => {
			const wanted = switches[itemIndex];
			if (wanted?.ok === false) return [wanted];
			return isShown(itemIndex) ? [] : readTasks(itemIndex, run);
		};
		const [items = []] = await runItems(context, run, goal, prepareItem);
		return [withPreviews(items, previews.value)];
	});
}
