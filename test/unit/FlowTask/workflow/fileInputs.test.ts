import { isFileInput } from '../../../../nodes/FlowTask/workflow/names';

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
