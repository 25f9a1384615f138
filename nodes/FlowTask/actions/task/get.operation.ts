import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { itemsByAccount, mapAccounts } from '../../../shared/accounts';
import { toErrorItem, toNodeError } from '../../../shared/errors';
import { ok, type Failure, type Result } from '../../../shared/failure';
import { excerpt } from '../../../shared/json';
import { explainWatchEnd } from '../../task.failures';
import { infoOfMany } from '../../task.looks';
import { describeTask, leftOutHint, rawTaskInfo } from '../../task.outputs';
import { readItem } from '../../../shared/thrown';
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
	const wanted = context.getInputData().map((_, itemIndex) => readWanted(context, itemIndex));
	const itemsOf = itemsByAccount(run.lines, wanted.keys());
	const looks = mapAccounts(run.lines, async (line) => {
		const own = itemsOf.get(line)?.map((itemIndex) => wanted[itemIndex]) ?? [];
		const taskIds = own.flatMap((read) => (read?.ok ? read.value.taskIds : []));
		return await infoOfMany(line.api, taskIds, run.options.urlExpireSeconds);
	});
	const items = await Promise.all(
		wanted.map(async (read, itemIndex): Promise<INodeExecutionData[]> => {
			const look = looks.of(itemIndex);
			if (!look.ok) return [failItem(context, look.failure, itemIndex)];
			if (!read.ok) return [failItem(context, read.failure, itemIndex)];
			const looked = await look.value;
			if (!looked.ok) return [failItem(context, looked.failure, itemIndex)];
			const { infos, refused } = looked.value;
			const { simplify } = read.value;
			return read.value.taskIds.map((taskId) => {
				const info = infos.get(taskId);
				if (!info) {
					const refusal = refused.get(taskId);
					const failure = refusal ? refusedTask(taskId, refusal) : unknownTask(taskId, run);
					return failItem(context, failure, itemIndex);
				}
				const json = describeTask(info, run.redact);
				if (!simplify) json.raw = rawTaskInfo(info, run.redact);
				return { json, pairedItem: { item: itemIndex } };
			});
		}),
	);
	const answers = await Promise.all(looks.all);
	const leftOut = leftOutHint(
		answers.flatMap((answer) => (answer.ok ? [...answer.value.infos.values()] : [])),
	);
	if (leftOut !== undefined) {
		context.addExecutionHints({ message: leftOut, type: 'warning', location: 'outputPane' });
	}
	return [items.flat()];
}

function refusedTask(taskId: string, { kind, message, details }: Failure): Failure {
	return {
		kind,
		message: `The state of task ${excerpt(taskId, 100)} cannot be read. ${message}`,
		advice:
			'Check that the id is complete and that the credential is of the account and the platform on which the task was submitted.',
		details: { ...details, taskId },
	};
}

interface Wanted {
	readonly taskIds: readonly string[];
	readonly simplify: boolean;
}

function readWanted(context: IExecuteFunctions, itemIndex: number): Result<Wanted> {
	const ids = taskIdsOf(context, itemIndex);
	if (!ids.ok) return ids;
	return readItem(() => ok({ taskIds: ids.value, simplify: readDelivery(context, itemIndex).simplify }));
}

function unknownTask(taskId: string, run: NodeRun): Failure {
	const sighting = {
		info: undefined,
		sinceMs: undefined,
		generatingAtMs: undefined,
		endedAtMs: run.clock.wallNow(),
	};
	const failure = explainWatchEnd(taskId, { kind: 'unknown', sighting }, run.redact);
	return failure ?? { kind: 'taskUnknown', message: `The platform does not know task ${taskId}`, advice: '' };
}

function failItem(context: IExecuteFunctions, failure: Failure, itemIndex: number): INodeExecutionData {
	if (!context.continueOnFail()) throw toNodeError(context.getNode(), failure, itemIndex);
	return toErrorItem(failure, itemIndex, isTool(context));
}
