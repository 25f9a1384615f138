import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import FormDataOfNpm from 'form-data';
import sharp from 'sharp';
import { CODES, startPlatform } from '../../platform';
import type { LocalPlatform } from '../../platform';
import { Client } from './client';

describe('upload', () => {
	let platform: LocalPlatform;
	let client: Client;
	let file: Uint8Array<ArrayBuffer>;

	beforeAll(async () => {
		platform = await startPlatform();
		client = new Client(platform);
		file = new Uint8Array(
			await sharp({ create: { width: 40, height: 30, channels: 3, background: '#123456' } })
				.jpeg()
				.toBuffer(),
		);
	});

	afterAll(async () => {
		await platform.close();
	});

	test('accepts the multipart body of a third-party client', async () => {
		const form = new FormDataOfNpm();
		form.append('source_file', Buffer.from(file), {
			filename: 'by form-data.jpg',
			contentType: 'image/jpeg',
		});
		const answer = await new Promise<IncomingMessage>((resolve, reject) => {
			const { hostname: host, port } = new URL(platform.apiUrl);
			const headers = { authorization: `Bearer ${platform.apiKey}` };
			const path = '/api/maas/flow_task_api/upload/image';
			form.submit({ host, port, path, headers, method: 'POST' }, (error, response) => {
				if (error) reject(error);
				else resolve(response);
			});
		});
		expect(answer.statusCode).toBe(200);
		answer.resume();
		const upload = platform.books().uploads.find(({ filename }) => filename === 'by form-data.jpg');
		expect(upload?.sha256).toBe(createHash('sha256').update(file).digest('hex'));
		platform.resetBooks();
	});

	test('refuses anything that is not an image file', async () => {
		expect(await client.upload(new Blob([]))).toMatchObject({ code: CODES.fileEmpty });
		expect(await client.upload(new Blob(['hello']))).toMatchObject({ code: CODES.notAnImage });
		expect(await client.upload(new Blob([file]), 'a.jpg', 'image')).toMatchObject({
			code: CODES.fileMissing,
		});
		expect(await client.answer('upload/image', {})).toMatchObject({ code: CODES.fileMissing });
		const text = new FormData();
		text.set('source_file', 'not a file');
		expect(await (await client.uploadForm(text)).json()).toMatchObject({ code: CODES.fileMissing });
	});
});
