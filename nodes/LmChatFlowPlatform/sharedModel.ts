import type { INodeExecutionData, ISupplyDataFunctions } from 'n8n-workflow';

import { badInput, type Failure } from '../shared/errors/failure';
import { readAccounts } from '../shared/platform/accounts';
import { readPlatformAccount } from '../shared/platform/account';
import { jsonText } from '../shared/text/json';

/** Searches by items and node: a chain asks for its model once for each item. */
const searches = new WeakMap<readonly INodeExecutionData[], Map<string, Promise<number>>>();

/** Why the items cannot share the model of the first, which n8n uses for all of them; `undefined` if they can. */
export async function whyNotShared(
	context: ISupplyDataFunctions,
	settingsOf: (itemIndex: number) => object,
): Promise<Failure | undefined> {
	const items = context.getInputData(0, 'main');
	if (items.length < 2) return undefined;
	const { name } = context.getNode();
	const ofItems = searches.get(items) ?? new Map<string, Promise<number>>();
	const findOther = async (): Promise<number> => {
		const accounts = await readAccounts(context, 'flowPlatformApi', readPlatformAccount, items);
		if (!accounts.ok) return -1;
		const { of } = accounts.value;
		const accountText = (item: number): string | undefined => {
			const account = of(item);
			if (!account.ok) return undefined;
			const { apiKey, baseUrl, busyTerms } = account.value.account;
			return jsonText([apiKey, baseUrl, busyTerms]);
		};
		const [account, first] = [accountText(0), jsonText(settingsOf(0))];
		// An option such as a random seed differs from itself, too.
		return items.findIndex(
			(_, item) =>
				accountText(item) !== account ||
				(jsonText(settingsOf(item)) !== first && jsonText(settingsOf(0)) === first),
		);
	};
	const search = ofItems.get(name) ?? findOther();
	searches.set(items, ofItems.set(name, search));
	const other = await search;
	if (other < 0) return undefined;
	// A retry of the node asks again, because a credential may only have been unreadable for a moment.
	ofItems.delete(name);
	return badInput(
		`n8n uses the chat model of item 0 for all items, but item ${other} needs another key, model or option. Put "Loop Over Items" with Batch Size 1 before the agent or chain`,
		'Or use Chat Completion, which reads its credential and fields for each item. Nothing was sent.',
	);
}
