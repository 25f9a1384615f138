/** Mime type, extension, and how the file begins: one character per byte, `?` for any. The first match counts. */
const FORMATS: ReadonlyArray<readonly [mimeType: string, extension: string, beginning: string]> = [
	['image/png', 'png', '\x89PNG'],
	['image/jpeg', 'jpg', '\xff\xd8\xff'],
	['image/gif', 'gif', 'GIF8'],
	['image/webp', 'webp', 'RIFF????WEBP'],
	['audio/wav', 'wav', 'RIFF????WAVE'],
	['image/avif', 'avif', '????ftypavif'],
	['image/heic', 'heic', '????ftypheic'],
	['image/heic', 'heic', '????ftypheix'],
	['image/heif', 'heif', '????ftypmif1'],
	['video/quicktime', 'mov', '????ftypqt'],
	['video/mp4', 'mp4', '????ftyp'],
	['video/webm', 'webm', '\x1a\x45\xdf\xa3'],
	['image/tiff', 'tif', 'II*\0'],
	['image/tiff', 'tif', 'MM\0*'],
	['image/bmp', 'bmp', 'BM'],
	['audio/mpeg', 'mp3', 'ID3'],
	['audio/flac', 'flac', 'fLaC'],
	['model/gltf-binary', 'glb', 'glTF'],
	['application/zip', 'zip', 'PK\x03\x04'],
];

function formatOf(head: Uint8Array): (typeof FORMATS)[number] | undefined {
	return FORMATS.find(([, , beginning]) =>
		[...beginning].every((char, at) => char === '?' || head[at] === char.charCodeAt(0)),
	);
}

export interface FileType {
	readonly mimeType: string;
	/** Without a dot; empty if unknown. */
	readonly extension: string;
}

/** Enough bytes to recognise a format, or text that was sent instead of a file. */
export const HEAD_BYTES = 256;
/** Enough to reach the first element of an SVG. */
const START_BYTES = 4_096;

const UNKNOWN_TYPE = 'application/octet-stream';

const ENDING = /\.([A-Za-z0-9]{1,8})$/;

/** The type of a file: its bytes first, then what the server said, then the name's ending. */
export function fileTypeOf(head: Uint8Array, contentType: string | undefined, name: string): FileType {
	const said = saidType(contentType);
	const ending = endingOf(name);
	const told = formatOf(head) ?? FORMATS.find(([mimeType]) => mimeType === said);
	if (told) return { mimeType: told[0], extension: told[1] };
	if (said.includes('/') && said !== UNKNOWN_TYPE) return { mimeType: said, extension: ending };
	const named = FORMATS.find(([, extension]) => extension === ending);
	// None of the formats begins with text, so text is not one of them, whatever its name says.
	if (named && isText(head)) return { mimeType: 'text/plain', extension: 'txt' };
	return { mimeType: named?.[0] ?? UNKNOWN_TYPE, extension: ending };
}

function saidType(contentType = ''): string {
	return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}

function endingOf(name: string): string {
	return ENDING.exec(name)?.[1]?.toLowerCase() ?? '';
}

const MEDIA_TYPE = /^(image|video|audio)\//;
/** Endings of image, video and audio files beside those of the formats above. */
const MEDIA_ENDINGS: ReadonlySet<string> = new Set([
	...['jpeg', 'tiff', 'svg', 'm4v', 'm4a', 'ogg'],
	...FORMATS.filter(([mimeType]) => MEDIA_TYPE.test(mimeType)).map(([, extension]) => extension),
]);

/** Whether the server or the name says that a file is an image, a video or a sound. */
export function saysMedia(contentType: string | undefined, name: string): boolean {
	return MEDIA_TYPE.test(saidType(contentType)) || MEDIA_ENDINGS.has(endingOf(name));
}

/**
 * Some hosts send errors with HTTP 200 and any content type: a web page, XML or JSON.
 * @returns words that follow "answered with"; `undefined` for anything else
 */
export function errorTextIn(
	head: Uint8Array,
	contentType: string | undefined,
	name: string,
): string | undefined {
	const text = startOf(head);
	const isPage = saidType(contentType) === 'text/html' && text.startsWith('<');
	if (isPage || /^<(!doctype html|html|head|body)\b/i.test(text)) return 'a web page';
	if (text.startsWith('{')) return 'JSON';
	if (!text.startsWith('<')) return undefined;
	return saysDrawing(contentType, name) && !/^(<\?xml[^>]*>\s*)?<error\b/i.test(text) ? undefined : 'XML';
}

/** The same if only an image, a video or a sound is acceptable: then any text is an error, except SVG. */
export function anyTextIn(
	head: Uint8Array,
	contentType: string | undefined,
	name: string,
): string | undefined {
	const errorText = errorTextIn(head, contentType, name);
	if (errorText || saysDrawing(contentType, name)) return errorText;
	return isText(head) && !formatOf(head) ? 'text' : undefined;
}

/** SVG, the only kind of image that is text. */
function saysDrawing(contentType: string | undefined, name: string): boolean {
	return saidType(contentType) === 'image/svg+xml' || endingOf(name) === 'svg';
}

/** The beginning of a text, after a byte order mark and blanks. */
function startOf(head: Uint8Array): string {
	// A first piece may be 64 KB; reading all of it as text cost a tenth of a batch's CPU time.
	return Buffer.from(head.subarray(0, START_BYTES))
		.toString('utf8')
		.replace(/^\uFEFF?\s*/, '');
}

function isText(head: Uint8Array): boolean {
	return head.length > 0 && head.every((byte) => byte > 31 || (byte > 8 && byte < 14));
}

const LONGEST_STEM_CHARS = 100;
/** File systems count bytes: 255 of them, ending included. */
const LONGEST_STEM_BYTES = 200;

/** Names that Windows reserves for devices, with or without an ending. */
const RESERVED_STEM = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i;

/**
 * A file name that any file system accepts: no path, no control or reserved characters, of bounded length.
 * @param extension the true one; it replaces an ending that says something else
 */
export function safeFileName(rawName: string, extension: string): string {
	const base = rawName.split(/[\\/]/).at(-1) ?? '';
	const clean = base
		.toWellFormed()
		.normalize('NFC')
		.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>:"|?*]/gu, '_')
		.trim();
	const stem = clean
		.replace(ENDING, '')
		.replace(/^[. ]+/, '')
		.replace(RESERVED_STEM, '$&_');
	const ending = ENDING.exec(clean)?.[1] ?? '';
	const safeStem = shortened(stem).replace(/[. ]+$/, '') || 'file';
	const sameEnding =
		ending.toLowerCase() === extension || (ending.toLowerCase() === 'jpeg' && extension === 'jpg');
	const finalEnding = !extension || sameEnding ? ending : extension;
	return finalEnding ? `${safeStem}.${finalEnding}` : safeStem;
}

function shortened(stem: string): string {
	let short = '';
	let bytes = 0;
	for (const char of [...stem].slice(0, LONGEST_STEM_CHARS)) {
		bytes += Buffer.byteLength(char);
		if (bytes > LONGEST_STEM_BYTES) break;
		short += char;
	}
	return short;
}
