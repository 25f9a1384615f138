import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeProperties } from 'n8n-workflow';

import { itemsByAccount, mapAccounts } from '../../shared/platform/accounts';
import { failedItems, failRun, throwFirst } from '../../shared/errors/nodeError';
import { deliverResults } from '../../shared/run/deliver';
import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { readItem } from '../../shared/errors/expressionError';
import type { SessionStore } from '../sessions';
import { readText } from './inputs';
import { inAgentRun, type AgentRun } from './run';
import type { Operation } from '../../shared/form/operation';

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
	throwFirst(context, failedItems(read));
	const itemsOf = itemsByAccount(run.lines, read.keys());
	const forgotten = mapAccounts(run.lines, async (line) => {
		const keys = (itemsOf.get(line) ?? []).flatMap((itemIndex) => {
			const key = read[itemIndex];
			return key?.ok ? [key.value] : [];
		});
		return await forgetKeys(line.sessions, [...new Set(keys)]);
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

/** @returns the sessions that the keys had */
async function forgetKeys(
	sessions: SessionStore,
	keys: readonly string[],
): Promise<Result<ReadonlyMap<string, string>>> {
	const loaded = await sessions.load(keys);
	if (!loaded.ok) return loaded;
	const ids = new Map(keys.map((key) => [key, sessions.find(key)]));
	const forgotten = await sessions.forget(keys);
	return forgotten.ok ? ok(ids) : forgotten;
}

function readKey(context: IExecuteFunctions, itemIndex: number): Result<string> {
	const key = readText(context, 'forgetKey', itemIndex);
	if (!key.ok || key.value.trim()) return key;
	return fail(badInput('"Session Key" is empty for this item', 'Enter the key that is to be forgotten.'));
}
