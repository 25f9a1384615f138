import type { INodeExecutionData, ISupplyDataFunctions } from 'n8n-workflow';

import { badInput, type Failure } from '../shared/errors/failure';
import { readPlatformAccount } from '../shared/platform/account';
import { readRunAccount } from '../shared/platform/runAccount';
import { jsonText } from '../shared/text/json';

/** Searches by items and node: a chain asks for its model once for each item. */
const searches = new WeakMap<readonly INodeExecutionData[], Map<string, Promise<Failure | undefined>>>();

/** Why the items cannot share the model of the first, which n8n uses for all of them; `undefined` if they can. */
export async function whyNotShared(
	context: ISupplyDataFunctions,
	settingsOf: (itemIndex: number) => object,
): Promise<Failure | undefined> {
	const items = context.getInputData(0, 'main');
	if (items.length < 2) return undefined;
	const { name } = context.getNode();
	const ofItems = searches.get(items) ?? new Map<string, Promise<Failure | undefined>>();
	const search = ofItems.get(name) ?? findMisfit(context, settingsOf, items);
	searches.set(items, ofItems.set(name, search));
	const misfit = await search;
	// A retry of the node asks again, because a credential may only have been unreadable for a moment.
	if (misfit) ofItems.delete(name);
	return misfit;
}

async function findMisfit(
	context: ISupplyDataFunctions,
	settingsOf: (itemIndex: number) => object,
	items: readonly INodeExecutionData[],
): Promise<Failure | undefined> {
	const account = await readRunAccount(context, 'flowPlatformApi', readPlatformAccount, items);
	if (!account.ok) return account.failure;
	const first = jsonText(settingsOf(0));
	// An option such as a random seed differs from itself, too.
	const other = items.findIndex(
		(_, item) => jsonText(settingsOf(item)) !== first && jsonText(settingsOf(0)) === first,
	);
	if (other < 0) return undefined;
	return badInput(
		`n8n uses the chat model of the first row for all rows of the input, but row ${other + 1} needs another model or option. Put "Loop Over Items" with Batch Size 1 before the agent or chain`,
		'Or use Chat Completion, which reads its fields for each item. Nothing was sent.',
	);
}
