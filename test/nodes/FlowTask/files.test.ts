import sharp from 'sharp';

import imageToImage from '../../platform/workflows/image-to-image.json';
import twoOutputs from '../../platform/workflows/two-outputs.json';
import type { ItemInput } from '../harness';
import { sharedStage } from '../harness/stage';
import { openServer, type TestServer } from '../harness/server';
import { CONTINUE, openStage, prompts } from './flowTask.fixture';

const stage = sharedStage(openStage);

const NO_OVERRIDES = { overrideFields: {} };

async function photo(color: string): Promise<Buffer> {
	return await sharp({ create: { width: 64, height: 48, channels: 3, background: color } })
		.png()
		.toBuffer();
}

test.each([1, 3])(
	'requests a fresh link when one has expired, up to %d time(s)',
	async (times) => {
		stage.platform.faults.add({ on: 'file', kind: 'expiredLink', times });
		const run = await stage.run(prompts(1));
		expect(run.items()).toHaveLength(1);
		const books = stage.platform.books();
		expect(books.requests.file).toBe(times + 1);
	},
	20_000,
);

test('fails with the task ID and all links if a link stays expired', async () => {
	stage.platform.faults.add({ on: 'file', kind: 'expiredLink' });
	const run = await stage.run(prompts(1), {}, CONTINUE);
	const [task] = stage.platform.books().tasks;
	expect(run.jsons(1)[0]).toMatchObject({
		error: expect.stringContaining('could not be downloaded') as unknown,
		message: expect.stringContaining(
			`use the 'Wait for Completion' operation with task ID ${task?.taskId}`,
		) as unknown,
		details: { taskId: task?.taskId, status: 'succeeded', urls: [expect.stringContaining('http')] },
	});
});

test('requests fresh links if a web page arrives instead of an image', async () => {
	stage.platform.faults.add({ on: 'file', kind: 'html200', times: 1 });
	const run = await stage.run(prompts(1));
	const [item] = run.items();
	expect(item && (await sharp(await run.binary(item, 'data')).metadata()).format).toBe('png');
	const { requests, tasks } = stage.platform.books();
	expect([requests.file, tasks.length]).toEqual([2, 1]);
});

describe('a platform with large files', () => {
	const large = sharedStage(openStage, { fileBytes: 3 * 1024 * 1024 });

	test('stores no file above the size limit', async () => {
		const run = await large.run(prompts(1), { limits: { maxFileSizeMb: 1 } }, CONTINUE);
		expect(run.jsons(1)[0]?.error).toContain('larger than the 1 MB');
		const fine = await large.run(prompts(1), { limits: { maxFileSizeMb: 4 } });
		expect(fine.items()[0]?.binary?.data?.bytes).toBeGreaterThanOrEqual(3 * 1024 * 1024);
	});
});

test('which files to return is read for each item', async () => {
	const files = "={{ $itemIndex === 0 ? 'finalFiles' : 'none' }}";
	const run = await stage.run(prompts(2), { options: { files } }, CONTINUE);
	expect(run.items()).toHaveLength(1);
	expect(run.jsons(1)).toMatchObject([{ error: "'Files' must be finalFiles or all" }]);
});

test('outputs all files of a task in one item, with unique names and fields', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(twoOutputs);
	const parameters = { ...NO_OVERRIDES, workflowId, output: 'allFiles', options: { files: 'all' } };
	const run = await stage.run(prompts(2), parameters);
	const items = run.items();
	expect(items).toHaveLength(2);
	for (const item of items) expect(Object.keys(item.binary ?? {})).toEqual(['data', 'data_1']);
	const names = items.flatMap((item) => Object.values(item.binary ?? {}).map(({ fileName }) => fileName));
	expect(new Set(names).size).toBe(4);
});

test('downloads nothing if only links are wanted', async () => {
	const run = await stage.run(prompts(1), { output: 'urls' });
	const [item] = run.items();
	expect(item?.binary).toBeUndefined();
	expect(item?.json.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/.*&/);
	expect(stage.platform.books().requests.file).toBe(0);
});

test('uploads images of items automatically, and identical ones once per run', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const red = await photo('red');
	const items: ItemInput[] = [red, red, await photo('blue')].map((data, index) => ({
		json: { prompt: `p${index}` },
		binary: { photo: { data, fileName: `odd näme "${index}" 图.png`, mimeType: 'image/png' } },
	}));
	const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'photo' };
	const run = await stage.run(items, { ...NO_OVERRIDES, workflowId, imageSlots: { slot: [slot] } });
	expect(run.error).toBeUndefined();
	expect(run.items()).toHaveLength(3);
	const books = stage.platform.books();
	expect(books.uploads).toHaveLength(2);
	expect(books.uploads.map(({ contentType }) => contentType)).toEqual(['image/png', 'image/png']);
	const used = books.tasks.map(({ prompt }) => JSON.stringify(prompt));
	// The order of submission is not fixed.
	const times = [...Map.groupBy(used, (prompt) => prompt).values()].map(({ length }) => length);
	expect(times.sort()).toEqual([1, 2]);
});

test('upload and download are operations of their own, in which one failing item leaves the others alone', async () => {
	const good = { data: await photo('green'), fileName: 'a.png', mimeType: 'image/png' };
	const empty = { data: Buffer.alloc(0), fileName: 'b.png', mimeType: 'image/png' };
	const items: ItemInput[] = [{ binary: { data: good } }, { binary: { data: empty } }, {}];
	const run = await stage.run(items, { resource: 'image', operation: 'upload' }, CONTINUE);
	expect(run.jsons()).toEqual([{ imageId: expect.any(String) as unknown }]);
	expect(run.jsons(1).map(({ error }) => error)).toEqual([
		expect.stringContaining('is empty'),
		expect.stringContaining('no file in field "data"'),
	]);

	const links = await stage.run(prompts(2), { output: 'urls' });
	const again = links.items().map(({ json }) => ({ json }));
	const files = await stage.run(
		[...again, { json: { url: 'file:///etc/passwd' } }],
		{ resource: 'file', operation: 'download' },
		CONTINUE,
	);
	expect(files.items()).toHaveLength(2);
	expect(files.jsons(1)[0]?.error).toContain('The file link is not an HTTP URL');
});

describe('a local file host', () => {
	let server: TestServer;
	const seen: string[] = [];
	beforeEach(async () => {
		seen.length = 0;
		const png = await photo('teal');
		server = await openServer((request, response) => {
			seen.push(String(request.headers.authorization));
			if (request.url?.startsWith('/html'))
				response.setHeader('content-type', 'text/html').end('<h1>Login</h1>');
			else if (request.url?.startsWith('/denied'))
				response
					.setHeader('content-type', 'application/octet-stream')
					.end('<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>');
			else if (request.url?.startsWith('/endless')) {
				response.setHeader('content-type', 'image/png').write(png);
				const more = setInterval(() => response.write(Buffer.alloc(256 * 1024)), 5);
				response.on('close', () => {
					clearInterval(more);
				});
			} else if (request.url?.startsWith('/empty')) response.end();
			else response.end(png);
		});
	});
	afterEach(async () => await server.close());

	test("gets no request from links and redirects into n8n's own network, which are refused", async () => {
		const { port } = new URL(server.url);
		const redirect = await openServer((request, response) => {
			response.writeHead(302, { location: `http://localhost:${port}/secret${request.url}` }).end();
		});
		const hop = new URL(redirect.url).port;
		const links = [
			`${server.url}/a.png`,
			`http://localhost:${port}/a.png`,
			`http://2130706433:${port}/a.png`,
			`http://[::ffff:127.0.0.1]:${port}/a.png`,
			`http://127.0.0.1:${hop}/b.png`,
		];
		const account = { baseUrl: 'https://platform.example.com', wsBaseUrl: '', fileHosts: `127.0.0.1:${hop}` };
		const run = await stage.run(
			links.map((link) => ({ json: { url: link } })),
			{ resource: 'file', operation: 'download' },
			{ ...CONTINUE, account },
		);
		await redirect.close();
		const errors = run.jsons(1).map(({ error }) => error);
		expect(errors).toHaveLength(links.length);
		for (const error of errors) expect(error).toContain("must not reach into n8n's own network");
		expect(errors.at(-1)).toContain('it redirects to localhost');
		expect(seen).toEqual([]);
	});

	test('serves links in one text, and names with spaces', async () => {
		const url = `${server.url}/My cat.png?sig=a b\n${server.url}/2.png, ${server.url}/3.png`;
		const run = await stage.run([{ json: { url } }], { resource: 'file', operation: 'download' });
		expect(run.items().map(({ binary }) => binary?.data?.fileName)).toEqual(['My cat.png', '2.png', '3.png']);
	});

	test('may serve an empty text file, but not an empty image', async () => {
		const items = ['empty/notes.txt', 'empty/a.png'].map((path) => ({
			json: { url: `${server.url}/${path}` },
		}));
		const run = await stage.run(items, { resource: 'file', operation: 'download' }, CONTINUE);
		const [note] = run.items();
		expect(note?.binary?.data).toMatchObject({ fileName: 'notes_1.txt', mimeType: 'text/plain' });
		expect(note && (await run.binary(note, 'data')).byteLength).toBe(0);
		expect(run.jsons(1).map(({ error }) => error)).toEqual([expect.stringContaining('the file is empty')]);
	});

	test('makes items fail with a web page or an endless file; a file without a type gets one', async () => {
		const items = ['html', 'denied/t1.png', 'endless', `any/%2e%2e%2fcon?filename=x`].map((path) => ({
			json: { url: `${server.url}/${path}` },
		}));
		const parameters = { resource: 'file', operation: 'download', options: { maxFileSizeMb: 2 } };
		const run = await stage.run(items, parameters, CONTINUE);
		expect(run.jsons(1).map(({ error }) => error)).toEqual([
			expect.stringContaining('answered with a web page instead of the file'),
			expect.stringContaining('answered with XML instead of the file'),
			expect.stringContaining('larger than the 2 MB'),
		]);
		expect(run.items()[0]?.binary?.data).toMatchObject({
			mimeType: 'image/png',
			fileName: 'x_4.png',
		});
		expect(new Set(seen)).toEqual(new Set(['undefined']));
	});
});
