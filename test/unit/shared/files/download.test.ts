import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';

import type { IBinaryData } from 'n8n-workflow';

import { redactor } from '../../../../nodes/shared/text/redact';
import {
	createDownload,
	type DownloadRun,
	type DownloadRequest,
} from '../../../../nodes/shared/files/download';
import { fileHostRule } from '../../../../nodes/shared/files/fileHosts';
import { TestClock, turn } from '../../testClock';

const KEY = 'sk-Abcdef0123456789';
const PNG_HEAD = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const PNG = Buffer.concat([PNG_HEAD, Buffer.alloc(5_000, 7)]);
const URL_WITH_SIGNATURE = 'https://files.example/cat.png?signature=abc';

/** A request that may fetch from public hosts and those of the tests, unless it says otherwise. */
type Wanted = Partial<DownloadRequest> & Omit<DownloadRequest, 'mayFetch'>;
const OF_THE_TESTS = fileHostRule('http://127.0.0.1', []);

async function collect(stream: Readable): Promise<Buffer> {
	const chunks: Buffer[] = [];
	for await (const chunk of stream) chunks.push(Buffer.from(chunk));
	return Buffer.concat(chunks);
}

/** The parts of n8n that a download needs: `answer` is the file host, `store` the binary store. */
function scene(
	answer: (attempt: number, url: string) => unknown,
	parts: Partial<DownloadRun> & { store?: (body: Readable) => Promise<Buffer> } = {},
) {
	const { store = collect, ...overrides } = parts;
	const clock = parts.clock instanceof TestClock ? parts.clock : new TestClock();
	const end = new AbortController();
	open.push(end);
	const requests: Array<Record<string, unknown>> = [];
	const stored: Array<{ bytes: Buffer; fileName: string | undefined; mimeType: string | undefined }> = [];
	const helpers: DownloadRun['helpers'] = {
		httpRequest: async (options) => {
			requests.push({ ...options });
			return await answer(requests.length, options.url);
		},
		prepareBinaryData: async (body, fileName, mimeType): Promise<IBinaryData> => {
			if (Buffer.isBuffer(body)) throw new Error('a stream was expected');
			const bytes = await store(Readable.from(body));
			stored.push({ bytes, fileName, mimeType });
			return { data: 'stored', mimeType: mimeType ?? '', ...(fileName !== undefined && { fileName }) };
		},
	};
	const download = createDownload({
		helpers,
		clock,
		redact: redactor([KEY]),
		random: () => 1,
		deadlineMs: Infinity,
		maxBytes: 1_000_000,
		signal: end.signal,
		...overrides,
	});
	return {
		clock,
		download: async (request: Wanted) => await download({ mayFetch: OF_THE_TESTS, ...request }),
		requests,
		stored,
		end,
	};
}

const open: AbortController[] = [];
afterEach(() => {
	for (const end of open.splice(0)) end.abort();
});

function found(chunks: readonly Buffer[], headers: Record<string, string> = {}, statusCode = 200): unknown {
	return { statusCode, headers, body: Readable.from(chunks) };
}

function networkError(code: string, reason = 'socket hang up'): Error {
	return Object.assign(new Error(reason), { code, isAxiosError: true });
}

const WANTED = { url: URL_WITH_SIGNATURE, fileName: 'cat_2.jpg' };

describe('createDownload', () => {
	it('streams a file into the store under its true type', async () => {
		const { clock, download, stored, requests } = scene(() =>
			found([PNG.subarray(0, 3), PNG.subarray(3, 9), PNG.subarray(9)], { 'content-type': 'image/jpeg' }),
		);
		await expect(clock.run(download(WANTED))).resolves.toEqual({
			ok: true,
			value: {
				binary: { data: 'stored', mimeType: 'image/png', fileName: 'cat_2.png' },
				bytes: PNG.byteLength,
			},
		});
		expect(stored).toEqual([{ bytes: PNG, fileName: 'cat_2.png', mimeType: 'image/png' }]);
		expect(JSON.stringify(requests)).not.toMatch(/authorization|bearer/i);
	});

	it('recognizes an image by its bytes, even if the host calls it a web page', async () => {
		const { clock, download, stored, requests } = scene(() => found([PNG], { 'content-type': 'text/html' }));
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({ ok: true });
		expect(stored).toEqual([{ bytes: PNG, fileName: 'cat_2.png', mimeType: 'image/png' }]);
		expect(requests).toHaveLength(1);
	});

	it('does not accept a part of a file, and asks again', async () => {
		const { clock, download, stored } = scene((attempt) =>
			attempt === 1
				? found([PNG.subarray(0, 100)], { 'content-range': 'bytes 0-99/5008' }, 206)
				: found([PNG]),
		);
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({ ok: true });
		expect(stored.map(({ bytes }) => bytes)).toEqual([PNG]);
		const always = scene(() => found([PNG.subarray(0, 100)], {}, 206));
		await expect(always.clock.run(always.download(WANTED))).resolves.toMatchObject({
			failure: { message: expect.stringContaining('HTTP 206 with only a part of the file') },
		});
	});

	it('requests files uncompressed, because a compressed one that is cut off would look complete', async () => {
		const { clock, download, requests } = scene(() => found([PNG]));
		await clock.run(download(WANTED));
		expect(requests).toMatchObject([{ headers: { 'Accept-Encoding': 'identity' } }]);
	});

	it.each([
		['a script', 'javascript:alert(1)'],
		['a local file', 'file:///etc/passwd'],
		['data', 'data:text/plain,x'],
		['a path', '/view?filename=a.png'],
		['nothing', ''],
	])('refuses a link to %s', async (_name, url) => {
		const { clock, download, requests } = scene(() => found([PNG]));
		await expect(clock.run(download({ url, fileName: 'x' }))).resolves.toMatchObject({
			failure: { kind: 'badInput', expired: false, message: expect.stringContaining('is not an HTTP URL') },
		});
		expect(requests).toEqual([]);
	});

	it.each([400, 401, 403, 404, 410])(
		'treats HTTP %d as an expired link, and does not ask again',
		async (status) => {
			const { clock, download, requests } = scene(() => found([Buffer.from('denied')], {}, status));
			await expect(clock.run(download(WANTED))).resolves.toMatchObject({
				failure: { kind: 'file', expired: true, message: expect.stringContaining(`HTTP ${status}`) },
			});
			expect(requests).toHaveLength(1);
		},
	);

	it.each([
		['a web page with its own type', '<p>Login</p>', 'text/html; charset=utf-8', 'a web page'],
		['a web page without a type', '\uFEFF \n<!doctype html><p>Login</p>', undefined, 'a web page'],
		['a web page with an image type', '<HTML lang="en">', 'image/png', 'a web page'],
		[
			'XML',
			'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
			'application/octet-stream',
			'XML',
		],
		['an error object', '{"code":401}', 'application/json', 'JSON'],
		['text with an image type', 'AccessDenied: request has expired', 'image/png', 'text'],
		['text without a type', 'Request has expired', undefined, 'text'],
		['text with the type of a drawing', 'Request has expired', 'image/svg+xml', 'text'],
	])('treats %s in place of a picture as an expired link', async (_name, body, type, said) => {
		const { clock, download, requests, stored } = scene(() =>
			found([Buffer.from(body)], type === undefined ? {} : { 'content-type': type }),
		);
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({
			failure: {
				kind: 'file',
				expired: true,
				message: expect.stringContaining(`answered with ${said} instead of the file`),
			},
		});
		expect([requests.length, stored]).toEqual([1, []]);
	});

	it.each([
		['a drawing', '<?xml version="1.0"?><svg xmlns="x"/>', 'image/svg+xml', 'a.svg'],
		['a drawing by its name', '<svg/>', undefined, 'a.svg'],
		['JSON that is named as such', '{"a":1}', 'application/json', 'a.json'],
	])('accepts %s', async (_name, body, type, fileName) => {
		const { clock, download } = scene(() =>
			found([Buffer.from(body)], type === undefined ? {} : { 'content-type': type }),
		);
		await expect(clock.run(download({ ...WANTED, fileName }))).resolves.toMatchObject({
			ok: true,
			value: { binary: { fileName } },
		});
	});

	it.each([
		['too many requests', () => found([], {}, 429)],
		['an outage', () => found([], {}, 503)],
		['a reset connection', () => Promise.reject(networkError('ECONNRESET'))],
		['a timeout', () => Promise.reject(networkError('ECONNABORTED'))],
		['an empty file', () => found([])],
		['an unexpected answer', () => 'text'],
	])('asks again after %s', async (_name, first) => {
		const { clock, download, requests, stored } = scene((attempt) => (attempt < 3 ? first() : found([PNG])));
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({ ok: true });
		expect(requests).toHaveLength(3);
		expect(stored.at(-1)?.bytes).toEqual(PNG);
	});

	it('gives up after four attempts', async () => {
		const { clock, download, requests } = scene(() => Promise.reject(networkError('ECONNRESET')));
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({
			failure: { kind: 'file', expired: false, message: expect.stringContaining('(ECONNRESET)') },
		});
		expect(requests).toHaveLength(4);
	});

	it('waits as long as the file host asks', async () => {
		const { clock, download } = scene((attempt) =>
			attempt === 1 ? found([], { 'retry-after': '90' }, 429) : found([PNG]),
		);
		await clock.run(download(WANTED));
		expect(clock.elapsedMs).toBe(90_000);
	});

	it.each([
		['a redirect without a location', () => found([], {}, 304), 'HTTP 304'],
		[
			'an address that n8n may not access',
			() => Promise.reject(new Error('blocked by policy')),
			'blocked by policy',
		],
	])('does not retry after %s', async (_name, answer, said) => {
		const { clock, download, requests } = scene(answer);
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({
			failure: { expired: false, message: expect.stringContaining(said) },
		});
		expect(requests).toHaveLength(1);
	});

	const PUBLIC_ONLY = { mayFetch: fileHostRule('https://platform.example', ['10.0.0.5']) };

	it.each([
		'http://127.0.0.1:5678/rest/settings',
		'http://2130706433/a.png',
		'http://169.254.169.254/latest/meta-data',
		'http://[::ffff:10.0.0.1]/a.png',
		'http://n8n.localhost/a.png',
	])('sends no request to %s', async (url) => {
		const { clock, download, requests } = scene(() => found([PNG]));
		await expect(clock.run(download({ ...WANTED, ...PUBLIC_ONLY, url }))).resolves.toMatchObject({
			failure: {
				kind: 'file',
				expired: false,
				message: expect.stringContaining("must not reach into n8n's own network"),
				advice: expect.stringContaining("'File Hosts'"),
			},
		});
		expect(requests).toEqual([]);
	});

	it.each([
		['a private address', 'http://10.0.0.6/a.png', 1],
		['a relative path on the same host', '/b.png', 2],
		['a listed host', 'http://10.0.0.5:9000/a.png', 2],
		['a public host', 'https://other.example/a.png', 2],
		['a local file', 'file:///etc/passwd', 1],
	])('checks a redirect to %s', async (_name, location, asked) => {
		const { clock, download, requests, stored } = scene((attempt) =>
			attempt === 1 ? found([], { location }, 302) : found([PNG]),
		);
		const result = await clock.run(download({ ...WANTED, ...PUBLIC_ONLY }));
		expect([requests.length, stored.length]).toEqual([asked, asked - 1]);
		expect(requests.every(({ disableFollowRedirect }) => disableFollowRedirect === true)).toBe(true);
		expect(result).toMatchObject(
			asked === 2 ? { ok: true } : { failure: { message: expect.stringContaining('it redirects to') } },
		);
		// "File Hosts" helps only if there is a host.
		const isOfHost = JSON.stringify(result).includes('File Hosts');
		expect(isOfHost).toBe(asked === 1 && location.startsWith('http'));
	});

	it('uses the file name of the server, with the extension of the link if it has none', async () => {
		const { clock, download, stored } = scene(() =>
			found([Buffer.from('text')], { 'content-disposition': `attachment; filename="../our notes"` }),
		);
		const nameBySaid = (said: string): string => said.replace('our', 'my');
		await clock.run(download({ ...WANTED, fileName: 'a.txt', nameBySaid }));
		expect(stored[0]).toMatchObject({ fileName: 'my notes.txt', mimeType: 'text/plain' });
	});

	it.each([
		['notes.txt', 'image/png', '{"a":1}'],
		['notes.txt', 'text/html', 'plain words'],
		['page.html', 'text/html', '<!doctype html><p>Report</p>'],
		['data.json', 'image/png', '{"a":1}'],
	])('accepts the text file %s that is served as %s', async (fileName, type, body) => {
		const { clock, download } = scene(() => found([Buffer.from(body)], { 'content-type': type }));
		await expect(clock.run(download({ ...WANTED, fileName }))).resolves.toMatchObject({ ok: true });
	});

	it('gives up on a redirect loop', async () => {
		const { clock, download, requests } = scene(() => found([], { location: URL_WITH_SIGNATURE }, 301));
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({
			failure: { message: expect.stringContaining('redirected more than 20 times') },
		});
		expect(requests).toHaveLength(21);
	});

	it.each([
		['that announces its size', found([PNG], { 'content-length': '5000000' })],
		['that does not announce its size', found([PNG, Buffer.alloc(600_000), Buffer.alloc(600_000)])],
		['that announces a wrong size', found([PNG, Buffer.alloc(1_200_000)], { 'content-length': '10' })],
	])('refuses a file over the limit %s, and does not ask again', async (_name, response) => {
		const { clock, download, requests, stored } = scene(() => response);
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({
			failure: { kind: 'file', message: expect.stringContaining('larger than') },
		});
		expect(requests).toHaveLength(1);
		expect(stored).toEqual([]);
	});

	it.each([
		['refused', { statusCode: 403, headers: {} }],
		['busy', { statusCode: 503, headers: {} }],
		['moved', { statusCode: 304, headers: {} }],
		['a web page', { statusCode: 200, headers: { 'content-type': 'text/html' } }],
		['too large', { statusCode: 200, headers: { 'content-length': '5000000' } }],
	])('closes the body of an answer that is not a file: %s', async (_name, answer) => {
		const bodies: PassThrough[] = [];
		const { clock, download } = scene(() => {
			const body = new PassThrough();
			bodies.push(body);
			return { ...answer, body };
		});
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({ ok: false });
		expect(bodies.length).toBeGreaterThan(0);
		expect(bodies.every(({ destroyed }) => destroyed)).toBe(true);
	});

	it('closes the body if the store fails, and tries again', async () => {
		const bodies: Readable[] = [];
		const { clock, download } = scene(
			() => {
				const body = new PassThrough();
				body.write(PNG);
				bodies.push(body);
				return { statusCode: 200, headers: {}, body };
			},
			{ store: async () => await Promise.reject(new Error('no space left on device')) },
		);
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({
			failure: { message: expect.stringContaining('no space left') },
		});
		expect(bodies.map(({ destroyed }) => destroyed)).toEqual([true, true, true, true]);
	});

	it('aborts a body that has gone silent, and asks again', async () => {
		const { clock, download } = scene((attempt) => {
			if (attempt > 1) return found([PNG]);
			const body = new PassThrough();
			body.write(PNG);
			return { statusCode: 200, headers: {}, body };
		});
		await expect(clock.run(download(WANTED))).resolves.toMatchObject({ ok: true });
		expect(clock.elapsedMs).toBeGreaterThan(60_000);
		expect(clock.elapsedMs).toBeLessThan(70_000);
	});

	it('waits for a body that is slow but alive', async () => {
		const body = new PassThrough();
		const { clock, download, requests } = scene(() => ({ statusCode: 200, headers: {}, body }));
		const result = download(WANTED);
		for (let piece = 0; piece < 10; piece++) {
			body.write(piece === 0 ? PNG : Buffer.alloc(10));
			await clock.advance(50_000);
		}
		body.end();
		await expect(clock.run(result)).resolves.toMatchObject({
			ok: true,
			value: { bytes: PNG.byteLength + 90 },
		});
		expect(requests).toHaveLength(1);
	});

	it('starts nothing long after the timeout, so that a hanging host does not delay a run for hours', async () => {
		const silent = (): unknown => ({ statusCode: 200, headers: {}, body: new PassThrough() });
		const clock = new TestClock();
		const deadlineMs = clock.now();
		const made = scene(silent, { clock, deadlineMs });
		await clock.advance(10 * 60_000 - 1);
		await expect(clock.run(made.download(WANTED))).resolves.toMatchObject({ ok: false });
		expect(made.requests).toHaveLength(1);
		await expect(clock.run(made.download(WANTED))).resolves.toMatchObject({
			failure: { message: expect.stringContaining('had timed out long before') },
		});
		expect(made.requests).toHaveLength(1);
	});

	it('ends when the run is stopped, even while waiting to ask again', async () => {
		const { clock, download, end } = scene(() => found([], { 'retry-after': '200' }, 503));
		const result = download(WANTED);
		await clock.advance(1_000);
		end.abort();
		await expect(clock.run(result)).resolves.toMatchObject({ failure: { kind: 'cancelled' } });
		expect([clock.elapsedMs, clock.sleepers]).toEqual([1_000, 0]);
	});

	it('leaves no timer behind', async () => {
		const { clock, download } = scene(() => found([PNG]));
		await clock.run(download(WANTED));
		await turn();
		expect(clock.sleepers).toBe(0);
	});

	it('shows neither the key nor the signature of the link in a failure', async () => {
		const { clock, download } = scene(() =>
			Promise.reject(networkError('ECONNRESET', `Bearer ${KEY} was refused`)),
		);
		const result = await clock.run(download(WANTED));
		expect(result).toMatchObject({ failure: { message: expect.stringContaining('https://files.example') } });
		expect(JSON.stringify(result)).not.toContain(KEY);
		expect(JSON.stringify(result)).not.toContain('signature=abc');
	});
});

describe('createDownload over a real connection', () => {
	let server: Server | undefined;

	afterEach(() => {
		server?.closeAllConnections();
		server?.close();
		server = undefined;
	});

	async function listen(answer: RequestListener): Promise<string> {
		server = createServer(answer).listen(0, '127.0.0.1');
		await once(server, 'listening');
		const address: AddressInfo | string | null = server.address();
		if (address === null || typeof address === 'string') throw new Error('no port');
		return `http://127.0.0.1:${address.port}`;
	}

	async function ask(url: string): Promise<unknown> {
		const response = await new Promise<IncomingMessage>((resolve, reject) => {
			get(url, { agent: false }, resolve).on('error', reject);
		});
		return { statusCode: response.statusCode, headers: response.headers, body: response };
	}

	it('asks again if the connection breaks in the middle of a file', async () => {
		const file = Buffer.concat([PNG, Buffer.alloc(300_000, 1)]);
		let requests = 0;
		const base = await listen((_request, response) => {
			response.writeHead(200, { 'content-type': 'image/png', 'content-length': file.byteLength });
			if (++requests > 1) response.end(file);
			else response.write(file.subarray(0, 100_000), () => response.destroy());
		});
		const { download, clock, stored } = scene(async (_attempt, url) => await ask(url));
		const result = download({ url: `${base}/a.png`, fileName: 'a.png' });
		while (requests < 2) await clock.advance(500);
		await expect(result).resolves.toMatchObject({ ok: true, value: { bytes: file.byteLength } });
		expect(stored).toHaveLength(1);
		expect(stored[0]?.bytes.equals(file)).toBe(true);
	});

	it('aborts the download of a file over the limit instead of loading all of it', async () => {
		let written = 0;
		const base = await listen((_request, response) => {
			response.writeHead(200, { 'content-type': 'image/png' });
			const more = (): void => {
				while (!response.destroyed && response.write(Buffer.alloc(100_000, 1))) written++;
			};
			response.on('drain', more);
			response.write(PNG);
			more();
		});
		const { download } = scene(async (_attempt, url) => await ask(url));
		await expect(download({ url: `${base}/endless.png`, fileName: 'a.png' })).resolves.toMatchObject({
			failure: { message: expect.stringContaining('larger than the 0.954 MB') },
		});
		expect(written).toBeLessThan(500);
	});
});
