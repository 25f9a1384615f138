import fc from 'fast-check';

import { fileTypeOf, HEAD_BYTES, safeFileName } from '../../../../nodes/shared/files/fileType';

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

describe('safeFileName', () => {
	it.each([
		['a valid name', 'cat.png', 'png', 'cat.png'],
		['a name without an extension', 'cat', 'png', 'cat.png'],
		['a wrong extension', 'cat.txt', 'png', 'cat.png'],
		['an extension in upper case', 'CAT.PNG', 'png', 'CAT.PNG'],
		['the other extension of JPEG', 'cat.jpeg', 'jpg', 'cat.jpeg'],
		['an unknown type, which keeps the extension', 'cat.exr', '', 'cat.exr'],
		['neither a type nor an extension', 'cat', '', 'cat'],
		['several dots', 'v1.cat.final.png', 'png', 'v1.cat.final.png'],
		['a path', '/etc/passwd', '', 'passwd'],
		['a path to parent folders', '../../../../etc/cron.d/x', 'png', 'x.png'],
		['a Windows path', 'C:\\Users\\me\\cat.png', 'png', 'cat.png'],
		['mixed slashes', 'a/b\\..\\c/cat.png', 'png', 'cat.png'],
		['a path that ends in a slash', 'a/b/', 'png', 'file.png'],
		['two dots', '..', 'png', 'file.png'],
		['dots only', '.....', '', 'file'],
		['a hidden file', '.bashrc', '', 'file.bashrc'],
		['nothing', '', '', 'file'],
		['spaces', '  ', 'png', 'file.png'],
		['reserved characters', 'a<b>c:d"e|f?g*h.png', 'png', 'a_b_c_d_e_f_g_h.png'],
		['line breaks and NUL', 'a\r\nb\0c.png', 'png', 'a__b_c.png'],
		['an override of the text direction', 'cat\u202egnp.exe', 'png', 'cat_gnp.png'],
		['a direction mark and a byte order mark', '\u200fa\ufeffb.png', 'png', '_a_b.png'],
		['letters of any script', 'Größe_猫_кот.png', 'png', 'Größe_猫_кот.png'],
		['decomposed letters', 'u\u0308ber.png', 'png', 'über.png'],
		['an emoji', '🐈.png', 'png', '🐈.png'],
		['spaces and dots at the end', 'cat . .png', 'png', 'cat.png'],
		['a device name', 'CON.png', 'png', 'CON_.png'],
		['a device name without an extension', 'nul', '', 'nul_'],
		['a device name with two extensions', 'aux.tar.zip', 'zip', 'aux_.tar.zip'],
		['a device name and a space', 'CON .png', 'png', 'CON_.png'],
		['a device name in lower case', 'nul.txt', 'txt', 'nul_.txt'],
		['a superscript number', 'COM¹.png', 'png', 'COM¹_.png'],
		['another superscript number', 'lpt³', '', 'lpt³_'],
		['the console by its other name', 'CONIN$.txt', 'txt', 'CONIN$_.txt'],
		['dots and spaces after the extension', 'cat.png. . ', 'png', 'cat.png'],
		['a name that only begins like a device', 'console.png', 'png', 'console.png'],
	])('makes a safe name of %s', (_name, rawName, extension, expected) => {
		expect(safeFileName(rawName, extension)).toBe(expected);
	});

	it('makes a name that every file system accepts, whatever the input', () => {
		const raw = fc.oneof(
			fc.string({ unit: 'binary', maxLength: 400 }),
			fc.string({ unit: 'grapheme', minLength: 90, maxLength: 200 }),
			fc.stringMatching(/^[. a-c/\\]{0,130}$/),
			fc.constantFrom('猫'.repeat(300), '🐈'.repeat(300), `${'a'.repeat(99)} .b`, `${'a'.repeat(99)}.. b`),
		);
		fc.assert(
			fc.property(raw, fc.constantFrom('', 'png', 'webp'), (rawName, extension) => {
				const name = safeFileName(rawName, extension);
				expect(name).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>:"/\\|?*]/u);
				expect(name).not.toMatch(/^\.|[. ]$/);
				expect(name).not.toBe('');
				expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
				expect(name.isWellFormed()).toBe(true);
				if (extension) expect(name.endsWith(`.${extension}`)).toBe(true);
			}),
			{ numRuns: 500 },
		);
	});

	it('leaves its own names unchanged', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (rawName) => {
				const name = safeFileName(rawName, 'png');
				expect(safeFileName(name, 'png')).toBe(name);
			}),
		);
	});
});
