/** The bounds keep a hostile header from taking long. */
const PARAMETER =
	/(?:^|;)\s{0,99}(filename\*?)\s{0,99}=\s{0,99}(?:"((?:\\.|[^"\\]){0,4096})"|([^;"]{0,4096}))/gi;

/**
 * The file name in a `Content-Disposition` header (RFC 6266), not made safe. `filename*` (RFC 5987) is preferred;
 * `filename` is read as browsers do: as UTF-8 where it is such, with percent escapes.
 */
export function nameInDisposition(header: string | undefined): string | undefined {
	const found = new Map<string, string>();
	for (const [, name = '', quoted, token = ''] of (header ?? '').matchAll(PARAMETER)) {
		found.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token.trim());
	}
	const extended = decodeExtended(found.get('filename*') ?? '');
	const plain = decodeBytes(Buffer.from(found.get('filename') ?? '', 'latin1'));
	return extended || decodePercents(plain) || undefined;
}

/** `UTF-8'en'na%C3%AFve.png` */
function decodeExtended(value: string): string | undefined {
	const [, charset = '', text = ''] = /^([^']*)'[^']*'(.*)$/.exec(value) ?? [];
	const bytes = Buffer.from(
		text.replace(/%([0-9a-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
		'latin1',
	);
	if (/^utf-?8$/i.test(charset)) return bytes.toString('utf8');
	return /^iso-8859-1$/i.test(charset) ? bytes.toString('latin1') : undefined;
}

/** Node gives the bytes of a header as Latin-1, whatever they were. */
function decodeBytes(bytes: Buffer): string {
	const text = bytes.toString('utf8');
	return text.includes('\uFFFD') ? bytes.toString('latin1') : text;
}

function decodePercents(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
