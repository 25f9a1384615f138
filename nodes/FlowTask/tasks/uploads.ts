import pLimit from 'p-limit';

import { ok, type Result } from '../../shared/errors/failure';
import { MemoryBudget } from '../../shared/files/memoryBudget';
import type { UploadFile } from '../../shared/files/uploadFile';
import type { TaskApi } from '../api/api';
import type { UploadedImages } from './memory';

/**
 * Opens an image just before its upload, so that a batch does not hold all its images in memory.
 * @param mostBytes the limit for an image of unknown size: a larger one fails with `tooLarge`
 */
export type LoadImage = (mostBytes: number) => Promise<Result<UploadFile>>;

export interface UploadedImage {
	readonly imageId: string;
	readonly digest: string;
}

/**
 * Uploads an image; equal bytes are uploaded once per run.
 * @param bytes the most memory that the image may take; left out if unknown before it is read
 */
export type UploadImage = (load: LoadImage, bytes?: number) => Promise<Result<UploadedImage>>;

const UPLOADS_AT_ONCE = 4;

/**
 * Uploads the images of a run; equal bytes are uploaded once.
 * @param earlier images that an earlier try of the same run uploaded
 */
export function createImageUploads(
	api: Pick<TaskApi, 'upload'>,
	earlier: UploadedImages | undefined,
): UploadImage {
	const limit = pLimit(UPLOADS_AT_ONCE);
	const memoryBudget = new MemoryBudget();
	const uploads = new Map<string, ReturnType<TaskApi['upload']>>();
	const uploadOnce = async ({ file, sha256: digest }: UploadFile): Promise<Result<UploadedImage>> => {
		const remembered = earlier?.get(digest);
		if (remembered !== undefined) return ok({ imageId: remembered, digest });
		const upload = uploads.get(digest) ?? api.upload(file);
		uploads.set(digest, upload);
		const uploaded = await upload;
		if (uploaded.ok) {
			earlier?.set(digest, uploaded.value);
			return ok({ imageId: uploaded.value, digest });
		}
		// After a failure the next item with the same image tries again.
		if (uploads.get(digest) === upload) uploads.delete(digest);
		return uploaded;
	};
	/** The variants of an item share its images, which are read once. */
	const loads = new WeakMap<LoadImage, Promise<Result<UploadedImage>>>();
	return async (load, bytes) => {
		const upload = loads.get(load) ?? limit(async () => await memoryBudget.hold(load, uploadOnce, bytes));
		loads.set(load, upload);
		const uploaded = await upload;
		if (!uploaded.ok && loads.get(load) === upload) loads.delete(load);
		return uploaded;
	};
}
