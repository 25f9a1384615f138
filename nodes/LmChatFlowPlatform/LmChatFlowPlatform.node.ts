import {
	NodeConnectionTypes,
	type IDataObject,
	type INodeProperties,
	type INodeType,
	type INodeTypeDescription,
	type ISupplyDataFunctions,
	type SupplyData,
} from 'n8n-workflow';

import type * as AiNodeSdk from '@n8n/ai-node-sdk';

import { readCredential } from '../shared/platform/credential';
import { toNodeError } from '../shared/errors/nodeError';
import { failInput, ok, type Result } from '../shared/errors/failure';
import { modelField, searchModels } from '../shared/chat/models';
import { optionsCollection } from '../shared/form/options';
import { readPlatformAccount } from '../shared/platform/account';
import { testPlatformKey } from '../shared/platform/platformTest';
import { redactor } from '../shared/text/redact';
import { showHint } from '../shared/run/deliver';
import { readWish } from '../shared/chat/reasoning';
import { booleanOf } from '../shared/text/textOf';
import { reasoningFormFields, reasoningSentField } from '../shared/chat/reasoningForm';
import { MODEL_OPTIONS, modelSettings } from './model.settings';
import { makeAnswersReadable } from './readableAnswers';
import { whyNotShared } from './sharedModel';

/**
 * Says that an agent gets no reasoning. A custom model, which n8n's SDK accepts instead of its OpenAI client, would help
 * little: the SDK drops `reasoning-delta` chunks, and gives all tool calls of a stream the index 0, so that parallel calls
 * merge unless each piece carries its call's ID.
 */
const reasoningKeptNotice: INodeProperties = {
	displayName: "An agent answers without the model's reasoning. To read the reasoning, use Chat Completion.",
	name: 'reasoningKeptNotice',
	type: 'notice',
	default: '',
	displayOptions: { hide: { reasoning: ['off'] } },
};

/** The path below the base URL; n8n's client adds the rest (§4.5). */
const CHAT_BASE = '/maas/v1';

export class LmChatFlowPlatform implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'FlowPlatform Chat Model',
		name: 'lmChatFlowPlatform',
		icon: { light: 'file:lmChatFlowPlatform.svg', dark: 'file:lmChatFlowPlatform.dark.svg' },
		group: ['transform'],
		version: 1,
		subtitle: '={{ String($rawParameter["model"] || "No model yet").replace("=", "") }}',
		description: "The platform's chat models, for AI agents and chains",
		defaults: { name: 'FlowPlatform Chat Model' },
		inputs: [],
		outputs: [NodeConnectionTypes.AiLanguageModel],
		outputNames: ['Model'],
		builderHint: {
			searchHint:
				'Connects to the Chat Model input of an AI Agent or chain. To ask a model without one, use Chat Completion',
		},
		credentials: [{ name: 'flowPlatformApi', required: true, testedBy: 'testPlatformKey' }],
		properties: [
			reasoningSentField,
			modelField,
			...reasoningFormFields,
			reasoningKeptNotice,
			optionsCollection(MODEL_OPTIONS),
		],
	};

	methods = { listSearch: { searchModels }, credentialTest: { testPlatformKey } };

	async supplyData(this: ISupplyDataFunctions, itemIndex: number): Promise<SupplyData> {
		const valueOf = <T>(result: Result<T>, item = itemIndex): T => {
			if (!result.ok) throw toNodeError(this.getNode(), result.failure, item);
			return result.value;
		};
		const settingsOf = (item: number) => {
			const given: IDataObject = this.getNodeParameter('options', item, {});
			const read = (name: string, fallback: unknown) => this.getNodeParameter(name, item, fallback);
			const wish = readWish(read, booleanOf(given.reasoningSplit) === true);
			return valueOf(modelSettings(valueOf(wish, item), given), item);
		};
		const settings = settingsOf(itemIndex);
		const fields = valueOf(await readCredential(this, 'flowPlatformApi', itemIndex));
		const account = valueOf(readPlatformAccount(fields));
		const misfit = itemIndex === 0 ? await whyNotShared(this, settingsOf) : undefined;
		if (misfit) throw toNodeError(this.getNode(), misfit);
		const sdk = valueOf(await loadSdk());
		const supplied = sdk.supplyModel(this, {
			type: 'openai',
			baseUrl: `${account.baseUrl}${CHAT_BASE}`,
			apiKey: account.apiKey,
			useResponsesApi: false,
			...settings,
		});
		const redact = redactor([account.apiKey]);
		const tell = (hint: string): void => showHint(this, hint);
		const unfit = makeAnswersReadable(supplied.response, account, redact, tell);
		if (unfit) throw toNodeError(this.getNode(), unfit);
		return supplied;
	}
}

/** Imported only when a model is needed, so that the other nodes load in an n8n version without an SDK for AI nodes. */
async function loadSdk(): Promise<Result<typeof AiNodeSdk>> {
	try {
		return ok(await import('@n8n/ai-node-sdk'));
	} catch {
		return failInput(
			'This n8n is too old for the FlowPlatform Chat Model: it has no SDK for AI nodes',
			'Update n8n. Until then, the Chat Completion node asks the same models without an agent.',
		);
	}
}
