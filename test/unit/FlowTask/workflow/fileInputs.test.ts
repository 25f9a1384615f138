import { checkOverrides } from '../../../../nodes/FlowTask/workflow/checks';
import { imageNodesIn, isImageInput } from '../../../../nodes/FlowTask/workflow/fileNodes';
import { imageValuesIn } from '../../../../nodes/FlowTask/workflow/imageValues';
import { formFields } from '../../../../nodes/FlowTask/workflow/formFields';
import { readKnowledge } from '../../../../nodes/shared/workflow/definition';
import { valueOf } from '../../results';
import { isFileInput } from '../../../../nodes/FlowTask/graph/names';

it.each([
	['image', true],
	['mask', true],
	['mask_image', true],
	['control_image', true],
	['start_image', true],
	['end_image', true],
	['first_frame', true],
	['image1', true],
	['image_2', true],
	['reference_image_1', true],
	['image_12', true],
	['image_path', true],
	['video', true],
	['preview_image', false],
	['image_format', false],
	['image_size', false],
	['batch_image_mode', false],
	['frame_rate', false],
	['filename_prefix', false],
	['text', false],
])('for an input %s with a file name, isFileInput is %s', (name, expected) => {
	expect(isFileInput({ name, value: 'a.png', isLink: false })).toBe(expected);
});

const OF_IMAGES = ['last', 'input', 'init', 'source', 'target', 'ref', 'style', 'pose', 'depth', 'face'];
it.each(OF_IMAGES)('an input %s_image accepts a file', (name) => {
	expect(isFileInput({ name: `${name}_image`, value: 'a.png', isLink: false })).toBe(true);
});

const LOADERS = ['image', 'mask', 'mask_image', 'init_image', 'video', 'audio', 'file', 'first_frame'];
it.each(LOADERS)('the ID of an upload is accepted for %s, although the view lists only old files', (name) => {
	const spec = { default: 'old.png', list: ['old.png', 'b.png'] };
	for (const view of [
		{ inputs: { [name]: { spec }, method: { spec } } },
		{ [name]: { spec: ['old.png'] } },
	]) {
		const source = { '10': { class_type: 'Loader', inputs: { [name]: 'old.png', method: 'b.png' } } };
		const known = valueOf(readKnowledge(source, { '10': view }));
		const prompt = { '10': { inputs: { [name]: 'img_8c1f0a' } } };
		expect(checkOverrides(prompt, known)).toEqual({ ok: true, value: prompt });
		const rows = formFields(
			valueOf(readKnowledge(source, '')).definition ?? { nodes: [] },
			known.view,
		).fields;
		expect(rows.find(({ id }) => id === `10/${name}`)).toMatchObject({ type: 'string' });
	}
});

it('of an input that takes no file, a value that is not listed is refused', () => {
	const source = { '10': { class_type: 'Loader', inputs: { method: 'a' } } };
	const known = valueOf(readKnowledge(source, { '10': { method: { spec: ['a', 'b'] } } }));
	expect(checkOverrides({ '10': { inputs: { method: 'img_8c1f0a' } } }, known).ok).toBe(false);
});

it('an encoded image and the file of a model take no upload', () => {
	const source = {
		'1': { class_type: 'ETN_LoadImageBase64', inputs: { image: 'iVBORw0KGgo' } },
		'2': { class_type: 'HFHubLoraLoader', inputs: { filename: 'lora.safetensors', model: ['4', 0] } },
		'3': { class_type: 'LoadImage', inputs: { image: 'fox.png' } },
	};
	const { definition } = valueOf(readKnowledge(source, ''));
	if (!definition) throw new Error('no definition');
	expect(imageNodesIn(definition)).toEqual([{ value: '3', name: 'LoadImage (3) · image' }]);
	const uploads = definition.nodes.filter((node) => node.inputs.some((input) => isImageInput(node, input)));
	expect(uploads.map(({ nodeId }) => nodeId)).toEqual(['3']);
});

it('a file of the item is uploaded for an input that is hosted with a link, and a link is sent as it is', () => {
	const source = {
		'1': { class_type: 'LoadImageFromUrl', inputs: { image: 'https://a.example/b.png' } },
		'2': { class_type: 'VideoNode', inputs: { image_url: '' } },
	};
	const { definition = { nodes: [] } } = valueOf(readKnowledge(source, ''));
	const found = (image: string): string[] =>
		imageValuesIn(
			{ '1': { inputs: { image } }, '2': { inputs: { image_url: image } } },
			definition,
			(name) => name === 'photo',
		).map((one) => `${one.nodeId} ${one.source}`);
	expect(found('photo')).toEqual(['1 file field']);
	expect(found('https://a.example/c.png')).toEqual([]);
	expect(imageNodesIn(definition).map(({ value }) => value)).toEqual(['1']);
});
