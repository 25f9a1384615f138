import { createHash } from 'crypto';

/** Of a text in UTF-8, or of bytes. */
export function sha256(data: string | Uint8Array, encoding: 'base64url' | 'hex' = 'base64url'): string {
	return createHash('sha256').update(data).digest(encoding);
}

/** The first 132 bits: enough to tell apart what one run or one n8n knows, and short enough for a key in memory. */
export function shortSha256(text: string): string {
	return sha256(text).slice(0, 22);
}
