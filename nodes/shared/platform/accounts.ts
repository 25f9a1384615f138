import type { ICredentialDataDecryptedObject, IExecuteFunctions } from 'n8n-workflow';
import pLimit from 'p-limit';

import { readCredential, type CredentialType } from './credential';
import { fail, ok, type Failure, type Result } from '../errors/failure';
import { isJsonObject } from '../text/json';

/**
 * The accounts of one node run. A credential's fields may hold expressions, so that each item can have an account of
 * its own; items whose fields come to the same have one account together.
 */
export interface Accounts<T> {
	/** Each account once, in the order of the items. */
	readonly all: readonly T[];
	/** The account of an item, or why it has none. */
	readonly of: (itemIndex: number) => Result<T>;
	/** The fields of the credential whose values may differ from item to item. */
	readonly varying: ReadonlySet<string>;
}

/** A checked account, and the decrypted fields that it was read from. */
export interface ReadAccount<T> {
	readonly account: T;
	readonly fields: ICredentialDataDecryptedObject;
}

type Context = Pick<
	IExecuteFunctions,
	'getCredentials' | 'getExecuteData' | 'getInputData' | 'getMode' | 'getNode'
>;

/** n8n's database answers in turn anyway; this only keeps its queue short. */
const READS_AT_ONCE = 16;

/**
 * Reads and checks the credential as every item of the run sees it.
 *
 * Reading it once an item costs n8n 0.8 ms each time (a database read, a decryption, and expressions): 8 s for 10,000
 * items. So it is read once where its fields hold nothing that could differ between items, and for each item where
 * they do, or where that cannot be seen.
 *
 * @returns a failure where no item can have an account
 */
export async function readAccounts<T>(
	context: Context,
	type: CredentialType,
	check: (fields: ICredentialDataDecryptedObject) => Result<T>,
): Promise<Result<Accounts<ReadAccount<T>>>> {
	const itemCount = context.getInputData().length;
	const first = await readCredential(context, type, 0);
	const seen = await varyingFields(context, type);
	if (!first.ok && (seen?.size ?? 0) === 0) return first;
	if (seen?.size === 0) return shared(first, check);
	const limit = pLimit(READS_AT_ONCE);
	const reads = await Promise.all(
		Array.from({ length: itemCount }, async (_, itemIndex) =>
			itemIndex === 0 ? first : await limit(async () => await readCredential(context, type, itemIndex)),
		),
	);
	if (seen === undefined && countDistinct(reads) <= 1) return shared(first, check);
	return ok(group(reads, check, seen ?? differingFields(reads)));
}

/** The same items with what is made of their accounts; made once for each account. */
export function mapAccounts<T, U>(accounts: Accounts<T>, make: (account: T) => U): Accounts<U> {
	const made = new Map(accounts.all.map((account) => [account, make(account)]));
	return {
		...accounts,
		all: [...made.values()],
		of: (itemIndex) => {
			const account = accounts.of(itemIndex);
			if (!account.ok) return account;
			const own = made.get(account.value);
			if (own === undefined) throw new TypeError('An item has an account that the run does not know');
			return ok(own);
		},
	};
}

/** The items of each account, in their order. */
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

function shared<T>(
	fields: Result<ICredentialDataDecryptedObject>,
	check: (fields: ICredentialDataDecryptedObject) => Result<T>,
): Result<Accounts<ReadAccount<T>>> {
	if (!fields.ok) return fields;
	const account = check(fields.value);
	if (!account.ok) return account;
	const only = { account: account.value, fields: fields.value };
	return ok({ all: [only], of: () => ok(only), varying: new Set() });
}

function group<T>(
	reads: ReadonlyArray<Result<ICredentialDataDecryptedObject>>,
	check: (fields: ICredentialDataDecryptedObject) => Result<T>,
	varying: ReadonlySet<string>,
): Accounts<ReadAccount<T>> {
	const byFields = new Map<string, Result<ReadAccount<T>>>();
	const ofItem = reads.map((fields, itemIndex): Result<ReadAccount<T>> => {
		if (!fields.ok) return fail(ofOneItem(fields.failure, itemIndex));
		const name = JSON.stringify(fields.value);
		const known = byFields.get(name) ?? checked(fields.value, check);
		byFields.set(name, known);
		return known.ok ? known : fail(ofOneItem(known.failure, itemIndex));
	});
	return {
		all: [...byFields.values()].flatMap((read) => (read.ok ? [read.value] : [])),
		of: (index) => ofItem[index] ?? fail(NO_SUCH_ITEM),
		varying,
	};
}

function checked<T>(
	fields: ICredentialDataDecryptedObject,
	check: (fields: ICredentialDataDecryptedObject) => Result<T>,
): Result<ReadAccount<T>> {
	const account = check(fields);
	return account.ok ? ok({ account: account.value, fields }) : account;
}

const NO_SUCH_ITEM: Failure = {
	kind: 'credential',
	message: 'The credential was not read for this item',
	advice: '',
};

function ofOneItem({ kind, message, details }: Failure, itemIndex: number): Failure {
	return {
		kind,
		message: `The credential cannot be used for item ${itemIndex}. ${message}`,
		advice:
			"The credential holds expressions, so each item has values of its own: compare them with this item's data. Nothing was sent for it.",
		details: { ...details, item: itemIndex },
	};
}

/**
 * The fields that hold expressions over more than the run as a whole. No method of a node's context tells, so that the
 * stored credential is asked for where n8n's context has it.
 * @returns `undefined` where it has none
 */
async function varyingFields(
	context: Context,
	type: CredentialType,
): Promise<ReadonlySet<string> | undefined> {
	const additionalData = member(context, 'additionalData');
	const helper = member(additionalData, 'credentialsHelper');
	const read = member(helper, 'getDecrypted');
	const stored = context.getNode().credentials?.[type];
	if (typeof read !== 'function' || !stored) return undefined;
	try {
		const isRaw = true;
		const args = [additionalData, stored, type, context.getMode(), context.getExecuteData(), isRaw];
		const raw: unknown = await Reflect.apply(read, helper, args);
		if (!isJsonObject(raw)) return undefined;
		return new Set(Object.keys(raw).filter((name) => mayVary(raw[name])));
	} catch {
		return undefined;
	}
}

/** What is the same for all items of a run, whatever the workflow does. */
const OF_THE_INSTANCE = /\$(?:secrets|vars|env)\b/g;

function mayVary(value: unknown): boolean {
	if (typeof value !== 'string' || !value.startsWith('=')) return false;
	return value.replace(OF_THE_INSTANCE, '').includes('$');
}

function countDistinct(reads: ReadonlyArray<Result<unknown>>): number {
	return new Set(reads.map((read) => JSON.stringify(read))).size;
}

/** Where expressions cannot be seen, their values can. */
function differingFields(reads: ReadonlyArray<Result<ICredentialDataDecryptedObject>>): ReadonlySet<string> {
	const values = reads.flatMap((read) => (read.ok ? [read.value] : []));
	const names = new Set(values.flatMap((fields) => Object.keys(fields)));
	const differs = (name: string): boolean =>
		new Set(values.map((fields) => JSON.stringify(fields[name]))).size > 1;
	return new Set([...names].filter(differs));
}

function member(value: unknown, key: string): unknown {
	return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
