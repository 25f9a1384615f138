import pLimit from 'p-limit';
import type { INodeExecutionData } from 'n8n-workflow';

import { deliverResults } from '../../../shared/run/deliver';
import { fail, ok, type Failure, type Result } from '../../../shared/errors/failure';
import { createImageUploads } from '../../tasks/uploads';
import { readItem } from '../../../shared/errors/expressionError';
import { imageAtUrl, imageInField, type ImageSource } from '../imageSource';
import { inNodeRun, type NodeRun } from '../run';
import type { Operation } from '../../../shared/run/operation';
import { optionsCollection, readChoice } from '../../../shared/form/options';
import { TASK_OPTIONS } from '../options';
import { textParameter } from '../enteredText';

/** Uploads a file and returns its `image_id` (§4.3), which many tasks can use. */
export const upload: Operation = {
	value: 'upload',
	name: 'Upload',
	description: 'Upload an image that workflows can start from',
	action: 'Upload image',
	fields: [
		{
			displayName: 'Source',
			name: 'imageSource',
			type: 'options',
			default: 'binary',
			options: [
				{ name: 'Input File', value: 'binary' },
				{ name: 'URL', value: 'url' },
			],
			description: 'Where the image comes from',
		},
		{
			displayName: 'Input Data Field',
			name: 'inputDataFieldName',
			type: 'string',
			required: true,
			default: 'data',
			displayOptions: { show: { imageSource: ['binary'] } },
			hint: 'The name of the input field containing the file to be uploaded',
		},
		{
			displayName: 'Image URL',
			name: 'imageUrl',
			type: 'string',
			required: true,
			default: '',
			placeholder: 'e.g. https://example.com/photo.png',
			displayOptions: { show: { imageSource: ['url'] } },
			description: 'A URL that opens without a login',
		},
		optionsCollection(TASK_OPTIONS, ['maxFileSizeMb', 'requestsPerSecond']),
	],
	async execute(context) {
		return await inNodeRun(context, uploadItems);
	},
};

/** The uploader limits how many files are sent at once; this limits how many items are queued for it. */
const ITEMS_AT_ONCE = 8;

async function uploadItems(run: NodeRun): Promise<INodeExecutionData[][]> {
	const { client, context } = run;
	const upload = createImageUploads(client.api, client.images);
	const limit = pLimit(ITEMS_AT_ONCE);
	let isOver = false;
	const imageOf = async (itemIndex: number): Promise<Result<{ imageId: string }>> => {
		// Read even if another item failed first, so that the error names all items that are wrong.
		const source = readItem(() => readSource(run, itemIndex));
		if (isOver && source.ok) return fail(NOT_UPLOADED);
		const image = source.ok ? await upload(source.value.load, source.value.bytes) : source;
		if (image.ok) return ok({ imageId: image.value.imageId });
		// Uploads under way end normally, so that Retry On Fail finds them in the node's memory.
		if (!context.continueOnFail()) isOver = true;
		return image;
	};
	const images = context
		.getInputData()
		.map(async (_, index) => await limit(async () => await imageOf(index)));
	return [deliverResults(context, await Promise.all(images))];
}

const NOT_UPLOADED: Failure = {
	kind: 'notSubmitted',
	message: 'The image was not uploaded, because another item failed first',
	advice: 'Run the node again with this item.',
};

function readSource(run: NodeRun, itemIndex: number): Result<ImageSource> {
	const { context } = run;
	const from = readChoice(
		"'Source'",
		['binary', 'url'],
		context.getNodeParameter('imageSource', itemIndex, 'binary'),
	);
	if (!from.ok) return from;
	if (from.value === 'binary') {
		return imageInField(run, itemIndex, textParameter(context, 'inputDataFieldName', itemIndex));
	}
	return imageAtUrl(run, textParameter(context, 'imageUrl', itemIndex), (url) =>
		url ? `'Image URL' is "${url}", which is not an HTTP URL` : "'Image URL' is empty for this item",
	);
}
