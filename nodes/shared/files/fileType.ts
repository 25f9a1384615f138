/** Formats that results come in, told by their first bytes. */
interface FileFormat {
	readonly mimeType: string;
	readonly extension: string;
	readonly matches: (head: Uint8Array) => boolean;
}

function startsWith(...bytes: number[]): (head: Uint8Array) => boolean {
	return (head) => bytes.every((byte, index) => head[index] === byte);
}

function ascii(offset: number, text: string): (head: Uint8Array) => boolean {
	return (head) => [...text].every((char, index) => head[offset + index] === char.charCodeAt(0));
}

const isRiff = ascii(0, 'RIFF');
const isIsoMedia = ascii(4, 'ftyp');

const FORMATS: readonly FileFormat[] = [
	{ mimeType: 'image/png', extension: 'png', matches: startsWith(0x89, 0x50, 0x4e, 0x47) },
	{ mimeType: 'image/jpeg', extension: 'jpg', matches: startsWith(0xff, 0xd8, 0xff) },
	{ mimeType: 'image/gif', extension: 'gif', matches: ascii(0, 'GIF8') },
	{ mimeType: 'image/webp', extension: 'webp', matches: (head) => isRiff(head) && ascii(8, 'WEBP')(head) },
	{ mimeType: 'audio/wav', extension: 'wav', matches: (head) => isRiff(head) && ascii(8, 'WAVE')(head) },
	{
		mimeType: 'image/avif',
		extension: 'avif',
		matches: (head) => isIsoMedia(head) && ascii(8, 'avif')(head),
	},
	{
		mimeType: 'image/heic',
		extension: 'heic',
		matches: (head) => isIsoMedia(head) && (ascii(8, 'heic')(head) || ascii(8, 'heix')(head)),
	},
	{
		mimeType: 'image/heif',
		extension: 'heif',
		matches: (head) => isIsoMedia(head) && ascii(8, 'mif1')(head),
	},
	{
		mimeType: 'video/quicktime',
		extension: 'mov',
		matches: (head) => isIsoMedia(head) && ascii(8, 'qt')(head),
	},
	{ mimeType: 'video/mp4', extension: 'mp4', matches: isIsoMedia },
	{ mimeType: 'video/webm', extension: 'webm', matches: startsWith(0x1a, 0x45, 0xdf, 0xa3) },
	{ mimeType: 'image/tiff', extension: 'tif', matches: startsWith(0x49, 0x49, 0x2a, 0x00) },
	{ mimeType: 'image/tiff', extension: 'tif', matches: startsWith(0x4d, 0x4d, 0x00, 0x2a) },
	{ mimeType: 'image/bmp', extension: 'bmp', matches: ascii(0, 'BM') },
	{ mimeType: 'audio/mpeg', extension: 'mp3', matches: ascii(0, 'ID3') },
	{ mimeType: 'audio/flac', extension: 'flac', matches: ascii(0, 'fLaC') },
	{ mimeType: 'model/gltf-binary', extension: 'glb', matches: ascii(0, 'glTF') },
	{ mimeType: 'application/zip', extension: 'zip', matches: startsWith(0x50, 0x4b, 0x03, 0x04) },
];

export interface FileType {
	readonly mimeType: string;
	/** Without a dot; empty where nothing tells one. */
	readonly extension: string;
}

/** Bytes that tell a format, or a text that stands in a file's place. */
export const HEAD_BYTES = 256;
/** Enough for what stands before the first element of a drawing. */
const START_BYTES = 4_096;

const UNKNOWN_TYPE = 'application/octet-stream';

const ENDING = /\.([A-Za-z0-9]{1,8})$/;

/** The type of a file: its bytes first, then what the server said, then the name's ending. */
export function fileTypeOf(head: Uint8Array, contentType: string | undefined, name: string): FileType {
	const format = FORMATS.find(({ matches }) => matches(head));
	if (format) return { mimeType: format.mimeType, extension: format.extension };
	const said = saidType(contentType);
	const ending = endingOf(name);
	const told = FORMATS.find(({ mimeType }) => mimeType === said);
	if (told) return { mimeType: said, extension: told.extension };
	if (said.includes('/') && said !== UNKNOWN_TYPE) return { mimeType: said, extension: ending };
	const named = FORMATS.find(({ extension }) => extension === ending);
	// All formats that are told by their bytes begin with more than letters: an image by name alone it is not.
	if (named && isText(head)) return { mimeType: 'text/plain', extension: 'txt' };
	return { mimeType: named?.mimeType ?? UNKNOWN_TYPE, extension: ending };
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
	...FORMATS.filter(({ mimeType }) => MEDIA_TYPE.test(mimeType)).map(({ extension }) => extension),
]);

/** Whether an image, a video or a sound is what the server or the name says that a file is. */
export function saysMedia(contentType: string | undefined, name: string): boolean {
	return MEDIA_TYPE.test(saidType(contentType)) || MEDIA_ENDINGS.has(endingOf(name));
}

/**
 * What a file is in truth that begins as a web page, as XML or as JSON: hosts send their errors as a success, under
 * any type.
 * @returns words that follow "answered with"; `undefined` where it is nothing of the kind
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

/** The same where nothing but images, videos and sounds is of use: no other text is taken either. */
export function anyTextIn(
	head: Uint8Array,
	contentType: string | undefined,
	name: string,
): string | undefined {
	const errorText = errorTextIn(head, contentType, name);
	if (errorText || saysDrawing(contentType, name)) return errorText;
	return isText(head) && !FORMATS.some(({ matches }) => matches(head)) ? 'text' : undefined;
}

/** The one kind of image that is a text. */
function saysDrawing(contentType: string | undefined, name: string): boolean {
	return saidType(contentType) === 'image/svg+xml' || endingOf(name) === 'svg';
}

/** The beginning of a text, after a byte order mark and blanks. */
function startOf(head: Uint8Array): string {
	// A first piece may be 64 KB, and to read all of it as text cost a tenth of a batch's CPU time.
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

/** Names that some system takes for a device, with or without an ending. */
const RESERVED_STEM = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i;

/**
 * A file name that any file system takes: no path, no control or reserved characters, of bounded length.
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
