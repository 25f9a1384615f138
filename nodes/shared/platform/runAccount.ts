import type { ICredentialDataDecryptedObject, IExecuteFunctions } from 'n8n-workflow';

import { CREDENTIAL_NAMES, readCredential, type CredentialType } from './credential';
import { failInput, ok, type Result } from '../errors/failure';
import { isJsonObject, jsonText, member } from '../text/json';

type Fields = ICredentialDataDecryptedObject;

/** The account that all items of a node run use. */
export interface RunAccount<T> {
	readonly account: T;
	readonly fields: Fields;
	/** Whether a field depends on the data of the run, so that another run may use another account. */
	readonly varies: boolean;
}

type CredentialContext = Pick<IExecuteFunctions, 'getCredentials' | 'getInputData' | 'getMode' | 'getNode'>;

/**
 * Reads and checks the credential. One run uses one account, so the run is refused if an expression in the credential
 * has another value for an item than for item 0.
 */
export async function readRunAccount<T>(
	context: CredentialContext,
	type: CredentialType,
	check: (fields: Fields) => Result<T>,
	items: readonly unknown[] = context.getInputData(),
): Promise<Result<RunAccount<T>>> {
	const read = await readCredential(context, type, 0);
	if (!read.ok) return read;
	const fields = read.value;
	const varies = await mayVaryByItem(context, type);
	// n8n needs 0.8 ms to read a credential, so one without such an expression is not read again.
	for (const item of varies === false ? [] : items.keys()) {
		const ofItem = item === 0 ? read : await readCredential(context, type, item);
		if (!ofItem.ok) return ofItem;
		if (jsonText(ofItem.value) !== jsonText(fields)) return refuse(type, item);
	}
	const account = check(fields);
	return account.ok ? ok({ account: account.value, fields, varies: varies === true }) : account;
}

function refuse(type: CredentialType, item: number): Result<never> {
	return failInput(
		`The ${CREDENTIAL_NAMES[type]} credential has different values for rows 1 and ${item + 1} of the input, but a run uses one account`,
		'Split the items with "Loop Over Items" (Batch Size 1) first, so that each run has one account. Nothing was sent.',
	);
}

/**
 * Whether the credential has an expression that may differ between items. n8n has no method that shows expressions, so
 * the stored credential is read through internals of the context.
 * @returns `undefined` if it cannot be read
 */
async function mayVaryByItem(context: CredentialContext, type: CredentialType): Promise<boolean | undefined> {
	const additionalData = member(context, 'additionalData');
	const helper = member(additionalData, 'credentialsHelper');
	const read = member(helper, 'getDecrypted');
	const stored = context.getNode().credentials?.[type];
	if (typeof read !== 'function' || !stored) return undefined;
	try {
		const isRaw = true;
		const args = [additionalData, stored, type, context.getMode(), member(context, 'executeData'), isRaw];
		const raw: unknown = await Reflect.apply(read, helper, args);
		return isJsonObject(raw) ? Object.values(raw).some(mayVary) : undefined;
	} catch {
		return undefined;
	}
}

/** Variables whose values are the same for all items of a run. */
const OF_THE_RUN = /\$(?:secrets|vars|env|now|today)\b/g;

function mayVary(value: unknown): boolean {
	return typeof value === 'string' && value.startsWith('=') && value.replace(OF_THE_RUN, '').includes('$');
}
