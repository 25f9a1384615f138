import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { failedItems, failRun, throwFirst } from '../../shared/errors/nodeError';
import { deliverResults } from '../../shared/run/deliver';
import { failInput, ok, type Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import { ItemForm } from './inputs';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/run/operation';

const field: INodeProperties = {
	displayName: 'Session Key',
	name: 'forgetKey',
	type: 'string',
	default: '',
	placeholder: 'e.g. a customer number',
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
			return failInput("'Session Key' is empty for this item", 'Enter the key of the session to forget.');
		}),
	);
	throwFirst(context, failedItems(read));
	const { sessions } = run.client;
	const forgotten = await sessions.forget(read.flatMap((key) => (key.ok ? [key.value] : [])));
	if (!forgotten.ok) return failRun(context, forgotten.failure);
	const results = read.map((key): Result<IDataObject> => {
		if (!key.ok) return key;
		const sessionId = sessions.find(key.value);
		return ok({ key: key.value, deleted: sessionId !== '', sessionId });
	});
	return [deliverResults(context, results)];
}
