import type { ICredentialDataDecryptedObject, INode } from 'n8n-workflow';

import { failInput, ok } from '../../../../nodes/shared/errors/failure';
import { readRunAccount } from '../../../../nodes/shared/platform/runAccount';

type Fields = ICredentialDataDecryptedObject;
type Context = Parameters<typeof readRunAccount>[0];

const NODE: INode = {
	...{ id: '1', name: 'Node', type: 'x', typeVersion: 1, parameters: {}, position: [0, 0] },
	credentials: { flowPlatformApi: { id: 'c1', name: 'mine' } },
};

interface Scene {
	readonly perItem: Fields[];
	/** The unresolved credential, or how reading it fails; left out if n8n hides it. */
	readonly stored?: Fields | Error;
}

/** A context with the credential of each item, and the items whose whole credential was read. */
function contextOf({ perItem, stored }: Scene) {
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

async function read(context: Context) {
	return await readRunAccount(context, 'flowPlatformApi', ({ key }) =>
		key === 'wrong' ? failInput('The key is wrong', '') : ok(key),
	);
}

const REFUSED =
	'The FlowPlatform API credential has different values for rows 1 and 3 of the input, but a run uses one account';
const SAME = Array.from({ length: 50 }, () => ({ key: 'k' }));
const MIXED = ['a', 'a', 'b'].map((key) => ({ key }));

test.each([
	['k', false],
	['={{ $secrets.vault.key }}', false],
	['={{ $vars.key + $env.MORE + $now }}', false],
	['=sk-{{ $json.key }}', true],
	['={{ $vars[$json.name] }}', true],
	["={{ $('Login').item.json.key }}", true],
	['={{ $input.item.json.key }}', true],
])('with %s in a field, the account varies: %s, and only then each item is read', async (key, varies) => {
	const { context, reads } = contextOf({ perItem: SAME, stored: { key } });
	expect(await read(context)).toMatchObject({ ok: true, value: { account: 'k', varies } });
	expect(reads).toHaveLength(varies ? SAME.length : 1);
});

test.each<[string, Omit<Scene, 'perItem'>]>([
	['known', { stored: { key: '={{ $json.key }}' } }],
	['hidden', {}],
	['refused', { stored: new Error('no') }],
	['with a secret per item', { stored: { key: '={{ $secrets.vault[$json.key] ?? "" }}' } }],
])('refuses a run whose items have other values, with stored fields %s', async (_how, scene) => {
	const mixed = await read(contextOf({ ...scene, perItem: MIXED }).context);
	expect(mixed).toMatchObject({ ok: false, failure: { message: REFUSED } });
	const same = await read(contextOf({ ...scene, perItem: SAME }).context);
	expect(same).toMatchObject({ ok: true, value: { account: 'k' } });
});

test('a wrong value is told as such if all items have it', async () => {
	const wrong = [{ key: 'wrong' }, { key: 'wrong' }];
	const { context } = contextOf({ perItem: wrong, stored: { key: '={{ $json.key }}' } });
	expect(await read(context)).toMatchObject({ ok: false, failure: { message: 'The key is wrong' } });
});
