import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { throwFirst } from '../../../shared/errors/nodeError';
import { showHint } from '../../../shared/run/deliver';
import { ok, type Failure } from '../../../shared/errors/failure';
import { excerpt } from '../../../shared/text/json';
import { explainWatchEnd } from '../../tasks/failures';
import type { CallFailure } from '../../api/failures';
import { infoOfMany } from '../../api/poll';
import { describeTask, leftOutHint } from '../../tasks/describeTask';
import type { TaskFacts } from '../../tasks/observer';
import { readItem } from '../../../shared/errors/expressionError';
import { failedRow, withInputFields } from '../itemRows';
import { inNodeRun, type NodeRun } from '../run';
import type { Operation } from '../../../shared/run/operation';
import { optionsCollection } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import { taskIdsField } from './fields';
import { OUTPUT_OPTIONS } from './outputOptions';
import { readSimplify } from './inputs/taskMaker';
import { tasksGivenTo } from './taskSource';

/** Reads the current state of tasks, many IDs in one call (§4.2). */
export const get: Operation = {
	value: 'get',
	name: 'Get',
	description: 'Get the status, progress and links of tasks without waiting',
	action: 'Get tasks',
	fields: [
		taskIdsField,
		optionsCollection({ ...TASK_OPTIONS, ...OUTPUT_OPTIONS }, [
			'includeInputFields',
			'requestsPerSecond',
			'simplify',
			'urlExpirePeriod',
		]),
	],
	async execute(context) {
		return await inNodeRun(context, getTasks);
	},
};

async function getTasks(run: NodeRun): Promise<INodeExecutionData[][]> {
	const { context, redact, options } = run;
	const wanted = context.getInputData().map((_, itemIndex) => readWanted(context, itemIndex));
	const taskIds = wanted.flatMap((read) => (read.ok ? read.value.tasks.map(({ taskId }) => taskId) : []));
	const polled = await infoOfMany(run.client.api, taskIds, options.urlExpireSeconds);
	const failed = (failure: Failure, itemIndex: number, facts?: TaskFacts): INodeExecutionData => {
		throwFirst(context, [{ itemIndex, failure }]);
		return failedRow(context, failure, itemIndex, facts);
	};
	const items = wanted.flatMap((read, itemIndex): INodeExecutionData[] => {
		if (!read.ok) return [failed(read.failure, itemIndex)];
		if (!polled.ok) return [failed(polled.failure, itemIndex)];
		const { infos, refused } = polled.value;
		const { tasks, simplify } = read.value;
		return tasks.map(({ taskId, ...facts }) => {
			const info = infos.get(taskId);
			if (!info) return failed(explainMissing(taskId, refused.get(taskId), run), itemIndex, facts);
			const json = describeTask(info, { itemIndex, facts, simplify }, redact);
			return { json, pairedItem: { item: itemIndex } };
		});
	});
	const leftOut = polled.ok && leftOutHint([...polled.value.infos.values()]);
	if (leftOut) showHint(context, leftOut);
	return [withInputFields(context, options, items)];
}

function readWanted(context: IExecuteFunctions, itemIndex: number) {
	const tasks = tasksGivenTo(context, itemIndex);
	if (!tasks.ok) return tasks;
	return readItem(() => ok({ tasks: tasks.value, simplify: readSimplify(context, itemIndex) }));
}

function explainMissing(
	taskId: string,
	refusal: CallFailure | undefined,
	{ clock, redact }: NodeRun,
): Failure {
	const snapshot = { endedAtMs: clock.wallNow() };
	const unknown = explainWatchEnd(taskId, { kind: 'unknown', snapshot }, redact);
	if (!refusal && unknown) return unknown;
	// Only a lasting refusal by the service itself may be about the ID.
	const isAboutId = refusal?.kind === 'refused' && !refusal.passing;
	return {
		kind: refusal?.kind ?? 'taskUnknown',
		message: `The state of task ${excerpt(taskId, 100)} cannot be read. ${refusal?.message ?? ''}`,
		advice: (isAboutId ? unknown : refusal)?.advice ?? '',
		details: { ...refusal?.details, taskId },
	};
}
