import { randomBytes } from 'node:crypto';

export type AssetKind = 'checkpoint' | 'vae' | 'lora';

/** The prefix of models that belong to one owner; all other models are the platform's own. */
export const PRIVATE_PREFIX = 'private/';

export interface Owner {
	readonly name: string;
	readonly apiKey: string;
	readonly assets: ReadonlyMap<AssetKind, Set<string>>;
}

/** The owners, who may use the platform, and the private models that each has uploaded. */
export class Owners {
	readonly #byKey = new Map<string, Owner>();
	readonly #names = new Set<string>();

	create(name: string, apiKey = `sk-${randomBytes(24).toString('hex')}`): Owner {
		if (!apiKey.startsWith('sk-')) throw new Error('An API key begins with sk-.');
		if (this.#names.has(name)) throw new Error(`There is an owner named ${name} already.`);
		this.#names.add(name);
		const assets = new Map<AssetKind, Set<string>>([
			['checkpoint', new Set()],
			['vae', new Set()],
			['lora', new Set()],
		]);
		const owner: Owner = { name, apiKey, assets };
		this.#byKey.set(owner.apiKey, owner);
		return owner;
	}

	withKey(apiKey: string): Owner | undefined {
		return this.#byKey.get(apiKey);
	}

	/** Finds the owner that an `Authorization` header names. */
	fromHeader(authorization: string | undefined): Owner | undefined {
		const key = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1];
		return key === undefined ? undefined : this.#byKey.get(key);
	}

	addAsset(owner: Owner, kind: AssetKind, name: string): string {
		const full = name.startsWith(PRIVATE_PREFIX) ? name : `${PRIVATE_PREFIX}${name}`;
		owner.assets.get(kind)?.add(full);
		return full;
	}

	/** Whether any owner has uploaded this private model. */
	assetExists(kind: AssetKind, name: string): boolean {
		return [...this.#byKey.values()].some((owner) => owner.assets.get(kind)?.has(name));
	}
}
