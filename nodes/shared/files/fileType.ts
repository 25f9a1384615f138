/** A format's first bytes, with one character per byte; `?` matches any byte. The first format that matches is used. */
const FORMATS: ReadonlyArray<readonly [mimeType: string, extension: string, beginning: string]> = [
	['image/png', 'png', '\x89PNG'],
	['image/jpeg', 'jpg', '\xff\xd8\xff'],
	['image/gif', 'gif', 'GIF8'],
	['image/webp', 'webp', 'RIFF????WEBP'],
	['audio/wav', 'wav', 'RIFF????WAVE'],
	['image/avif', 'avif', '????ftypavif'],
	['image/avif', 'avif', '????ftypavis'],
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
	['application/pdf', 'pdf', '%PDF-'],
	['application/zip', 'zip', 'PK\x03\x04'],
];

/** Formats whose first bytes other types share, and the MIME types that such a file may have. */
const CONTAINERS: ReadonlyMap<string, RegExp> = new Map([
	['video/mp4', /^(?:audio|video)\//],
	['video/webm', /^(?:audio|video)\//],
	['image/tiff', /^image\/x-/],
	['application/zip', /^(?:application|model)\//],
]);

/** Types that are not recognized by their first bytes. */
const MORE_TYPES: ReadonlyArray<readonly [mimeType: string, extension: string, isText?: 'text']> = [
	['image/svg+xml', 'svg', 'text'],
	['image/jpeg', 'jpeg'],
	['image/jpg', 'jpg'],
	['image/apng', 'apng'],
	['image/tiff', 'tiff'],
	['image/jxl', 'jxl'],
	['image/x-exr', 'exr'],
	['image/vnd.adobe.photoshop', 'psd'],
	['image/x-adobe-dng', 'dng'],
	['audio/mp4', 'm4a'],
	['audio/x-m4a', 'm4a'],
	['audio/m4a', 'm4a'],
	['audio/ogg', 'ogg'],
	['audio/opus', 'opus'],
	['audio/aac', 'aac'],
	['audio/x-matroska', 'mka'],
	['audio/webm', 'weba'],
	['video/x-m4v', 'm4v'],
	['video/x-matroska', 'mkv'],
	['video/ogg', 'ogv'],
	['video/x-msvideo', 'avi'],
	['video/3gpp', '3gp'],
	['model/gltf+json', 'gltf', 'text'],
	['model/obj', 'obj', 'text'],
	['model/stl', 'stl', 'text'],
	['model/ply', 'ply', 'text'],
	['model/vnd.usdz+zip', 'usdz'],
	['model/3mf', '3mf'],
	['application/vnd.ms-package.3dmanufacturing-3dmodel+xml', '3mf'],
	['application/x-npz', 'npz'],
	['application/json', 'json', 'text'],
	['application/xml', 'xml', 'text'],
	['application/x-subrip', 'srt', 'text'],
	['text/vtt', 'vtt', 'text'],
	['text/csv', 'csv', 'text'],
	['text/markdown', 'md', 'text'],
	['text/html', 'html', 'text'],
	['text/html', 'htm', 'text'],
	['text/plain', 'txt', 'text'],
];

/** Each extension's type, and each type's usual extension. */
const TYPE_OF: ReadonlyMap<string, string> = new Map(
	[...MORE_TYPES, ...FORMATS].toReversed().map(([mimeType, extension]) => [extension, mimeType]),
);
const ENDING_OF: ReadonlyMap<string, string> = new Map(
	[...FORMATS, ...MORE_TYPES].toReversed().map(([mimeType, extension]) => [mimeType, extension]),
);
const TEXT_ENDINGS: ReadonlySet<string> = new Set(
	MORE_TYPES.filter(([, , isText]) => isText).map(([, extension]) => extension),
);

/** MIME types that servers send when they do not know a file's type. */
const UNKNOWN_TYPE = 'application/octet-stream';
const UNKNOWN_TYPES =
	/^(?:(?:application|binary)\/(?:octet-stream|binary|x-download|(?:x-)?force-download|x-zip-compressed)|application\/zip|)$/;

function formatOf(head: Uint8Array): (typeof FORMATS)[number] | undefined {
	return FORMATS.find(([, , beginning]) =>
		[...beginning].every((char, at) => char === '?' || head[at] === char.charCodeAt(0)),
	);
}

/** How many bytes suffice to recognize a format, or text that was sent instead of a file. */
export const HEAD_BYTES = 256;
/** How many bytes suffice to reach the first element of an SVG. */
const START_BYTES = 4_096;

/** Matches the extension of a name; its group is the extension without the dot. */
export const ENDING = /\.([A-Za-z0-9]{1,8})$/;

interface FileType {
	readonly mimeType: string;
	/** Without a dot; empty if unknown. */
	readonly extension: string;
}

/** The type of a file, by its bytes, then by what the server said, then by the name's extension. */
export function fileTypeOf(head: Uint8Array, contentType: string | undefined, name: string): FileType {
	const said = saidType(contentType);
	const ending = endingOf(name);
	const named = TYPE_OF.get(ending);
	const isUnknown = UNKNOWN_TYPES.test(said) || !said.includes('/');
	const format = formatOf(head);
	if (format) {
		const [mimeType, extension] = format;
		const fits = (type = ''): boolean => CONTAINERS.get(mimeType)?.test(type) ?? false;
		if (!isUnknown && said !== mimeType && fits(said) && !TEXT_ENDINGS.has(ENDING_OF.get(said) ?? ''))
			return typed(said, ending, extension);
		return named && (isUnknown || said === mimeType) && fits(named)
			? { mimeType: named, extension: ending }
			: { mimeType, extension };
	}
	// Servers send `text/plain` for every kind of text that they do not know.
	const isVague = isUnknown || (said === 'text/plain' && TEXT_ENDINGS.has(ending));
	if (!isVague || (said === 'application/zip' && !named)) return typed(said, ending, ending);
	// Text is not an image, whatever its name says.
	if (named && !TEXT_ENDINGS.has(ending) && isText(head)) return { mimeType: 'text/plain', extension: 'txt' };
	return { mimeType: named ?? UNKNOWN_TYPE, extension: ending };
}

/** The server's type, with the extension of the file's name if it fits. */
function typed(mimeType: string, ending: string, fallback: string): FileType {
	if (TYPE_OF.get(ending) === mimeType) return { mimeType, extension: ending };
	const usual = ENDING_OF.get(mimeType);
	return { mimeType, extension: usual ?? (ending || fallback) };
}

function saidType(contentType = ''): string {
	return contentType.split(';')[0]?.trim().toLowerCase() ?? '';
}

/** Whether letters after a dot are a known extension, and not the "2" of "v1.2". */
export function isFileEnding(letters: string): boolean {
	return TYPE_OF.has(letters.toLowerCase());
}

function endingOf(name: string): string {
	return ENDING.exec(name)?.[1]?.toLowerCase() ?? '';
}

const MEDIA_TYPE = /^(image|video|audio)\//;
/** Whether the server or the name says that a file is an image, video or audio. */
export function saysMedia(contentType: string | undefined, name: string): boolean {
	return MEDIA_TYPE.test(saidType(contentType)) || MEDIA_TYPE.test(TYPE_OF.get(endingOf(name)) ?? '');
}

/** Whether the name says that a file is text. SVG counts as an image. */
export function saysText(name: string): boolean {
	return TEXT_ENDINGS.has(endingOf(name)) && !saysMedia(undefined, name);
}

/** A text up to the name of its first element, after declarations and comments. */
const UP_TO_ELEMENT = /^(?:\s|<\?[^>]*>|<!--[^]*?-->|<!doctype[^[>]*(?:\[[^\]]*\]\s*)?>)*<([a-z][\w.:-]*)/i;

/** The name of a text's first element; empty if the text begins otherwise or is cut off. */
function firstElement(text: string): string {
	return UP_TO_ELEMENT.exec(text)?.[1]?.toLowerCase() ?? '';
}

/** A pattern that matches millions of characters, such as white space, overflows the stack. */
const LONGEST_START_CHARS = 8_192;

/** Whether a text begins like a web page, whatever it is called. */
export function isPage(text: string): boolean {
	const start = text.slice(0, LONGEST_START_CHARS);
	return /^\s*<!doctype html\b/i.test(start) || /^(?:html|head|body)$/.test(firstElement(start));
}

export function pageIn(head: Uint8Array): string | undefined {
	return isPage(startOf(head)) ? 'a web page' : undefined;
}

/**
 * Recognizes text and documents where only an image, video or audio is acceptable, whatever they are called; SVG passes.
 * Some hosts send errors with HTTP 200 and any content type.
 * @returns words that follow "answered with"; `undefined` for media, and for what cannot be recognized
 */
export function noMediaIn(
	head: Uint8Array,
	contentType: string | undefined,
	name: string,
): string | undefined {
	const text = startOf(head);
	const saysPage = saidType(contentType) === 'text/html' && text.startsWith('<');
	const page = saysPage ? 'a web page' : pageIn(head);
	if (page) return page;
	if (text.startsWith('%PDF-')) return 'a PDF';
	if (formatOf(head)?.[1] === 'zip') return 'a ZIP archive';
	if (!isText(head.subarray(0, HEAD_BYTES))) return undefined;
	if (/^[{[]/.test(text)) return 'JSON';
	if (!text.startsWith('<')) return 'text';
	const isDrawing = saidType(contentType) === 'image/svg+xml' || endingOf(name) === 'svg';
	return isDrawing && /^(?:[\w.-]+:)?svg$|^$/.test(firstElement(text)) ? undefined : 'XML';
}

/** The beginning of a text, without byte order mark and leading white space. */
function startOf(head: Uint8Array): string {
	// The first chunk may be 64 KB; reading all of it as text would cost a tenth of a batch's CPU time.
	return Buffer.from(head.subarray(0, START_BYTES))
		.toString('utf8')
		.replace(/^\uFEFF?\s*/, '');
}

function isText(head: Uint8Array): boolean {
	return head.length > 0 && head.every((byte) => byte > 31 || (byte > 8 && byte < 14));
}
