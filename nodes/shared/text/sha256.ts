import { createHash } from 'crypto';

/** The digest of a text (as UTF-8) or of bytes. */
export function sha256(data: string | Uint8Array, encoding: 'base64url' | 'hex' = 'base64url'): string {
	return createHash('sha256').update(data).digest(encoding);
}

/** The digest of several texts, which are kept apart. */
export function digestOf(...parts: readonly string[]): string {
	return sha256(JSON.stringify(parts));
}

/** The first 132 bits: unique within one n8n instance, and short for a key in memory. */
export function shortSha256(text: string): string {
	return sha256(text).slice(0, 22);
}
