import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { itemsByAccount } from '../../shared/platform/accounts';
import { failedItems, failRun, throwFirst } from '../../shared/errors/nodeError';
import { deliverResults } from '../../shared/run/deliver';
import { failInput, ok, type Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { ItemForm } from './inputs';
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

/** Removes what is stored about a key's session. The session itself stays on the platform. */
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
			const key = new ItemForm(context, itemIndex).textOrChat('forgetKey', 'Session Key', 'sessionId');
			if (!key.ok || key.value.trim()) return key;
			return failInput('"Session Key" is empty for this item', 'Enter the key of the session to forget.');
		}),
	);
	throwFirst(context, failedItems(read));
	const forgotten = [...itemsByAccount(run.clients, read.keys())].map(async ([{ sessions }, itemIndexes]) => {
		const keys = itemIndexes.flatMap((itemIndex) => {
			const key = read[itemIndex];
			return key?.ok ? [key.value] : [];
		});
		return await sessions.forget(keys);
	});
	const broken = (await Promise.all(forgotten)).find(({ ok: isOk }) => !isOk);
	if (broken && !broken.ok) return failRun(context, broken.failure);
	const results = read.map((key, itemIndex): Result<IDataObject> => {
		const client = run.clients.of(itemIndex);
		if (!client.ok) return client;
		if (!key.ok) return key;
		const sessionId = client.value.sessions.find(key.value);
		return ok({ key: key.value, forgotten: sessionId !== '', sessionId });
	});
	return [deliverResults(context, results)];
}
