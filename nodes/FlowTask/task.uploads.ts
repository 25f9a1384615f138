import { createHash } from 'crypto';

import pLimit from 'p-limit';

import { ok, type Result } from '../shared/failure';
import type { ImageFile, TaskApi } from './task.api';
import type { UploadedImages } from './task.memory';

/** Reads an image when its turn comes, so that a batch does not hold all its images in memory. */
export type LoadImage = () => Promise<Result<ImageFile>>;

/** An image that the platform has, and the digest of its bytes. */
export interface UploadedImage {
	readonly imageId: string;
	readonly digest: string;
}

/** Uploads an image; equal bytes are uploaded once a run. */
export type UploadImage = (load: LoadImage) => Promise<Result<UploadedImage>>;

/** Each upload holds its image in memory. */
const UPLOADS_AT_ONCE = 4;

/** @param known images that an earlier try of the same run uploaded */
export function createImageUploads(api: Pick<TaskApi, 'upload'>, known?: UploadedImages): UploadImage {
	const limit = pLimit(UPLOADS_AT_ONCE);
	const uploads = new Map<string, Promise<Result<UploadedImage>>>();
	return async (load) =>
		await limit(async () => {
			const image = await load();
			if (!image.ok) return image;
			const digest = createHash('sha256').update(image.value.bytes).digest('hex');
			const remembered = known?.get(digest);
			if (remembered !== undefined) return ok({ imageId: remembered, digest });
			const underWay = uploads.get(digest);
			if (underWay) return await underWay;
			const upload = uploadNow(api, image.value, digest);
			uploads.set(digest, upload);
			const result = await upload;
			// What did not succeed is no reason to refuse the next item with the same image.
			if (result.ok) known?.set(digest, result.value.imageId);
			else uploads.delete(digest);
			return result;
		});
}

async function uploadNow(
	api: Pick<TaskApi, 'upload'>,
	image: ImageFile,
	digest: string,
): Promise<Result<UploadedImage>> {
	const uploaded = await api.upload(image);
	return uploaded.ok ? ok({ imageId: uploaded.value, digest }) : uploaded;
}
