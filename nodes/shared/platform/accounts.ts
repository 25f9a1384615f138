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

type CredentialContext = Pick<
	IExecuteFunctions,
	'getCredentials' | 'getExecuteData' | 'getInputData' | 'getMode' | 'getNode'
>;

/** Keeps the queue of n8n's database short, which answers one read after the other anyway. */
const READS_AT_ONCE = 16;

/**
 * Reads and checks the credential, with its expressions as each item sees them. A read takes n8n 0.8 ms (a database read,
 * a decryption and expressions), so it is read only once if its fields are known not to differ between items.
 * @returns a failure if no item can have an account
 */
export async function readAccounts<T>(
	context: CredentialContext,
	type: CredentialType,
	check: (fields: Fields) => Result<T>,
): Promise<Result<Accounts<ReadAccount<T>>>> {
	const readOnce = sharingEqual(async (itemIndex) => await readCredential(context, type, itemIndex));
	const first = await readOnce(0);
	const expressions = await varyingFields(context, type);
	if (!first.ok && !expressions?.size) return first;
	const limit = pLimit(READS_AT_ONCE);
	const others = expressions?.size === 0 ? [] : context.getInputData().slice(1);
	const readNext = others.map(async (_, index) => await limit(async () => await readOnce(index + 1)));
	const reads = [first, ...(await Promise.all(readNext))];
	const known = new Map<Result<Fields>, Result<ReadAccount<T>>>();
	const accounts = reads.map((fields): Result<ReadAccount<T>> => {
		if (!fields.ok) return fields;
		const account = known.get(fields) ?? checked(fields.value, check);
		known.set(fields, account);
		return account;
	});
	const varying = expressions ?? differingFields(reads);
	const [shared] = accounts;
	if (shared && varying.size === 0 && reads.every((fields) => fields.ok)) {
		if (!shared.ok) return shared;
		return ok({ all: [shared.value], of: () => shared, varying });
	}
	const ofItem = accounts.map((account, itemIndex) =>
		account.ok ? account : fail(ofOneItem(account.failure, itemIndex)),
	);
	return ok({
		all: [...known.values()].flatMap((account) => (account.ok ? [account.value] : [])),
		of: (index) => ofItem[index] ?? fail(NO_SUCH_ITEM),
		varying,
	});
}

/** Keeps equal fields once: with saved workflows they can be a megabyte, and each read returns a new copy. */
function sharingEqual(
	read: (itemIndex: number) => Promise<Result<Fields>>,
): (itemIndex: number) => Promise<Result<Fields>> {
	const known = new Map<string, Result<Fields>>();
	return async (itemIndex) => {
		const fields = await read(itemIndex);
		if (!fields.ok) return fields;
		const name = JSON.stringify(fields.value);
		const same = known.get(name) ?? fields;
		known.set(name, same);
		return same;
	};
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

function checked<T>(fields: Fields, check: (fields: Fields) => Result<T>): Result<ReadAccount<T>> {
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
			"The credential contains expressions, so each item has its own values: check them against this item's data. Nothing was sent for it.",
		details: { ...details, item: itemIndex },
	};
}

/**
 * The fields with expressions that may differ between items. n8n has no method that shows expressions, so the stored
 * credential is read through internals of the context.
 * @returns `undefined` if it cannot be read
 */
async function varyingFields(
	context: CredentialContext,
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

/** Expressions whose values are the same for all items of a run. */
const OF_THE_INSTANCE = /\$(?:secrets|vars|env)\b/g;

function mayVary(value: unknown): boolean {
	if (typeof value !== 'string' || !value.startsWith('=')) return false;
	return value.replace(OF_THE_INSTANCE, '').includes('$');
}

/** The fields whose values differ, if their expressions cannot be read. */
function differingFields(reads: ReadonlyArray<Result<Fields>>): ReadonlySet<string> {
	const values = [...new Set(reads)].flatMap((read) => (read.ok ? [read.value] : []));
	const names = new Set(values.flatMap((fields) => Object.keys(fields)));
	const differs = (name: string): boolean =>
		new Set(values.map((fields) => JSON.stringify(fields[name]))).size > 1;
	return new Set([...names].filter(differs));
}
