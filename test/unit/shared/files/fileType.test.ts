import fc from 'fast-check';

import { fileTypeOf, HEAD_BYTES, noMediaIn } from '../../../../nodes/shared/files/fileType';

function bytes(...parts: Array<string | number[]>): Uint8Array {
	return Buffer.concat(
		parts.map((part) => Buffer.from(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
	);
}

const SIGNATURES: Array<[string, Uint8Array, string]> = [
	['png', bytes([0x89], 'PNG\r\n', [0x1a], '\n'), 'image/png'],
	['jpg', bytes([0xff, 0xd8, 0xff, 0xe0], 'JFIF'), 'image/jpeg'],
	['jpg', bytes([0xff, 0xd8, 0xff, 0xe1], 'Exif'), 'image/jpeg'],
	['gif', bytes('GIF87a'), 'image/gif'],
	['gif', bytes('GIF89a'), 'image/gif'],
	['webp', bytes('RIFF', [1, 2, 3, 4], 'WEBPVP8 '), 'image/webp'],
	['wav', bytes('RIFF', [1, 2, 3, 4], 'WAVEfmt '), 'audio/wav'],
	['avif', bytes([0, 0, 0, 28], 'ftypavif'), 'image/avif'],
	['avif', bytes([0, 0, 0, 28], 'ftypavis'), 'image/avif'],
	['heic', bytes([0, 0, 0, 28], 'ftypheic'), 'image/heic'],
	['heic', bytes([0, 0, 0, 28], 'ftypheix'), 'image/heic'],
	['heif', bytes([0, 0, 0, 28], 'ftypmif1'), 'image/heif'],
	['mov', bytes([0, 0, 0, 20], 'ftypqt  '), 'video/quicktime'],
	['mp4', bytes([0, 0, 0, 32], 'ftypisom'), 'video/mp4'],
	['webm', bytes([0x1a, 0x45, 0xdf, 0xa3]), 'video/webm'],
	['tif', bytes('II', [0x2a, 0]), 'image/tiff'],
	['tif', bytes('MM', [0, 0x2a]), 'image/tiff'],
	['bmp', bytes('BM', [1, 2, 0, 0, 0, 0, 0, 0]), 'image/bmp'],
	['mp3', bytes('ID3', [4, 0]), 'audio/mpeg'],
	['flac', bytes('fLaC'), 'audio/flac'],
	['glb', bytes('glTF', [2, 0, 0, 0]), 'model/gltf-binary'],
	['pdf', bytes('%PDF-1.7\n1 0 obj'), 'application/pdf'],
	['zip', bytes('PK', [3, 4]), 'application/zip'],
];

describe('fileTypeOf', () => {
	it.each(SIGNATURES)(
		'recognizes %s by its first bytes, whatever the server and the name say',
		(extension, head, mimeType) => {
			const padded = Buffer.concat([head, Buffer.alloc(HEAD_BYTES)]).subarray(0, HEAD_BYTES);
			expect(fileTypeOf(padded, 'text/plain', 'a.txt')).toEqual({ mimeType, extension });
			expect(fileTypeOf(padded, undefined, '')).toEqual({ mimeType, extension });
		},
	);

	const none = bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);

	it.each([
		['the type that the server names', 'image/png', 'x', 'image/png', 'png'],
		['a type with parameters in any case', 'Image/JPEG; q=1', 'x', 'image/jpeg', 'jpg'],
		['the server if the name disagrees', 'image/jpeg', 'a.png', 'image/jpeg', 'jpg'],
		['the server if the name disagrees', 'image/webp', 'a.gif', 'image/webp', 'webp'],
		['the name if the server does not know', 'application/octet-stream', 'a.PNG', 'image/png', 'png'],
		['the name if the server says nothing', undefined, 'a.mp4', 'video/mp4', 'mp4'],
		['the name if the server talks nonsense', 'nonsense', 'a.webp', 'image/webp', 'webp'],
		['a type that is not in the list', 'image/svg+xml', 'a.svg', 'image/svg+xml', 'svg'],
		['an extension that is not in the list', undefined, 'a.xyz', 'application/octet-stream', 'xyz'],
		['nothing at all', undefined, 'a', 'application/octet-stream', ''],
		['an empty type', '', '', 'application/octet-stream', ''],
	])('falls back on %s', (_name, contentType, name, mimeType, extension) => {
		expect(fileTypeOf(none, contentType, name)).toEqual({ mimeType, extension });
	});

	const FTYP = bytes([0, 0, 0, 32], 'ftypM4A ');
	const EBML = bytes([0x1a, 0x45, 0xdf, 0xa3]);
	const ZIP = bytes('PK', [3, 4]);
	const TEXT = bytes('1\n00:00:01');

	it.each<[Uint8Array, string | undefined, string, string, string]>([
		[FTYP, 'audio/mp4', 'a', 'audio/mp4', 'm4a'],
		[FTYP, 'audio/x-m4a', 'a.m4a', 'audio/x-m4a', 'm4a'],
		[FTYP, 'application/octet-stream', 'a.m4a', 'audio/mp4', 'm4a'],
		[FTYP, undefined, 'a.m4v', 'video/x-m4v', 'm4v'],
		[FTYP, undefined, 'a.png', 'video/mp4', 'mp4'],
		[FTYP, 'image/png', 'a.png', 'video/mp4', 'mp4'],
		[EBML, 'video/x-matroska', 'a', 'video/x-matroska', 'mkv'],
		[EBML, 'video/x-matroska', 'a.webm', 'video/x-matroska', 'mkv'],
		[EBML, undefined, 'a.mkv', 'video/x-matroska', 'mkv'],
		[EBML, 'video/webm', 'a.mkv', 'video/x-matroska', 'mkv'],
		[ZIP, 'model/vnd.usdz+zip', 'a', 'model/vnd.usdz+zip', 'usdz'],
		[ZIP, 'application/zip', 'a.usdz', 'model/vnd.usdz+zip', 'usdz'],
		[ZIP, 'application/octet-stream', 'a.3mf', 'model/3mf', '3mf'],
		[ZIP, 'binary/octet-stream', 'a.npz', 'application/x-npz', 'npz'],
		[ZIP, 'application/json', 'a.zip', 'application/zip', 'zip'],
		[ZIP, 'image/png', 'a.png', 'application/zip', 'zip'],
		[TEXT, 'application/octet-stream', 'a.svg', 'image/svg+xml', 'svg'],
		[TEXT, 'application/octet-stream', 'a.json', 'application/json', 'json'],
		[TEXT, 'binary/octet-stream', 'a.gltf', 'model/gltf+json', 'gltf'],
		[TEXT, undefined, 'a.glb', 'text/plain', 'txt'],
		[none, 'application/octet-stream', 'a.glb', 'model/gltf-binary', 'glb'],
		[none, 'application/octet-stream', 'a.stl', 'model/stl', 'stl'],
		[TEXT, 'application/octet-stream', 'a.obj', 'model/obj', 'obj'],
		[TEXT, 'application/octet-stream', 'a.srt', 'application/x-subrip', 'srt'],
		[TEXT, 'text/plain; charset=utf-8', 'a.srt', 'application/x-subrip', 'srt'],
		[TEXT, 'text/plain', 'a', 'text/plain', 'txt'],
		[none, 'model/stl', 'a.bin', 'model/stl', 'stl'],
	])(
		'%#: prefers the server to a guess, and the extension to a generic type: %s %s %s',
		(head, said, name, mimeType, extension) => {
			expect(fileTypeOf(head, said, name)).toEqual({ mimeType, extension });
		},
	);

	it('does not treat text as a picture because of its name alone', () => {
		const text = Buffer.from('Forbidden\r\n');
		expect(fileTypeOf(text, undefined, 'a.png')).toEqual({ mimeType: 'text/plain', extension: 'txt' });
		expect(fileTypeOf(text, undefined, 'a.mkv')).toEqual({ mimeType: 'text/plain', extension: 'txt' });
		expect(fileTypeOf(text, undefined, 'a.xyz')).toEqual({
			mimeType: 'application/octet-stream',
			extension: 'xyz',
		});
	});

	it('does not read beyond the available bytes', () => {
		for (const [, head] of SIGNATURES) {
			for (let length = 0; length < 2; length++) {
				expect(fileTypeOf(head.subarray(0, length), undefined, '').mimeType).toBe('application/octet-stream');
			}
		}
	});

	it('never throws, and returns an extension that can be used in a file name', () => {
		const head = fc.uint8Array({ maxLength: 20 });
		fc.assert(
			fc.property(
				head,
				fc.option(fc.string(), { nil: undefined }),
				fc.string(),
				(start, contentType, name) => {
					const type = fileTypeOf(start, contentType, name);
					expect(type.mimeType).toContain('/');
					expect(type.extension).toMatch(/^[a-z0-9]{0,8}$/);
				},
			),
		);
	});
});

describe('noMediaIn', () => {
	it.each<[what: string, head: Uint8Array | string]>([
		['a web page', '<!DOCTYPE html><html><body>Sign in</body></html>'],
		['a web page', '\uFEFF\n <!-- SSO -->\n<HTML lang="en"><form action="/login">'],
		['a web page', '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN" "x"><html>'],
		['JSON', '{"error": "expired"}'],
		['JSON', ' [{"message": "forbidden"}]'],
		['XML', '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>'],
		['XML', '<ListBucketResult><Name>a</Name></ListBucketResult>'],
		['text', 'Access denied'],
		['text', 'BMW images are not available'],
		['text', 'GIF89a could not be made'],
		['text', 'ID3 tags are missing'],
		['text', '请先登录'],
		['text', ' \n'],
		['a PDF', bytes('%PDF-1.7\n%', [0xe2, 0xe3, 0xcf, 0xd3], '\n1 0 obj')],
		['a ZIP archive', bytes('PK', [3, 4, 20, 0])],
	])('recognizes %s in %j, whatever it is called', (what, head) => {
		const start = typeof head === 'string' ? Buffer.from(head) : head;
		for (const type of ['image/jpeg', 'image/svg+xml', 'application/octet-stream', undefined]) {
			for (const name of ['p.jpg', 'p.svg', 'p.mp4', '']) expect(noMediaIn(start, type, name)).toBe(what);
		}
	});

	const media = SIGNATURES.filter(([, , mimeType]) => /^(image|audio|video|model)\//.test(mimeType));
	it.each(media)('accepts %s, even as text or a page', (_extension, head) => {
		const whole = Buffer.concat([head, Buffer.alloc(HEAD_BYTES)]);
		for (const type of ['text/html', 'application/json', undefined]) {
			expect(noMediaIn(whole, type, 'a.html')).toBeUndefined();
		}
	});

	it.each([
		['<svg xmlns="http://www.w3.org/2000/svg"/>'],
		['<?xml version="1.0"?><!-- made by hand --><!DOCTYPE svg [<!ENTITY a "b">]><svg/>'],
		['<svg:svg xmlns:svg="http://www.w3.org/2000/svg"/>'],
		['<!-- a long comment that the first bytes cut off'],
	])('accepts the drawing %s where the type or the name says so', (text) => {
		expect(noMediaIn(Buffer.from(text), 'image/svg+xml', 'a')).toBeUndefined();
		expect(noMediaIn(Buffer.from(text), undefined, 'a.svg')).toBeUndefined();
		expect(noMediaIn(Buffer.from(text), 'image/png', 'a.png')).toBe('XML');
	});

	it('accepts sound without a header', () => {
		const frames = bytes([0xff, 0xfb, 0x90, 0x44, 0, 0]);
		expect(noMediaIn(frames, 'audio/mpeg', 'a.mp3')).toBeUndefined();
		expect(noMediaIn(bytes([0xff, 0xfe, 0x90, 0x44, 0, 0]), undefined, 'a')).toBeUndefined();
	});
});
