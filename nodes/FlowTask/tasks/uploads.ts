import { createHash } from 'crypto';

import pLimit from 'p-limit';

import { ok, type Result } from '../../shared/errors/failure';
import { createHeldFiles, type HeldFiles } from '../../shared/files/heldFiles';
import type { InputFile } from '../../shared/files/inputFile';
import type { TaskApi } from '../api';
import type { UploadedImages } from './memory';

/**
 * Reads an image when its turn comes, so that a batch does not hold all its images in memory.
 * @param mostBytes where its size is not known: a larger one is given up with the failure of `tooLarge`
 */
export type LoadImage = (mostBytes: number) => Promise<Result<InputFile>>;

/** An image that the platform has, and the digest of its bytes. */
export interface UploadedImage {
	readonly imageId: string;
	readonly digest: string;
}

/**
 * Uploads an image; equal bytes are uploaded once a run.
 * @param bytes the most that it can hold; left out where that is known only when it is read
 */
export type UploadImage = (load: LoadImage, bytes?: number) => Promise<Result<UploadedImage>>;

const UPLOADS_AT_ONCE = 4;

/**
 * @param known images that an earlier try of the same run uploaded
 * @param held bounds the memory of all uploads of a run, whichever account they go to
 */
export function createImageUploads(
	api: Pick<TaskApi, 'upload'>,
	known?: UploadedImages,
	held: HeldFiles = createHeldFiles(),
): UploadImage {
	const limit = pLimit(UPLOADS_AT_ONCE);
	const uploads = new Map<string, Promise<Result<UploadedImage>>>();
	const uploadOnce = async (image: InputFile): Promise<Result<UploadedImage>> => {
		const digest = createHash('sha256').update(image.bytes).digest('hex');
		const remembered = known?.get(digest);
		if (remembered !== undefined) return ok({ imageId: remembered, digest });
		const underWay = uploads.get(digest);
		if (underWay) return await underWay;
		const upload = uploadNow(api, image, digest);
		uploads.set(digest, upload);
		const result = await upload;
		// What did not succeed is no reason to refuse the next item with the same image.
		if (result.ok) known?.set(digest, result.value.imageId);
		else uploads.delete(digest);
		return result;
	};
	return async (load, bytes) => await limit(async () => await held.hold(load, uploadOnce, bytes));
}

async function uploadNow(
	api: Pick<TaskApi, 'upload'>,
	image: InputFile,
	digest: string,
): Promise<Result<UploadedImage>> {
	const uploaded = await api.upload(image);
	return uploaded.ok ? ok({ imageId: uploaded.value, digest }) : uploaded;
}
