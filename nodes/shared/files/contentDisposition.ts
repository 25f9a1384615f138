import { decodePercents } from '../text/webAddress';

/** The bounds limit the time that matching a hostile header can take. */
const PARAMETER =
	/(?:^|;)\s{0,99}(filename\*?)\s{0,99}=\s{0,99}(?:"((?:\\.|[^"\\]){0,4096})"|([^;"]{0,4096}))/gi;

/**
 * The file name in a `Content-Disposition` header (RFC 6266), unsanitized. `filename*` is preferred if it is in UTF-8,
 * the only charset that RFC 8187 requires. Both parameters are read as browsers read them, as UTF-8 if valid, with
 * percent escapes, because some servers send bare bytes even in `filename*`.
 */
export function nameInDisposition(header: string | undefined): string | undefined {
	const found = new Map<string, string>();
	for (const [, name = '', quoted, token = ''] of (header ?? '').matchAll(PARAMETER)) {
		found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token.trim());
	}
	const [, extended] = /^utf-?8'[^']*'(.*)$/i.exec(found.get('filename*') ?? '') ?? [];
	const name = extended || found.get('filename') || '';
	return decodePercents(decodeBytes(Buffer.from(name, 'latin1'))) || undefined;
}

/** Node decodes headers as Latin-1, whatever their charset. */
function decodeBytes(bytes: Buffer): string {
	const text = bytes.toString('utf8');
	return text.includes('\uFFFD') ? bytes.toString('latin1') : text;
}
