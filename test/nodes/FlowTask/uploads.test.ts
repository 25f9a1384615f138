import { createHash } from 'node:crypto';

import { paddedPng } from '../../platform/files/paddedFile';
import imageToImage from '../../platform/workflows/image-to-image.json';
import textToImage from '../../platform/workflows/text-to-image.json';
import { sharedStage, PIXEL, RETRY } from '../harness/stage';
import { openServer, type TestServer } from '../harness/server';
import { openStage, type Stage } from './flowTask.fixture';

/* An image from an address reaches the platform despite outages, and nothing is paid for without one. */

const MB = 1024 * 1024;

const stage = sharedStage(openStage);
let server: TestServer;
let outages: number;
beforeEach(async () => {
	outages = 0;
	server = await openServer((request, response) => {
		if (request.url === '/login') response.setHeader('content-type', 'text/html').end('<p>Login</p>');
		else if (outages-- > 0) response.writeHead(503).end('busy');
		else response.end(PIXEL);
	});
});
afterEach(async () => await server.close());

async function runWith(url: string): ReturnType<Stage['run']> {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const slot = { nodeId: '10', parameter: 'image', source: 'url', url };
	return await stage.run(
		[{ json: { prompt: 'a fox' } }],
		{ overrideFields: {}, workflowId, imageSlots: { slot: [slot] } },
		{ onError: 'continueErrorOutput' },
	);
}

test('says that the file of an item is not sent, unless the workflow takes no image or gets one', async () => {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const photo = { data: PIXEL.toString('base64'), mimeType: 'image/png' };
	const item = { json: { prompt: 'a fox' }, binary: { Photo: photo } };
	const known = { overrideFields: {}, workflowId, workflowDefinition: JSON.stringify(imageToImage) };
	const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'Photo' };
	const override = { nodeId: '10', parameter: 'image', value: 'example.png', valueType: 'auto' };
	const unused = await stage.run([item], known);
	expect(unused.hints()).toEqual([
		expect.stringContaining('"Load Image (10) · image" keeps its hosted file'),
	]);
	const loader = { ...imageToImage['10'], inputs: { image: 'example.png', channel: 'alpha' } };
	const withChannel = { ...imageToImage, '10': loader };
	const channel = { nodeId: '10', parameter: 'channel', value: 'red', valueType: 'auto' };
	const other = await stage.run([item], {
		workflowDefinition: JSON.stringify(withChannel),
		overrideFields: { override: [channel] },
		options: { previewRequest: true },
	});
	expect(other.hints()).toEqual(unused.hints());
	const runs = [
		await stage.run([{ json: { prompt: 'a fox' } }], known),
		await stage.run([item], { ...known, imageSlots: { slot: [slot] } }),
		await stage.run([item], { ...known, overrideFields: { override: [override] } }),
		await stage.run([item], { workflowDefinition: JSON.stringify(textToImage) }),
	];
	expect(runs.map((run) => run.hints())).toEqual(runs.map(() => []));
});

test('requests an address again after an outage', async () => {
	outages = 2;
	const run = await runWith(`${server.url}/a.png`);
	expect(run.items()).toHaveLength(1);
	expect(stage.platform.books().uploads).toHaveLength(1);
});

test('does not upload a login page or submit a task', async () => {
	const run = await runWith(`${server.url}/login`);
	expect(run.jsons(1)[0]?.error).toContain('answered with a web page instead of the file');
	const { requests, tasks } = stage.platform.books();
	expect([requests.upload, tasks.length]).toEqual([0, 0]);
});

/* What servers send in place of a file; an HTTP Request node stores it under the name and the type of the file. */
const NO_IMAGES = [
	['a web page', '<!doctype html><html><form action="/login">'],
	['JSON', '{"error":"expired"}'],
	['XML', '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'],
	['text', 'Not found'],
	['a PDF', '%PDF-1.7\n1 0 obj'],
] as const;

describe.each(NO_IMAGES)('%s in place of an image', (what, content) => {
	const small = Buffer.from(content);
	const large = Buffer.concat([small, Buffer.alloc(9 * MB, ' ')]);
	const itemOf = (data: Buffer) => ({
		json: { prompt: 'a fox' },
		binary: { data: { data, fileName: 'p.jpg', mimeType: 'image/jpeg' } },
	});
	const message = `The file in field "data" is ${what}, not an image, video or audio file`;

	test.each([
		['small', small],
		['large', large],
	])('of an item (%s) is neither uploaded nor paid for', async (_size, data) => {
		const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
		const slot = { nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'data' };
		const run = await stage.run(
			[itemOf(data), itemOf(PIXEL)],
			{ overrideFields: {}, workflowId, imageSlots: { slot: [slot] } },
			{ onError: 'continueErrorOutput' },
		);
		expect(run.jsons(1)).toMatchObject([{ error: message }]);
		const { requests, tasks } = stage.platform.books();
		expect([requests.upload, tasks.length]).toEqual([1, 1]);
	});

	test("is not uploaded by 'Upload'", async () => {
		const upload = { resource: 'image', operation: 'upload' };
		const run = await stage.run([itemOf(small), itemOf(PIXEL)], upload, { onError: 'continueErrorOutput' });
		expect(run.jsons(1)).toMatchObject([{ error: message }]);
		expect(stage.platform.books().requests.upload).toBe(1);
	});
});

test.each([
	['sound.mp3', 'audio/mpeg', Buffer.from([0xff, 0xfb, 0x90, 0x44, 0, 0])],
	['film.mp4', 'video/mp4', Buffer.concat([Buffer.from([0, 0, 0, 32]), Buffer.from('ftypisom')])],
	['drawing.svg', 'image/svg+xml', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
])('sends %s, which loaders of such files accept', async (fileName, mimeType, data) => {
	const binary = { data: { data, fileName, mimeType } };
	await stage.run([{ json: {}, binary }], { resource: 'image', operation: 'upload' });
	// The local platform itself takes only images.
	expect(stage.platform.books().requests.upload).toBe(1);
});

test.each([
	['5xx', { status: 502, body: 'html', times: 2 }, 3],
	['resetAfter', { times: 1 }, 2],
	['truncatedJson', { times: 1 }, 2],
] as const)('repeats an upload that fails with %s %j, and creates one task', async (kind, more, requests) => {
	stage.platform.faults.add({ on: 'upload', kind, ...more });
	const run = await runWith(`${server.url}/a.png`);
	expect(run.items()).toHaveLength(1);
	const books = stage.platform.books();
	expect([books.requests.upload, books.tasks.length]).toEqual([requests, 1]);
});

/* Files of more than 8 MB are streamed from n8n's binary store, which is opened again for each try. */

test.each<[string, Parameters<Stage['platform']['faults']['add']>[0] | undefined, number]>([
	['no fault', undefined, 1],
	['two outages', { on: 'upload', kind: '5xx', status: 502, times: 2 }, 3],
	['a reset before it is read', { on: 'upload', kind: 'resetBefore', times: 1 }, 2],
	['a reset after it is read', { on: 'upload', kind: 'resetAfter', times: 1 }, 2],
])('uploads a large file byte for byte after %s', async (_name, fault, requests) => {
	const bytes = Buffer.concat([...paddedPng(PIXEL, 9 * MB).chunks()]);
	if (fault) stage.platform.faults.add(fault);
	const run = await stage.run(
		[{ json: {}, binary: { data: { data: bytes, fileName: 'large.png', mimeType: 'image/png' } } }],
		{ resource: 'image', operation: 'upload', imageSource: 'binary', inputDataFieldName: 'data' },
	);
	expect(run.error).toBeUndefined();
	const { uploads, requests: counts } = stage.platform.books();
	expect(counts.upload).toBe(requests);
	const sha256 = createHash('sha256').update(bytes).digest('hex');
	// An upload that was reset after it was read is stored as well.
	for (const upload of uploads) {
		expect(upload).toMatchObject({
			...{ bytes: bytes.length, sha256, filename: 'large.png', contentType: 'image/png' },
		});
	}
	expect(run.items()).toMatchObject([{ json: { imageId: uploads.at(-1)?.imageId } }]);
});

test('names all items without a file, and uploads nothing after the first', async () => {
	const binary = { data: { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' } };
	const run = await stage.run([{}, { binary }, {}], { resource: 'image', operation: 'upload' });
	expect(run.error?.message).toContain('no file in field "data"');
	expect(run.error?.description).toContain('This is row 1. Row 3 also failed.');
	expect(stage.platform.books().requests.upload).toBe(0);
});

test('a retry of the node does not repeat an upload that was under way when another item failed', async () => {
	const binary = { data: { data: PIXEL, fileName: 'a.png', mimeType: 'image/png' } };
	const run = await stage.run(
		[{ json: {}, binary }, { json: {} }],
		{ resource: 'image', operation: 'upload', imageSource: 'binary', inputDataFieldName: 'data' },
		RETRY,
	);
	expect(run.error?.message).toContain('data');
	expect(stage.platform.books().requests.upload).toBe(1);
});
