import type { ILoadOptionsFunctions, INodeListSearchResult, INodeProperties } from 'n8n-workflow';

import { readCredential } from '../platform/credential';
import { toNodeError } from '../errors/nodeError';
import { fail, failInput, ok, type Result } from '../errors/failure';
import { isJsonObject, parseJson, type Json } from '../text/json';
import { readPlatformAccount } from '../platform/account';
import { redactJson, redactor } from '../text/redact';
import { classify } from '../platform/envelope';
import { explainCall, type CallAdvice } from '../platform/failures';
import type { Exchange } from '../http/exchange';
import { exchangeOfError, openingInTime, readWhole, requestOptions } from '../http/request';
import { originOf } from '../http/unreached';

const LIST_TIMEOUT_MS = 20_000;
/** How many models the list shows at most; its filter finds the others. */
const MODELS_SHOWN = 1_000;

const BY_ID = "choose 'By ID' and enter the model's ID";
const ADVICE: CallAdvice = {
	busy: `Open the list again later, or ${BY_ID}.`,
	rightful: `Use a key that is allowed to list models, or ${BY_ID}.`,
	check: `Check the base URL and 'Models Path' in the credential, or ${BY_ID}.`,
};

export const modelField: INodeProperties = {
	displayName: 'Model',
	name: 'model',
	type: 'resourceLocator',
	default: { mode: 'id', value: '' },
	required: true,
	modes: [
		{
			displayName: 'From List',
			name: 'list',
			type: 'list',
			typeOptions: { searchListMethod: 'searchModels', searchable: true },
		},
		{
			displayName: 'By ID',
			name: 'id',
			type: 'string',
			placeholder: 'e.g. vendor/model-4.6',
			hint: "As the platform's console shows it",
		},
	],
	description:
		"The model that answers. Only some deployments list their models; for those, set 'Models Path' in the credential.",
};

/** The models of the deployment, if it lists them; nothing is requested unless a path is set (§1.10). */
export async function searchModels(
	this: ILoadOptionsFunctions,
	filter?: string,
): Promise<INodeListSearchResult> {
	const found = await loadModels(this);
	if (!found.ok) {
		// The box below the list shows only the message of an error.
		const { message, advice } = found.failure;
		const text = advice ? `${message}. ${advice}` : message;
		throw toNodeError(this.getNode(), { ...found.failure, message: text, advice: '' });
	}
	const wanted = (filter ?? '').toLowerCase();
	const fitting = found.value.filter((id) => id.toLowerCase().includes(wanted));
	return { results: fitting.slice(0, MODELS_SHOWN).map((id) => ({ name: id, value: id })) };
}

async function loadModels(context: ILoadOptionsFunctions): Promise<Result<string[]>> {
	const fields = await readCredential(context, 'flowPlatformApi');
	if (!fields.ok) return fields;
	const account = readPlatformAccount(fields.value);
	if (!account.ok) return account;
	const { baseUrl, modelsPath, apiKey } = account.value;
	if (!modelsPath) {
		return failInput(
			"The credential has no 'Models Path', so there is no list of models",
			"Choose 'By ID' and enter the model's ID. If your deployment lists its models, enter the path in the credential, under 'Show Expert Fields'.",
		);
	}
	const url = `${baseUrl}${modelsPath}`;
	const exchange = await getText(context, url);
	const redact = redactor([apiKey]);
	const isGood = exchange.kind === 'reply' && exchange.status < 300;
	const ids = isGood ? modelIds(redactJson(parseJson(exchange.text) ?? null, redact.known)) : [];
	if (ids.length > 0) return ok(ids);
	if (exchange.kind === 'reply' && exchange.status === 404) {
		return failInput(
			"The platform has no list of models at the 'Models Path' of the credential",
			`Correct the path in the credential, or ${BY_ID}. The URL was ${originOf(url)}${new URL(url).pathname}.`,
		);
	}
	const outcome = classify(exchange);
	if (outcome.kind === 'answered' || (outcome.kind === 'unclear' && isGood)) {
		return failInput('The platform lists no models', `Check 'Models Path' in the credential, or ${BY_ID}.`);
	}
	const facts = { purpose: 'list the models', repeatability: 'read', baseUrl: url, tries: 1 } as const;
	return fail(explainCall(outcome, { ...facts, redact }, ADVICE));
}

async function getText(context: ILoadOptionsFunctions, url: string): Promise<Exchange> {
	try {
		const response = context.helpers.httpRequestWithAuthentication.call(
			context,
			'flowPlatformApi',
			requestOptions({ method: 'GET', url, timeoutMs: LIST_TIMEOUT_MS }),
		);
		return await readWhole(await openingInTime(response, LIST_TIMEOUT_MS), LIST_TIMEOUT_MS);
	} catch (error) {
		return exchangeOfError(error);
	}
}

/** The model IDs in a list of models: `{ data: [{ id }] }`, `{ models: […] }`, `{ list: […] }` or a bare array. */
function modelIds(json: Json): string[] {
	if (isJsonObject(json)) return modelIds(json.data ?? json.models ?? json.list ?? null);
	if (!Array.isArray(json)) return [];
	const ids = json.map((entry) => (isJsonObject(entry) ? (entry.id ?? entry.model ?? entry.name) : entry));
	return [...new Set(ids.filter((id) => typeof id === 'string' && id !== ''))].map(String).sort();
}
