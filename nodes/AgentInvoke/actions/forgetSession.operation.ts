import type { IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { itemsByAccount, mapAccounts } from '../../shared/platform/accounts';
import { toErrorItem, toNodeError } from '../../shared/errors/nodeError';
import { failRun } from '../../shared/run/failRun';
import { readItem } from '../../shared/errors/expressionError';
import { readFilled } from './inputs';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/form/operation';

const field: INodeProperties = {
	displayName: 'Session Key',
	name: 'forgetKey',
	type: 'string',
	required: true,
	default: '={{ $json.sessionId }}',
	description: 'The key of the session to forget. The next message with this key begins a new session.',
};

/** Ends the mapping of a key; the session itself stays on the platform. */
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
	const read = context
		.getInputData()
		.map((_, itemIndex) =>
			readItem(() =>
				readFilled(context, itemIndex, 'forgetKey', 'Session Key', 'Enter the key of the session to forget.'),
			),
		);
	const failedAt = read.findIndex(({ ok: isOk }) => !isOk);
	const failed = read[failedAt];
	if (failed && !failed.ok && !context.continueOnFail()) {
		throw toNodeError(context.getNode(), failed.failure, failedAt);
	}
	const itemsOf = itemsByAccount(run.lines, read.keys());
	const forgotten = mapAccounts(run.lines, async (line) => {
		const keys = (itemsOf.get(line) ?? []).flatMap((itemIndex) => {
			const key = read[itemIndex];
			return key?.ok ? [key.value] : [];
		});
		return await line.sessions.forget(keys);
	});
	const tables = await Promise.all(forgotten.all);
	const broken = tables.find(({ ok: isOk }) => !isOk);
	if (broken && !broken.ok) return failRun(context, broken.failure);
	const items = read.map(async (key, item): Promise<INodeExecutionData> => {
		const ids = forgotten.of(item);
		if (!ids.ok) return toErrorItem(ids.failure, item, run.asTool);
		if (!key.ok) return toErrorItem(key.failure, item, run.asTool);
		const known = await ids.value;
		const id = known.ok ? (known.value.get(key.value) ?? '') : '';
		return { json: { key: key.value, forgotten: id !== '', sessionId: id }, pairedItem: { item } };
	});
	return [await Promise.all(items)];
}
