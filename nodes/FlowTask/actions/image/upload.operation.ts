import pLimit from 'p-limit';
import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { mapAccounts } from '../../../shared/platform/accounts';
import { deliverResults } from '../../../shared/run/deliver';
import { fail, ok, type Failure, type Result } from '../../../shared/errors/failure';
import { HeldFiles } from '../../../shared/files/heldFiles';
import { binaryFieldBytes, fetchInputFile, readBinaryField } from '../../../shared/files/inputFile';
import { createImageUploads, type LoadImage, type UploadImage } from '../../tasks/uploads';
import { readItem } from '../../../shared/errors/expressionError';
import { inNodeRun, type NodeRun } from '../run';
import type { Operation } from '../../../shared/form/operation';
import { optionsWith } from '../options';
import { textParameter } from '../task/inputs';

/** Uploads a file and returns its `image_id` (§4.3), which many tasks can use. */
export const upload: Operation = {
	value: 'upload',
	name: 'Upload',
	description: 'Upload an image that workflows can start from',
	action: 'Upload an image',
	fields: [
		{
			displayName: 'Source',
			name: 'imageSource',
			type: 'options',
			default: 'binary',
			options: [
				{ name: 'File of the Item', value: 'binary' },
				{ name: 'URL', value: 'url' },
			],
			description: 'Where the image comes from',
		},
		{
			displayName: 'Input Data Field Name',
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
			description: 'A web address that opens without a login',
		},
		optionsWith(['maxFileSizeMb', 'requestsPerSecond']),
	],
	async execute(context) {
		return await inNodeRun(context, async (run) => await uploadItems(context, run));
	},
};

/** Reading an image and uploading it is bounded by the uploader; this bounds what waits behind it. */
const ITEMS_AT_ONCE = 8;

async function uploadItems(context: IExecuteFunctions, run: NodeRun): Promise<INodeExecutionData[][]> {
	const held = new HeldFiles();
	const uploaders = mapAccounts(run.lines, ({ api, images }) => createImageUploads(api, images, held));
	const limit = pLimit(ITEMS_AT_ONCE);
	let stop = false;
	const results = await Promise.all(
		context.getInputData().map(
			async (_, itemIndex) =>
				await limit(async () => {
					if (stop) return fail(NOT_UPLOADED);
					const upload = uploaders.of(itemIndex);
					const result = upload.ok ? await uploadItem(context, itemIndex, upload.value, run) : upload;
					if (!result.ok && !context.continueOnFail()) stop = true;
					return result;
				}),
		),
	);
	const images = results.map((result) => (result.ok ? ok({ imageId: result.value.imageId }) : result));
	return [deliverResults(context, images)];
}

async function uploadItem(
	context: IExecuteFunctions,
	itemIndex: number,
	upload: UploadImage,
	run: NodeRun,
): ReturnType<UploadImage> {
	const source = readSource(context, itemIndex, run);
	return source.ok ? await upload(source.value.load, source.value.bytes) : source;
}

const NOT_UPLOADED: Failure = {
	kind: 'notSubmitted',
	message: 'The image was not uploaded, because another item failed first',
	advice: 'Run the node again with this item.',
};

interface Source {
	readonly load: LoadImage;
	readonly bytes?: number;
}

function readSource(
	context: IExecuteFunctions,
	itemIndex: number,
	{ options: { maxFileBytes }, ending }: NodeRun,
): Result<Source> {
	return readItem<Source>(() => {
		if (context.getNodeParameter('imageSource', itemIndex, 'binary') === 'url') {
			const url = textParameter(context, 'imageUrl', itemIndex);
			return ok({
				load: async (mostBytes) =>
					await fetchInputFile(context, url, Math.min(maxFileBytes, mostBytes), ending.signal),
			});
		}
		const field = textParameter(context, 'inputDataFieldName', itemIndex);
		return ok({
			load: async () => await readBinaryField(context, itemIndex, field, maxFileBytes),
			bytes: binaryFieldBytes(context, itemIndex, field) ?? maxFileBytes,
		});
	});
}
