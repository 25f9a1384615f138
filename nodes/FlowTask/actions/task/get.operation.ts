import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { toErrorItem, toNodeError } from '../../../shared/errors';
import type { Failure } from '../../../shared/failure';
import { infoOfMany } from '../../task.api';
import { explainWatchEnd } from '../../task.failures';
import { describeTask, rawTaskInfo } from '../../task.outputs';
import { failRun } from '../deliver';
import { isTool } from '../../../shared/toolMode';
import { inNodeRun, type NodeRun } from '../nodeRun';
import type { Operation } from '../operation';
import { optionsWith } from '../runOptions';
import { simplifyField, taskIdsField } from './task.fields';
import { readDelivery, taskIdsOf } from './task.inputs';

/** Reads the state of tasks as it is now, many ids in one call (§4.2). */
export const get: Operation = {
	value: 'get',
	name: 'Get',
	description: 'Get the state of tasks, their progress and links, without waiting',
	action: 'Get tasks',
	fields: [taskIdsField, simplifyField, optionsWith(['requestsPerSecond', 'urlExpirePeriod'])],
	async execute(context) {
		return await inNodeRun(context, async (run) => await getTasks(context, run));
	},
};

async function getTasks(context: IExecuteFunctions, run: NodeRun): Promise<INodeExecutionData[][]> {
	const wanted = context.getInputData().map((_, itemIndex) => taskIdsOf(context, itemIndex));
	const taskIds = wanted.flatMap((ids) => (ids.ok ? ids.value : []));
	const infos = await infoOfMany(run.api, taskIds, run.options.urlExpireSeconds);
	if (!infos.ok) return failRun(context, infos.failure);
	const items = wanted.flatMap((ids, itemIndex): INodeExecutionData[] => {
		if (!ids.ok) return [failItem(context, ids.failure, itemIndex)];
		const { simplify } = readDelivery(context, itemIndex);
		return ids.value.map((taskId) => {
			const info = infos.value.get(taskId);
			if (!info) return failItem(context, unknownTask(taskId, run), itemIndex);
			const json = describeTask(info, run.redact);
			if (!simplify) json.raw = rawTaskInfo(info, run.redact);
			return { json, pairedItem: { item: itemIndex } };
		});
	});
	return [items];
}

function unknownTask(taskId: string, run: NodeRun): Failure {
	const sighting = {
		info: undefined,
		sinceMs: undefined,
		generatingAtMs: undefined,
		endedAtMs: run.clock.now(),
	};
	const failure = explainWatchEnd(taskId, { kind: 'unknown', sighting }, run.redact);
	return failure ?? { kind: 'taskUnknown', message: `The platform does not know task ${taskId}`, advice: '' };
}

function failItem(context: IExecuteFunctions, failure: Failure, itemIndex: number): INodeExecutionData {
	if (!context.continueOnFail()) throw toNodeError(context.getNode(), failure, itemIndex);
	return toErrorItem(failure, itemIndex, isTool(context));
}
