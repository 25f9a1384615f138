import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import FormDataOfNpm from 'form-data';
import sharp from 'sharp';
import { CODES } from '../../platform';
import { BASE, sharedClient } from './client';

describe('upload', () => {
	const client = sharedClient();
	let file: Uint8Array<ArrayBuffer>;
	beforeAll(async () => {
		const image = sharp({ create: { width: 40, height: 30, channels: 3, background: '#123456' } });
		file = new Uint8Array(await image.jpeg().toBuffer());
	});

	test('accepts the multipart body of a third-party client', async () => {
		const { platform } = client();
		const form = new FormDataOfNpm();
		form.append('source_file', Buffer.from(file), {
			filename: 'by form-data.jpg',
			contentType: 'image/jpeg',
		});
		const answer = await new Promise<IncomingMessage>((resolve, reject) => {
			const { hostname: host, port } = new URL(platform.apiUrl);
			const headers = { authorization: `Bearer ${platform.apiKey}`, accept: 'application/json' };
			const path = `${BASE}/upload/image`;
			form.submit({ host, port, path, headers, method: 'POST' }, (error, response) => {
				if (error) reject(error);
				else resolve(response);
			});
		});
		expect(answer.statusCode).toBe(200);
		answer.resume();
		const upload = platform.books().uploads.find(({ filename }) => filename === 'by form-data.jpg');
		expect(upload?.sha256).toBe(createHash('sha256').update(file).digest('hex'));
	});

	test.each<[string, () => Record<string, Blob | string>, number]>([
		['an empty file', () => ({ source_file: new Blob([]) }), CODES.fileEmpty],
		['a text file', () => ({ source_file: new Blob(['hello']) }), CODES.notAnImage],
		['a part of another name', () => ({ image: new Blob([file]) }), CODES.fileMissing],
		['a part that is no file', () => ({ source_file: 'not a file' }), CODES.fileMissing],
		['a second part', () => ({ source_file: new Blob([file]), type: 'input' }), CODES.fileMissing],
	])('refuses %s', async (_what, parts, code) => {
		const form = new FormData();
		for (const [name, part] of Object.entries(parts())) form.set(name, part);
		expect(await client().answer('upload/image', form)).toMatchObject({ code });
	});

	test('refuses a body that is no form', async () => {
		expect(await client().answer('upload/image', {})).toMatchObject({ code: CODES.fileMissing });
	});
});
