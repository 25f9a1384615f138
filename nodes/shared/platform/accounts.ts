import type { ICredentialDataDecryptedObject, IExecuteFunctions } from 'n8n-workflow';
import pLimit from 'p-limit';

import { readCredential, type CredentialType } from './credential';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { isJsonObject, member } from '../text/json';

/**
 * The accounts of one node run. A credential's fields may contain expressions, so each item may have an account of its
 * own; items with the same field values share one.
 */
export interface Accounts<T> {
	/** Each account once, in the order of the items. */
	readonly all: readonly T[];
	/** The account of an item, or why it has none. */
	readonly of: (itemIndex: number) => Result<T>;
	/** The fields of the credential whose values may differ between items. */
	readonly varying: ReadonlySet<string>;
}

type Fields = ICredentialDataDecryptedObject;

export interface ReadAccount<T> {
	readonly account: T;
	readonly fields: Fields;
}

type CredentialContext = Pick<IExecuteFunctions, 'getCredentials' | 'getInputData' | 'getMode' | 'getNode'>;

/** The most concurrent reads, to keep n8n's database queue short; the database answers one read at a time anyway. */
const READS_AT_ONCE = 16;

/**
 * Reads and checks the credential, with its expressions evaluated for each item. A read takes n8n 0.8 ms (a database
 * read, a decryption and expressions), so the credential is read only once if its fields are known not to differ
 * between items.
 * @returns a failure only if it applies to all items
 */
export async function readAccounts<T>(
	context: CredentialContext,
	type: CredentialType,
	check: (fields: Fields) => Result<T>,
	items: readonly unknown[] = context.getInputData(),
): Promise<Result<Accounts<ReadAccount<T>>>> {
	// Equal credentials are kept once, because saved workflows can take a megabyte, and each read returns a new copy.
	const known = new Map<string, { readonly fields: Fields; readonly account: Result<ReadAccount<T>> }>();
	const accountOf = (fields: Fields) => {
		const account = check(fields);
		return { fields, account: account.ok ? ok({ account: account.value, fields }) : account };
	};
	const readItem = async (itemIndex: number): Promise<Result<ReadAccount<T>>> => {
		const fields = await readCredential(context, type, itemIndex);
		if (!fields.ok) return fields;
		const name = JSON.stringify(fields.value);
		const read = known.get(name) ?? accountOf(fields.value);
		known.set(name, read);
		return read.account;
	};
	const first = await readItem(0);
	const expressions = await varyingFields(context, type);
	if (!first.ok && known.size === 0 && !expressions?.size) return first;
	const limit = pLimit(READS_AT_ONCE);
	const others = expressions?.size === 0 ? [] : items.slice(1);
	const readNext = others.map(async (_, index) => await limit(async () => await readItem(index + 1)));
	const accounts = [first, ...(await Promise.all(readNext))];
	const varying = expressions ?? differingFields([...known.values()].map(({ fields }) => fields));
	const isShared = varying.size === 0 && accounts.every((account) => account === first);
	if (isShared && !first.ok) return first;
	const ofItem = accounts.map((account, itemIndex) =>
		account.ok ? account : fail(ofOneItem(account.failure, itemIndex)),
	);
	return ok({
		all: [...new Set(accounts)].flatMap((account) => (account.ok ? [account.value] : [])),
		of: (itemIndex) => {
			const account = ofItem[isShared ? 0 : itemIndex];
			if (!account) throw new TypeError(`The run has no item ${itemIndex}`);
			return account;
		},
		varying,
	});
}

/** @param make called once per account */
export function mapAccounts<T, U>(accounts: Accounts<T>, make: (account: T) => U): Accounts<U> {
	const made = new Map(accounts.all.map((account) => [account, make(account)]));
	return {
		...accounts,
		all: [...made.values()],
		of: (itemIndex) => {
			const account = accounts.of(itemIndex);
			if (!account.ok) return account;
			const own = made.get(account.value);
			// An account made twice would have two rate limiters.
			if (own === undefined) throw new TypeError('An item uses an account that the run does not know');
			return ok(own);
		},
	};
}

export function itemsByAccount<T>(
	accounts: Accounts<T>,
	itemIndexes: Iterable<number>,
): ReadonlyMap<T, readonly number[]> {
	const items = new Map<T, number[]>(accounts.all.map((account) => [account, []]));
	for (const itemIndex of itemIndexes) {
		const account = accounts.of(itemIndex);
		if (account.ok) items.get(account.value)?.push(itemIndex);
	}
	return items;
}

function ofOneItem({ kind, message, details }: Failure, itemIndex: number): Failure {
	return {
		kind,
		message: `The credential cannot be used for item ${itemIndex}. ${message}`,
		advice:
			"The credential contains expressions, so its values may differ for each item. Check the expressions against this item's data. Nothing was sent for this item.",
		details: { ...details, item: itemIndex },
	};
}

/**
 * The fields with expressions that may differ between items. n8n has no method that shows expressions, so the stored
 * credential is read through internals of the context.
 * @returns `undefined` if it cannot be read
 */
async function varyingFields(context: CredentialContext, type: CredentialType) {
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
		return new Set(Object.keys(raw).filter((name) => mayVary(raw[name])));
	} catch {
		return undefined;
	}
}

/** Variables whose values are the same for all items of a run. */
const OF_THE_INSTANCE = /\$(?:secrets|vars|env)\b/g;

function mayVary(value: unknown): boolean {
	if (typeof value !== 'string' || !value.startsWith('=')) return false;
	return value.replace(OF_THE_INSTANCE, '').includes('$');
}

/** The fields whose values differ between items; used if the credential's expressions cannot be read. */
function differingFields(values: readonly Fields[]): ReadonlySet<string> {
	const names = new Set(values.flatMap((fields) => Object.keys(fields)));
	const differs = (name: string): boolean =>
		new Set(values.map((fields) => JSON.stringify(fields[name]))).size > 1;
	return new Set([...names].filter(differs));
}
