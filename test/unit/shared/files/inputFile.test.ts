import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';

import type { IBinaryData } from 'n8n-workflow';

import {
	fetchInputFile as fetchWith,
	megabytes,
	readBinaryField,
	type InputFileContext,
} from '../../../../nodes/shared/files/inputFile';
import { fileHostRule } from '../../../../nodes/shared/files/fileHosts';
import { digestBinaryField } from '../../../../nodes/shared/files/uploadFile';
import { until } from '../../../until';

const PNG = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), Buffer.alloc(20)]);

interface Scene {
	readonly fields?: Record<string, { readonly meta: Partial<IBinaryData>; readonly bytes: Buffer }>;
	readonly answer?: () => unknown;
}

function contextOf({ fields = {}, answer }: Scene): InputFileContext & { readonly asked: object[] } {
	const meta = (name: string): IBinaryData => ({ data: '', mimeType: '', ...fields[name]?.meta });
	const asked: object[] = [];
	return {
		asked,
		getInputData: () => [
			{ json: {}, binary: Object.fromEntries(Object.keys(fields).map((name) => [name, meta(name)])) },
		],
		helpers: {
			assertBinaryData: (_itemIndex, name) => {
				if (typeof name !== 'string' || !fields[name]) throw new Error('no such field');
				return meta(name);
			},
			getBinaryDataBuffer: async (_itemIndex, name) =>
				(typeof name === 'string' ? fields[name]?.bytes : undefined) ?? Buffer.alloc(0),
			getBinaryStream: async () => await Promise.reject(new Error('not kept elsewhere')),
			httpRequest: async (options) => {
				asked.push(options);
				return answer?.();
			},
		},
	};
}

describe('readBinaryField', () => {
	it('gives a name to a file without one', async () => {
		const context = contextOf({ fields: { data: { meta: {}, bytes: PNG } } });
		await expect(readBinaryField(context, 0, 'data', 1_000)).resolves.toMatchObject({
			value: { fileName: 'image.png' },
		});
	});

	it('reads a file whose name and type a Code node set to anything, and says if it cannot be read', async () => {
		const context = contextOf({ fields: { data: { meta: {}, bytes: PNG } } });
		const meta: unknown = { data: 'x', mimeType: { a: 1 }, fileName: 7 };
		context.helpers.assertBinaryData = () => meta as IBinaryData;
		await expect(readBinaryField(context, 0, 'data', 1_000)).resolves.toMatchObject({
			value: { fileName: '7.png', mimeType: 'image/png' },
		});
		context.helpers.getBinaryDataBuffer = async () => await Promise.reject(new Error('pruned'));
		await expect(readBinaryField(context, 0, 'data', 1_000)).resolves.toMatchObject({
			failure: { message: 'The item has no file in field "data" that can be read' },
		});
	});

	it('lists the existing fields if the given one is missing', async () => {
		const context = contextOf({
			fields: { photo: { meta: {}, bytes: PNG }, mask: { meta: {}, bytes: PNG } },
		});
		await expect(readBinaryField(context, 0, 'data', 1_000)).resolves.toMatchObject({
			failure: { kind: 'badInput', advice: expect.stringContaining('photo, mask') },
		});
	});

	it.each([
		['no file at all', contextOf({}), 0, 'data', 'no file in field "data"'],
		['an item that does not exist', contextOf({}), 9, 'data', 'no file in field'],
		['no field name', contextOf({}), 0, '  ', 'the input field that holds the file is empty'],
		[
			'an empty file',
			contextOf({ fields: { data: { meta: {}, bytes: Buffer.alloc(0) } } }),
			0,
			'data',
			'is empty',
		],
		[
			'a file over the limit',
			contextOf({ fields: { data: { meta: {}, bytes: Buffer.alloc(1_001) } } }),
			0,
			'data',
			'larger than',
		],
	])('refuses %s with a message', async (_name, context, itemIndex, field, said) => {
		await expect(readBinaryField(context, itemIndex, field, 1_000)).resolves.toMatchObject({
			ok: false,
			failure: { kind: 'badInput', message: expect.stringContaining(said) },
		});
	});

	it('does not load a file whose recorded size is too large', async () => {
		const context = contextOf({ fields: { data: { meta: { bytes: 5_000 }, bytes: PNG } } });
		const load = jest.spyOn(context.helpers, 'getBinaryDataBuffer');
		await expect(readBinaryField(context, 0, 'data', 1_000)).resolves.toMatchObject({ ok: false });
		expect(load).not.toHaveBeenCalled();
	});
});

const PUBLIC = fileHostRule('https://platform.example', []);

describe('fetchInputFile', () => {
	const fetchInputFile = async (
		context: InputFileContext,
		url: string,
		maxBytes: number,
	): ReturnType<typeof fetchWith> =>
		await fetchWith(context, url, maxBytes, PUBLIC, new AbortController().signal);
	// Without it, the pauses between tries would take seconds.
	beforeEach(() => jest.spyOn(Math, 'random').mockReturnValue(0));
	afterEach(() => jest.restoreAllMocks());
	const found =
		(chunks: Buffer[], headers: Record<string, string> = {}, statusCode = 200) =>
		(): unknown => ({
			statusCode,
			headers,
			body: Readable.from(chunks),
		});

	it('reads a file without a credential, and takes its name from the URL', async () => {
		const context = contextOf({ answer: found([PNG]) });
		const url = ' https://files.example/a/K%C3%A4tzchen.jpg?sig=1 ';
		await expect(fetchInputFile(context, url, 1_000)).resolves.toMatchObject({
			ok: true,
			value: { fileName: 'Kätzchen.png', mimeType: 'image/png' },
		});
		expect(context.asked).toMatchObject([{ method: 'GET', url: url.trim() }]);
		expect(JSON.stringify(context.asked)).not.toMatch(/authorization/i);
	});

	it.each([
		'',
		'cat.png',
		'ftp://h.example/a',
		'file:///etc/passwd',
		'data:image/png;base64,AA',
		'https:///a',
		'javascript:1',
		'https://%zz/',
		'http://a b/',
		'https://h.example:99999/',
	])('sends no request for "%s"', async (url) => {
		const context = contextOf({ answer: found([PNG]) });
		await expect(fetchInputFile(context, url, 1_000)).resolves.toMatchObject({
			failure: { kind: 'badInput' },
		});
		expect(context.asked).toEqual([]);
	});

	it.each([
		['an error status', found([PNG], {}, 404), 'file', 'HTTP 404'],
		['an empty file', found([]), 'badInput', 'is empty'],
		['a file over the limit', found([Buffer.alloc(900), Buffer.alloc(900)]), 'badInput', 'larger than'],
		['an unexpected answer', (): unknown => 'text', 'file', 'could not be read'],
	])('refuses %s', async (_name, answer, kind, said) => {
		const url = 'https://files.example/a?token=secret';
		const result = await fetchInputFile(contextOf({ answer }), url, 1_000);
		expect(result).toMatchObject({ ok: false, failure: { kind, message: expect.stringContaining(said) } });
		expect(JSON.stringify(result)).not.toContain('secret');
	});

	it('sends no request into the network of n8n, because a URL may come from external data', async () => {
		const context = contextOf({ answer: found([PNG]) });
		await expect(fetchInputFile(context, 'http://127.0.0.1:5678/a.png', 1_000)).resolves.toMatchObject({
			failure: {
				message: expect.stringContaining('must not reach into'),
				advice: expect.stringContaining("'File Hosts'"),
			},
		});
		expect(context.asked).toEqual([]);
	});

	it('does not ask again once the run is over', async () => {
		const end = new AbortController();
		const context = contextOf({ answer: found([], { 'retry-after': '100' }, 503) });
		const result = fetchWith(context, 'https://files.example/a', 1_000, PUBLIC, end.signal);
		await until(() => context.asked.length > 0);
		end.abort();
		await expect(result).resolves.toMatchObject({ ok: false });
		expect(context.asked).toHaveLength(1);
	});

	it('refuses a login page, and does not ask again', async () => {
		const page = Buffer.from('<!doctype html><p>Login</p>');
		const context = contextOf({ answer: found([page], { 'content-type': 'text/html' }) });
		await expect(fetchInputFile(context, 'https://files.example/a.png', 1_000)).resolves.toMatchObject({
			failure: {
				kind: 'file',
				message: expect.stringContaining('answered with a web page instead of the file'),
				advice: expect.stringContaining('without a login'),
			},
		});
		expect(context.asked).toHaveLength(1);
	});

	it('accepts a drawing, which is text, and a picture that is served as text', async () => {
		const svg = contextOf({ answer: found([Buffer.from('<svg/>')], { 'content-type': 'image/svg+xml' }) });
		const png = contextOf({ answer: found([PNG], { 'content-type': 'text/html' }) });
		for (const context of [svg, png]) {
			await expect(fetchInputFile(context, 'https://files.example/a', 1_000)).resolves.toMatchObject({
				ok: true,
			});
		}
	});
});

describe('digestBinaryField', () => {
	const bytes = Buffer.from(Array.from({ length: 1_000_003 }, (_, i) => (i * 7) % 256));
	const sha256 = createHash('sha256').update(bytes).digest('hex');
	const meta = { fileName: 'a.bin', mimeType: 'application/x-a' };

	it('gives the same digest for bytes in the item and bytes stored elsewhere', async () => {
		const inItem = {
			helpers: {
				assertBinaryData: () => ({ ...meta, data: bytes.toString('base64') }),
				getBinaryStream: async () => await Promise.reject(new Error('not kept elsewhere')),
			},
		};
		let pieces = 0;
		async function* read(): AsyncGenerator<Buffer> {
			for (let at = 0; at < bytes.length; at += 65_536) {
				pieces++;
				yield bytes.subarray(at, at + 65_536);
			}
		}
		const elsewhere = {
			helpers: {
				assertBinaryData: () => ({ ...meta, data: 'filesystem-v2', id: 'filesystem-v2:x' }),
				getBinaryStream: async (id: string) =>
					id === 'filesystem-v2:x' ? Readable.from(read()) : await Promise.reject(new Error('another id')),
			},
		};
		const expected = { ok: true, value: { name: 'a.bin', type: 'application/x-a', sha256 } };
		expect(await digestBinaryField(inItem, 0, 'data')).toEqual(expected);
		expect(await digestBinaryField(elsewhere, 0, 'data')).toEqual(expected);
		expect(pieces).toBe(16);
	});

	it('reports a file that breaks off as one that cannot be read', async () => {
		const broken = {
			helpers: {
				assertBinaryData: () => ({ ...meta, data: 'x', id: 'x' }),
				getBinaryStream: async () =>
					Readable.from(
						(async function* () {
							yield bytes;
							throw new Error('ENOENT');
						})(),
					),
			},
		};
		expect(await digestBinaryField(broken, 0, 'data')).toMatchObject({
			failure: { kind: 'badInput', message: 'The item has no file in field "data" that can be read' },
		});
	});
});

describe('megabytes', () => {
	it.each([
		[1, '1'],
		[1.5, '1.5'],
		[0.954, '0.954'],
		[99.96, '100'],
		[1_024, '1024'],
		[2_048, '2048'],
		[10_240, '10240'],
	])('says a limit of %d MB as it was entered, or to three digits', (size, said) => {
		expect(megabytes(Math.floor(size * 1024 * 1024))).toBe(said);
	});
});
