import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { itemsByAccount, mapAccounts } from '../../shared/platform/accounts';
import { failedItems, failRun, throwFirst } from '../../shared/errors/nodeError';
import { deliverResults } from '../../shared/run/deliver';
import { failInput, ok, type Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { readOrChat } from './inputs';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/form/operation';

const field: INodeProperties = {
	displayName: 'Session Key',
	name: 'forgetKey',
	type: 'string',
	default: '',
	hint: "In a chat, leave it empty to forget the chat's own session",
	description: 'The key of the session to forget. The next message with this key begins a new session.',
};

/** Removes the mapping of a key. The session itself stays on the platform. */
export const forgetSession: Operation = {
	value: 'forgetSession',
	name: 'Forget Session',
	description: 'Let the next message of a key begin a new session',
	action: 'Forget session',
	fields: [field],
	async execute(context) {
		return await inAgentRun(context, async (run) => await forgetAll(context, run));
	},
};

async function forgetAll(context: IExecuteFunctions, run: AgentRun): Promise<INodeExecutionData[][]> {
	const read = context.getInputData().map((_, itemIndex) =>
		readItem(() => {
			const key = readOrChat(context, itemIndex, 'forgetKey', 'Session Key', 'sessionId');
			if (!key.ok || key.value.trim()) return key;
			return failInput('"Session Key" is empty for this item', 'Enter the key of the session to forget.');
		}),
	);
	throwFirst(context, failedItems(read));
	const itemsOf = itemsByAccount(run.clients, read.keys());
	const forgotten = mapAccounts(run.clients, async (client) => {
		const keys = (itemsOf.get(client) ?? []).flatMap((itemIndex) => {
			const key = read[itemIndex];
			return key?.ok ? [key.value] : [];
		});
		return await client.sessions.forget(keys);
	});
	const tables = await Promise.all(forgotten.all);
	const broken = tables.find(({ ok: isOk }) => !isOk);
	if (broken && !broken.ok) return failRun(context, broken.failure);
	const results = read.map(async (key, itemIndex): Promise<Result<IDataObject>> => {
		const ids = forgotten.of(itemIndex);
		if (!ids.ok) return ids;
		if (!key.ok) return key;
		const known = await ids.value;
		const sessionId = known.ok ? (known.value.get(key.value) ?? '') : '';
		return ok({ key: key.value, forgotten: sessionId !== '', sessionId });
	});
	return [deliverResults(context, await Promise.all(results))];
}
