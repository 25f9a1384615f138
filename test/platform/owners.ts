import { randomBytes } from 'node:crypto';

export interface Owner {
	readonly name: string;
	readonly apiKey: string;
}

/** The owners, who may use the platform. */
export class Owners {
	readonly #byKey = new Map<string, Owner>();
	readonly #names = new Set<string>();

	create(name: string, apiKey = `sk-${randomBytes(24).toString('hex')}`): Owner {
		if (!apiKey.startsWith('sk-')) throw new Error('An API key begins with sk-.');
		if (this.#names.has(name)) throw new Error(`There is an owner named ${name} already.`);
		this.#names.add(name);
		const owner: Owner = { name, apiKey };
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
}
