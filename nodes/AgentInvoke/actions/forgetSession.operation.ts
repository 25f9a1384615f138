import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { toErrorItem, toNodeError } from '../../shared/errors';
import { failRun } from '../../shared/failRun';
import { badInput, fail, type Result } from '../../shared/failure';
import { readItem } from '../../shared/thrown';
import { readText } from './agent.inputs';
import { inAgentRun, type AgentRun } from './agentRun';
import type { Operation } from '../../shared/operation';

const field: INodeProperties = {
	displayName: 'Session Key',
	name: 'forgetKey',
	type: 'string',
	required: true,
	default: '={{ $json.sessionId }}',
	description: 'The key whose session n8n is to forget; the next message with it begins a new one',
};

/** Ends the mapping of a key; the session itself stays at the platform. */
export const forgetSession: Operation = {
	value: 'forgetSession',
	name: 'Forget Session',
	description: 'Let the next message of a key begin a new session',
	action: 'Forget a session',
	fields: [field],
	async execute(context) {
		return await inAgentRun(context, async (run) => await forgetAll(context, run));
	},
};

async function forgetAll(context: IExecuteFunctions, run: AgentRun): Promise<INodeExecutionData[][]> {
	const read = context.getInputData().map((_, itemIndex) => readItem(() => readKey(context, itemIndex)));
	const failedAt = read.findIndex(({ ok: isOk }) => !isOk);
	const failed = read[failedAt];
	if (failed && !failed.ok && !context.continueOnFail()) {
		throw toNodeError(context.getNode(), failed.failure, failedAt);
	}
	const keys = [...new Set(read.flatMap((key) => (key.ok ? [key.value] : [])))];
	const loaded = await run.sessions.load(keys);
	if (!loaded.ok) return failRun(context, loaded.failure);
	const ids = new Map(keys.map((key) => [key, run.sessions.find(key)]));
	const forgotten = await run.sessions.forget(keys);
	if (!forgotten.ok) return failRun(context, forgotten.failure);
	return [
		read.map((key, item): INodeExecutionData => {
			if (!key.ok) return toErrorItem(key.failure, item, run.asTool);
			const id = ids.get(key.value) ?? '';
			return { json: { key: key.value, forgotten: id !== '', sessionId: id }, pairedItem: { item } };
		}),
	];
}

function readKey(context: IExecuteFunctions, itemIndex: number): Result<string> {
	const key = readText(context, 'forgetKey', itemIndex);
	if (!key.ok || key.value.trim()) return key;
	return fail(badInput('"Session Key" is empty for this item', 'Enter the key that is to be forgotten.'));
}
