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

type CredentialContext = Pick<
	IExecuteFunctions,
	'evaluateExpression' | 'getCredentials' | 'getInputData' | 'getMode' | 'getNode'
>;

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
	const expressions = await readExpressions(context, type);
	if (expressions?.size !== 0 && items.length > 1) {
		const valuesAt = valuesOf(context, type, fields, expressions);
		const first = await valuesAt(0);
		for (const item of items.keys()) {
			const values = await valuesAt(item);
			if (!values.ok) return values;
			if (!first.ok || values.value !== first.value) return refuse(type, item);
		}
	}
	const account = check(fields);
	return account.ok ? ok({ account: account.value, fields, varies: !!expressions?.size }) : account;
}

function refuse(type: CredentialType, item: number): Result<never> {
	return failInput(
		`The ${CREDENTIAL_NAMES[type]} credential has different values for items 0 and ${item}, but a run uses one account`,
		'Split the items with "Loop Over Items" (Batch Size 1) first, so that each run has one account. Nothing was sent.',
	);
}

type ValuesAt = (itemIndex: number) => Promise<Result<string | undefined>>;

/** How to read, as text, what may differ between items. */
function valuesOf(
	context: CredentialContext,
	type: CredentialType,
	ofFirst: Fields,
	expressions: ReadonlyMap<string, string> | undefined,
): ValuesAt {
	const whole: ValuesAt = async (itemIndex) => {
		const fields = await readCredential(context, type, itemIndex);
		return fields.ok ? ok(jsonText(fields.value)) : fields;
	};
	if (!expressions) return whole;
	const evaluated = (itemIndex: number): string | undefined => {
		try {
			const values = [...expressions.values()].map((text) => context.evaluateExpression(text, itemIndex));
			return jsonText(values);
		} catch {
			return undefined;
		}
	};
	// n8n needs 0.8 ms to read a whole credential, but a fraction of that for an expression. Some have another value there.
	const isSame = evaluated(0) === jsonText([...expressions.keys()].map((name) => ofFirst[name]));
	const isSecret = [...expressions.values()].some((text) => ONLY_IN_CREDENTIALS.test(text));
	return isSame && !isSecret ? async (itemIndex) => ok(evaluated(itemIndex)) : whole;
}

/**
 * The expressions that may differ between items, by field, without their equals sign. n8n has no method that shows
 * them, so the stored credential is read through internals of the context.
 * @returns `undefined` if it cannot be read
 */
async function readExpressions(
	context: CredentialContext,
	type: CredentialType,
): Promise<ReadonlyMap<string, string> | undefined> {
	const additionalData = member(context, 'additionalData');
	const helper = member(additionalData, 'credentialsHelper');
	const read = member(helper, 'getDecrypted');
	const stored = context.getNode().credentials?.[type];
	if (typeof read !== 'function' || !stored) return undefined;
	try {
		const isRaw = true;
		const args = [additionalData, stored, type, context.getMode(), member(context, 'executeData'), isRaw];
		const raw: unknown = await Reflect.apply(read, helper, args);
		if (!isJsonObject(raw)) return undefined;
		const varying = Object.entries(raw).flatMap(([name, value]) => {
			const isVarying = typeof value === 'string' && value.startsWith('=') && mayVary(value);
			return isVarying ? [[name, value.slice(1)] as const] : [];
		});
		return new Map(varying);
	} catch {
		return undefined;
	}
}

/** Variables whose values are the same for all items of a run. */
const OF_THE_RUN = /\$(?:secrets|vars|env|now|today)\b/g;
const ONLY_IN_CREDENTIALS = /\$(?:secrets|self)\b/;

function mayVary(expression: string): boolean {
	return expression.replace(OF_THE_RUN, '').includes('$');
}
