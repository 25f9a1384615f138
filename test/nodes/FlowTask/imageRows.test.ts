import type { INodeParameters } from 'n8n-workflow';

import imageToImage from '../../platform/workflows/image-to-image.json';
import type { HarnessRun, ItemInput } from '../harness';
import { PIXEL, sharedStage } from '../harness/stage';
import { openStage, text } from './flowTask.fixture';

/* Rows of inputs that load an image. */

const stage = sharedStage(openStage);

const photo = { data: PIXEL, fileName: 'cat.png', mimeType: 'image/png' };
const ITEM: ItemInput = { json: {}, binary: { photo } };

async function runRow(value: string, more: INodeParameters = {}, items = [ITEM]): Promise<HarnessRun> {
	const { workflowId } = await stage.platform.hostWorkflow(imageToImage);
	const schema = [{ id: '10/image', displayName: 'image (10)', type: 'string', required: false }];
	return await stage.run(items, {
		workflowId,
		workflowDefinition: JSON.stringify(imageToImage),
		overrideFields: {},
		overrides: { mappingMode: 'defineBelow', value: { '10/image': value }, schema },
		...more,
	});
}

const sentImages = (): unknown[] =>
	stage.platform.books().tasks.map(({ prompt }) => (prompt as typeof imageToImage)['10'].inputs.image);

test('a row with the name of a file field uploads the file, each distinct one once', async () => {
	const run = await runRow('photo', { variants: 2, seedMode: 'random' }, [ITEM, ITEM]);
	expect(run.error).toBeUndefined();
	expect(run.hints()).toEqual([]);
	const [imageId, ...others] = sentImages();
	expect(imageId).not.toBe('photo');
	expect(others).toEqual([imageId, imageId, imageId]);
	expect(stage.platform.books().requests.upload).toBe(1);
});

test('a row with a link uploads what it fetches', async () => {
	const link = text((await runRow('photo', { output: 'urls' })).jsons()[0]?.url);
	stage.platform.resetBooks();
	const run = await runRow(link, {}, [{ json: {} }]);
	expect(run.error).toBeUndefined();
	expect(stage.platform.books().requests.upload).toBe(1);
	expect(sentImages()[0]).not.toBe(link);
});

test('a row with anything else sends it as the ID of an image', async () => {
	const { imageId } = (await stage.run([ITEM], uploadOf('photo'))).jsons()[0] ?? {};
	stage.platform.resetBooks();
	const run = await runRow(text(imageId));
	expect(run.error).toBeUndefined();
	expect([sentImages(), run.hints()]).toEqual([[imageId], []]);
	expect(stage.platform.books().requests.upload).toBe(0);
});

function uploadOf(field: string): INodeParameters {
	return { resource: 'image', operation: 'upload', inputDataFieldName: field };
}

test.each(['cat.png', 'Photo'])(
	'the ID %j, which looks like a file of the item, is hinted at',
	async (value) => {
		const run = await runRow(value, {}, [ITEM]);
		const hint = `Load Image (node 10) · image is "${value}", which is not a file field of the item, so it was sent as the ID of an uploaded image. The item's file fields are: photo.`;
		const shown = await runRow(value, { options: { previewRequest: true } });
		expect([run.error === undefined ? run.hints() : [hint], shown.hints()]).toEqual([[hint], [hint]]);
	},
);

test.each<[string, INodeParameters]>([
	["the option 'Inputs by Node ID'", { overrideFields: { override: [row('photo')] }, overrides: {} }],
	["'Prompt (JSON)'", { prompt: '{"10": {"inputs": {"image": "photo"}}}', overrides: {} }],
])('a file field is known in %s, too', async (_name, entered) => {
	const run = await runRow('', entered);
	expect(run.error).toBeUndefined();
	expect(stage.platform.books().requests.upload).toBe(1);
});

test("an item without the file is refused, because other items show that the value is no image's ID", async () => {
	const run = await runRow('photo', {}, [ITEM, { json: {} }]);
	expect(run.error?.message).toContain('The item has no file in field "photo"');
	expect((await runRow('data', {}, [{ json: {} }])).error?.message).toContain('has no file in field "data"');
	expect(stage.platform.books().requests).toMatchObject({ upload: 0, submit: 0 });
});

test('an expression that returns empty text is refused, and one that returns a number is an ID', async () => {
	const empty = await runRow('={{ "" }}');
	expect(empty.error?.message).toBe('Load Image (node 10) · image is empty for this item');
	expect(stage.platform.books().requests.submit).toBe(0);
	const number = await runRow('={{ 12 }}', { options: { previewRequest: true } });
	expect(number.jsons()[0]?.preview).toMatchObject({ images: [{ source: 'image ID', imageId: '12' }] });
	expect(number.hints()).toEqual([]);
});

function row(value: string): INodeParameters {
	return { nodeId: '10', parameter: 'image', value, valueType: 'auto' };
}

test('a file that is no image is refused before anything is submitted', async () => {
	const pdf = { data: Buffer.from('%PDF-1.7'), fileName: 'a.pdf', mimeType: 'application/pdf' };
	const run = await runRow('photo', {}, [{ json: {}, binary: { photo: pdf } }]);
	expect(run.error?.message).toContain('is a PDF, not an image');
	expect(stage.platform.books().requests.submit).toBe(0);
});

test("a row and 'Input Images' for the same input are refused", async () => {
	const slot = [{ nodeId: '10', parameter: 'image', source: 'binary', binaryField: 'photo' }];
	const run = await runRow('photo', { imageSlots: { slot } });
	expect(run.error?.message).toBe('\'Input Images\' sets "image" of node 10 a second time');
	expect(stage.platform.books().requests).toMatchObject({ upload: 0, submit: 0 });
});

test('a preview says which of the three a value is', async () => {
	const shown = async (value: string) =>
		(await runRow(value, { options: { previewRequest: true } })).jsons()[0]?.preview;
	const image = { nodeId: '10', parameter: 'image' };
	const file = { fileName: 'cat.png', mimeType: 'image/png', bytes: PIXEL.byteLength };
	expect(await shown('photo')).toMatchObject({ images: [{ ...image, source: 'file field', ...file }] });
	const url = 'http://127.0.0.1:9/b.png';
	expect(await shown(url)).toMatchObject({ images: [{ ...image, source: 'link', url }] });
	expect(await shown('in/7f')).toMatchObject({
		images: [{ ...image, source: 'image ID', imageId: 'in/7f' }],
	});
});
