import { NodeOperationError, type INode, type ISupplyDataFunctions } from 'n8n-workflow';

import { LmChatFlowPlatform } from '../../../nodes/LmChatFlowPlatform/LmChatFlowPlatform.node';

const NODE: INode = {
	...{ id: '1', name: 'Model', type: 'lmChatFlowPlatform', typeVersion: 1 },
	...{ position: [0, 0], parameters: {} },
};

/** The parts of n8n that the node uses before it needs the SDK, which is not installed here. */
function contextOf(
	parameters: Record<string, unknown>,
	credential: Record<string, unknown>,
): ISupplyDataFunctions {
	const context: Partial<Record<keyof ISupplyDataFunctions, unknown>> = {
		getNode: () => NODE,
		getNodeParameter: (name: string, _item: number, fallback: unknown) => parameters[name] ?? fallback,
		getCredentials: async () => credential,
		getInputData: () => [{ json: {} }],
	};
	return context as unknown as ISupplyDataFunctions;
}

const MODEL = { model: { __rl: true, mode: 'id', value: 'family_c-4.6' } };
const ACCOUNT = { apiKey: 'sk-0123456789abcdef', baseUrl: 'https://platform.example' };

async function supply(
	parameters: Record<string, unknown>,
	credential: Record<string, unknown>,
): Promise<unknown> {
	return await new LmChatFlowPlatform().supplyData
		.call(contextOf(parameters, credential), 0)
		.catch((error: unknown) => error);
}

it('says what to do on an n8n without an SDK for AI nodes', async () => {
	const error = await supply(MODEL, ACCOUNT);
	expect(error).toBeInstanceOf(NodeOperationError);
	expect(error).toMatchObject({
		message: 'This n8n is too old for the FlowPlatform Chat Model: it has no SDK for AI nodes',
		description: expect.stringContaining('Update n8n'),
	});
});

it('refuses a key of another kind, and a switch that the model lacks, before it needs the SDK', async () => {
	expect(await supply(MODEL, { ...ACCOUNT, apiKey: 'agt_0123456789abcdef' })).toMatchObject({
		message: expect.stringContaining('FlowAgent API'),
	});
	expect(await supply({ ...MODEL, reasoning: 'off', model: 'family_b-14b' }, ACCOUNT)).toMatchObject({
		message: '"family_b-14b" always reasons; its reasoning cannot be switched off',
	});
});

it('reads the credential of the current item', async () => {
	const context = contextOf(MODEL, ACCOUNT);
	const ofItem = [ACCOUNT, { ...ACCOUNT, apiKey: 'agt_0123456789abcdef' }];
	context.getCredentials = async <T extends object>(_type: string, itemIndex = 0) => ofItem[itemIndex] as T;
	const supplied = new LmChatFlowPlatform().supplyData.call(context, 1);
	await expect(supplied).rejects.toMatchObject({ message: expect.stringContaining('FlowAgent API') });
});

describe('n8n uses the model of the first item for all items', () => {
	const TOO_OLD = expect.stringContaining('too old');
	const OTHER_MODEL =
		/^n8n uses the chat model of the first row for all rows of the input, but row 3 needs another model or option\. /;
	const OTHER_ACCOUNT =
		/^The FlowPlatform API credential has different values for rows 1 and 3 of the input, /;
	const NEXT = { ...ACCOUNT, apiKey: 'sk-fedcba9876543210' };

	/** Asks for the model several times, as a chain does, for three items. */
	async function ask(credentials: object[], models: unknown[]) {
		const context = contextOf({}, {});
		const items = [{ json: {} }, { json: {} }, { json: {} }];
		const reads: number[] = [];
		context.getInputData = (_input?: number, type?: string) => (type === 'main' ? items : []);
		context.getCredentials = async <T extends object>(_type: string, itemIndex = 0) => {
			reads.push(itemIndex);
			return (credentials[itemIndex] ?? credentials[0]) as T;
		};
		const read = (field: string, item: number, fallback: unknown): unknown =>
			field === 'model' ? (models[item] ?? models[0]) : fallback;
		context.getNodeParameter = read as typeof context.getNodeParameter;
		const messages: unknown[] = [];
		for (const itemIndex of [0, 0, 0]) {
			const error: unknown = await new LmChatFlowPlatform().supplyData
				.call(context, itemIndex)
				.catch((e: unknown) => e);
			messages.push(Reflect.get(Object(error), 'message'));
		}
		return { messages, reads };
	}

	it('supplies it if the items agree, and compares them only once', async () => {
		const { messages, reads } = await ask([ACCOUNT], ['family_c-4.6']);
		expect(messages).toEqual([TOO_OLD, TOO_OLD, TOO_OLD]);
		expect(reads.filter((item) => item === 2)).toHaveLength(1);
	});

	it('supplies it if an option differs in itself', async () => {
		let model = 0;
		const changing = new Proxy([], { get: () => `model-${model++}` });
		expect((await ask([ACCOUNT], changing)).messages).toEqual([TOO_OLD, TOO_OLD, TOO_OLD]);
	});

	it.each([
		['key', [ACCOUNT, ACCOUNT, NEXT], ['family_c-4.6'], OTHER_ACCOUNT],
		[
			'address',
			[ACCOUNT, ACCOUNT, { ...ACCOUNT, baseUrl: 'https://other.example' }],
			['family_c-4.6'],
			OTHER_ACCOUNT,
		],
		[
			'key that cannot be used',
			[ACCOUNT, ACCOUNT, { ...ACCOUNT, apiKey: '' }],
			['family_c-4.6'],
			OTHER_ACCOUNT,
		],
		['model', [ACCOUNT], ['family_c-4.6', 'family_c-4.6', 'plain-1'], OTHER_MODEL],
	])('supplies none if an item needs another %s', async (_what, credentials, models, refusal) => {
		const { messages } = await ask(credentials, models);
		expect(messages).toEqual([refusal, refusal, refusal].map((words) => expect.stringMatching(words)));
	});
});
