import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PROMPT_TOKEN_PREFIX } from '../../platform';

/** Matches the platform's secrets by their prefixes. */
const IS_SECRET = /^(sk-|agt_|dbg_|wst_)./;

/** The prefix of tasks' tokens, plain and as in a URL; no such token may be stored at all. */
const PROMPT_TOKENS = [PROMPT_TOKEN_PREFIX, encodeURIComponent(PROMPT_TOKEN_PREFIX)];

/** Secrets that an n8n's folder may contain only encrypted, by folder, because n8n is restarted in it. */
const known = new Map<string, Set<string>>();

/** Records the secrets of a credential that is given to the n8n of a folder. */
export function noteSecrets(userFolder: string, credential: Readonly<Record<string, unknown>>): void {
	const secrets = known.get(userFolder) ?? new Set<string>();
	known.set(userFolder, secrets);
	for (const value of Object.values(credential)) {
		if (typeof value === 'string' && IS_SECRET.test(value)) secrets.add(value);
	}
}

/** Fails if n8n's database, logs or binary store contain a secret in plain text. To be called once n8n has ended. */
export async function refuseSecretsIn(userFolder: string): Promise<void> {
	const leaks = await filesWith(userFolder, [...(known.get(userFolder) ?? []), ...PROMPT_TOKENS]);
	if (leaks.length > 0) throw new Error(`A secret is in plain text in ${leaks.join(', ')}`);
}

async function filesWith(folder: string, secrets: readonly string[]): Promise<string[]> {
	const found: string[] = [];
	for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
		const path = join(entry.parentPath, entry.name);
		if (!entry.isFile() || path.includes('node_modules')) continue;
		if (await holdsOneOf(path, secrets)) found.push(path);
	}
	return found;
}

async function holdsOneOf(path: string, secrets: readonly string[]): Promise<boolean> {
	const longest = Math.max(...secrets.map(({ length }) => length));
	let tail = '';
	for await (const chunk of createReadStream(path, { encoding: 'latin1', highWaterMark: 1 << 20 })) {
		const text = tail + String(chunk);
		if (secrets.some((secret) => text.includes(secret))) return true;
		tail = text.slice(-longest);
	}
	return false;
}
