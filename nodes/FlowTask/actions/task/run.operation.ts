import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failRun } from '../../../shared/errors/nodeError';
import type { Operation } from '../../../shared/run/operation';
import { optionGroups } from '../../../shared/form/options';
import { readPreviewSwitches, withPreviews } from '../../../shared/form/previewRequest';
import { showHint } from '../../../shared/run/deliver';
import type { EngineSettings } from '../../tasks/engine';
import { TASK_OPTIONS } from '../options';
import { inNodeRun } from '../run';
import { submitForm } from './fields';
import { taskReader, type PrepareItem } from './inputs/readTask';
import { previewTasks } from './preview';
import { OUTPUT_OPTIONS } from './outputOptions';
import { runItems } from './runItems';
import { SUBMIT_OPTIONS } from './submitOptions';

/** Uploads, submits, waits and downloads for all input items together (§1.2, §4.1 to §4.3). */
export const run: Operation = {
	value: 'run',
	name: 'Run',
	description: 'Run an image workflow for each item and get its images',
	action: 'Generate images',
	fields: [...submitForm, ...optionGroups({ ...TASK_OPTIONS, ...SUBMIT_OPTIONS, ...OUTPUT_OPTIONS })],
	async execute(context) {
		return await submitOrPreview(context, 'finished');
	},
};

/**
 * Submits the tasks of all items, except those that are only previewed. `taskReader` turns the form into jobs, without
 * sending anything; `runItems` has the engine upload, submit, watch and download them, and delivers what came of it.
 */
export async function submitOrPreview(
	context: IExecuteFunctions,
	goal: EngineSettings['goal'],
): Promise<INodeExecutionData[][]> {
	const switches = readPreviewSwitches(context);
	const isShown = (itemIndex: number): boolean => {
		const preview = switches[itemIndex];
		return preview?.ok === true && preview.value;
	};
	const all = [...switches.keys()];
	const due = all.filter((itemIndex) => !isShown(itemIndex));
	return await inNodeRun(context, async (run) => {
		const readTasks = taskReader(run);
		const previews = await previewTasks(run, all.filter(isShown), readTasks);
		if (!previews.ok) return failRun(context, previews.failure);
		if (due.length === 0) {
			for (const message of run.hints) showHint(context, message, 'info');
			return [withPreviews([], previews.value)];
		}
		const prepareItem: PrepareItem = (itemIndex) => {
			const wanted = switches[itemIndex];
			return wanted?.ok === false ? [wanted] : readTasks(itemIndex);
		};
		const [items = []] = await runItems(run, goal, due, prepareItem);
		return [withPreviews(items, previews.value)];
	});
}
