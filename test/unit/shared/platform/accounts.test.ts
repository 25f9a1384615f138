import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import type { ICredentialDataDecryptedObject, INode } from 'n8n-workflow';

import {
	itemsByAccount,
	readAccounts,
	type Accounts,
	type ReadAccount,
} from '../../../../nodes/shared/platform/accounts';
import { failInput, ok, type Result } from '../../../../nodes/shared/errors/failure';
import { valueOf } from '../../results';

type Fields = ICredentialDataDecryptedObject;
type Context = Parameters<typeof readAccounts>[0];

const NODE: INode = {
	...{ id: '1', name: 'Node', type: 'x', typeVersion: 1, parameters: {}, position: [0, 0] },
	credentials: { flowPlatformApi: { id: 'c1', name: 'mine' } },
};

/** A context with the credential of each item; `stored` is the unresolved credential, if n8n shows it. */
function contextOf(perItem: Fields[], stored?: Fields | Error): { context: Context; reads: number[] } {
	const reads: number[] = [];
	const getDecrypted = async (): Promise<Fields> => {
		if (stored instanceof Error) throw stored;
		return stored ?? {};
	};
	const context = {
		getInputData: () => perItem.map(() => ({ json: {} })),
		getNode: () => NODE,
		getMode: () => 'trigger',
		getCredentials: async (_type: string, itemIndex = 0) => {
			reads.push(itemIndex);
			return perItem[itemIndex] ?? {};
		},
		...(stored && { additionalData: { credentialsHelper: { getDecrypted } } }),
	};
	return { context: context as unknown as Context, reads };
}

async function read(context: Context): Promise<Accounts<ReadAccount<unknown>>> {
	const accounts: Result<Accounts<ReadAccount<unknown>>> = await readAccounts(
		context,
		'flowPlatformApi',
		({ key }) => (key === 'wrong' ? failInput('The key is wrong', '') : ok(key)),
	);
	return valueOf(accounts);
}

const SAME = Array.from({ length: 50 }, () => ({ key: 'k' }));
const MIXED = [{ key: 'a' }, { key: 'b' }, { key: 'a' }];

test.each([
	['k', []],
	['={{ $secrets.vault.key }}', []],
	['={{ $vars.key + $env.MORE }}', []],
	['=sk-{{ $json.key }}', ['key']],
	['={{ $vars[$json.name] }}', ['key']],
	["={{ $('Login').item.json.key }}", ['key']],
	['={{ $input.item.json.key }}', ['key']],
])(
	'with %s in a field, %j may vary, which decides how often the credential is read',
	async (key, varying) => {
		const { context, reads } = contextOf(SAME, { key });
		const accounts = await read(context);
		expect([...accounts.varying]).toEqual(varying);
		expect(reads).toHaveLength(varying.length > 0 ? SAME.length : 1);
		expect(accounts.all).toHaveLength(1);
	},
);

test.each([
	['hidden', undefined],
	['refused', new Error('no')],
])('if the stored fields are %s, the credential of every item is read and compared', async (_how, stored) => {
	const mixed = contextOf(MIXED, stored);
	const accounts = await read(mixed.context);
	expect(mixed.reads).toEqual([0, 1, 2]);
	expect([...accounts.varying]).toEqual(['key']);
	expect([...itemsByAccount(accounts, [0, 1, 2]).values()]).toEqual([[0, 2], [1]]);
	const same = await read(contextOf(SAME, stored).context);
	expect([same.all.length, same.varying.size]).toEqual([1, 0]);
});

test('a credential that is wrong for the first item fails only that item if its fields are hidden', async () => {
	const accounts = await read(contextOf([{ key: 'wrong' }, { key: 'b' }]).context);
	expect(accounts.of(0)).toMatchObject({ ok: false, failure: { details: { item: 0 } } });
	expect(accounts.of(1)).toMatchObject({ ok: true, value: { account: 'b' } });
});

test('a read that fails fails only its item, even if all others are equal', async () => {
	const { context } = contextOf(SAME);
	const getCredentials = async (_type: string, itemIndex = 0): Promise<Fields> => {
		if (itemIndex === 7) throw new Error('no such node');
		return { key: 'k' };
	};
	const accounts = await read({ ...context, getCredentials } as Context);
	expect(SAME.flatMap((_, item) => (accounts.of(item).ok ? [] : [item]))).toEqual([7]);
	expect(accounts.all).toHaveLength(1);
});

test('a wrong expression fails each item, and a wrong constant the run', async () => {
	const wrong = [{ key: 'wrong' }, { key: 'wrong' }];
	const accounts = await read(contextOf(wrong, { key: '={{ $json.key }}' }).context);
	expect(accounts.of(1)).toMatchObject({ ok: false, failure: { details: { item: 1 } } });
	await expect(read(contextOf(wrong, { key: 'wrong' }).context)).rejects.toThrow(/^The key is wrong$/);
});

test('accounts are in the order of their items, whichever is read first', async () => {
	const { context } = contextOf([{ key: 'a' }, { key: 'b' }, { key: 'c' }], { key: '={{ $json.key }}' });
	const getCredentials = async (type: string, itemIndex = 0): Promise<Fields> => {
		for (let turns = itemIndex; turns < 3; turns++) await setImmediate();
		return await context.getCredentials(type, itemIndex);
	};
	const accounts = await read({ ...context, getCredentials } as Context);
	expect(accounts.all.map(({ account }) => account)).toEqual(['a', 'b', 'c']);
});

test('only one copy of equal fields is kept, because n8n creates them anew for each item', async () => {
	setFlagsFromString('--expose-gc');
	const collect = runInNewContext('gc') as () => void;
	const { context } = contextOf(SAME);
	const made: Array<WeakRef<Fields>> = [];
	let alive = Infinity;
	const getCredentials = async (_type: string, itemIndex = 0): Promise<Fields> => {
		await setImmediate();
		if (itemIndex === SAME.length - 1) {
			collect();
			alive = made.filter((fields) => fields.deref() !== undefined).length;
		}
		const fields = { key: 'k' };
		made.push(new WeakRef(fields));
		return fields;
	};
	await read({ ...context, getCredentials } as Context);
	// The first one and those of simultaneous reads are alive.
	expect(alive).toBeLessThan(20);
});
