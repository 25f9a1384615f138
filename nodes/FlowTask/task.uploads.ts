import { createHash } from 'crypto';

import pLimit from 'p-limit';

import { ok, type Result } from '../shared/failure';
import type { ImageFile, TaskApi } from './task.api';
import type { UploadedImages } from './task.memory';

/**
 * Reads an image when its turn comes, so that a batch does not hold all its images in memory.
 * @param mostBytes where its size is not known: a larger one is given up with the failure of `tooLarge`
 */
export type LoadImage = (mostBytes: number) => Promise<Result<ImageFile>>;

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

/** Each upload holds its image in memory: so much for all of them together. A larger image is held alone. */
const BYTES_AT_ONCE = 32 * 1024 * 1024;
/** What an image of unknown size gets at first; one that is larger is read once more, alone. */
const SHARE_BYTES = BYTES_AT_ONCE / UPLOADS_AT_ONCE;

/** @param known images that an earlier try of the same run uploaded */
export function createImageUploads(api: Pick<TaskApi, 'upload'>, known?: UploadedImages): UploadImage {
	const limit = pLimit(UPLOADS_AT_ONCE);
	const room = new Room(BYTES_AT_ONCE);
	const uploads = new Map<string, Promise<Result<UploadedImage>>>();
	const uploadOnce = async (image: ImageFile): Promise<Result<UploadedImage>> => {
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
	const inRoom = async (
		bytes: number,
		load: LoadImage,
		mostBytes: number,
	): Promise<Result<UploadedImage>> => {
		const reserved = await room.take(bytes);
		try {
			const image = await load(mostBytes);
			if (!image.ok) return image;
			reserved.correct(image.value.bytes.byteLength);
			return await uploadOnce(image.value);
		} finally {
			reserved.release();
		}
	};
	return async (load, bytes) =>
		await limit(async () => {
			if (bytes !== undefined) return await inRoom(bytes, load, Infinity);
			const uploaded = await inRoom(SHARE_BYTES, load, SHARE_BYTES);
			const isLarger = !uploaded.ok && uploaded.failure.details?.maxBytes === SHARE_BYTES;
			return isLarger ? await inRoom(BYTES_AT_ONCE, load, Infinity) : uploaded;
		});
}

/** A part of the room that somebody holds. */
interface Reserved {
	/** What it has turned out to need. */
	correct(bytes: number): void;
	release(): void;
}

/** Room for so many bytes; whoever needs more than all of it gets it alone. */
class Room {
	private held = 0;
	private readonly waiting: Array<{ readonly bytes: number; readonly enter: () => void }> = [];

	constructor(private readonly limit: number) {}

	async take(bytes: number): Promise<Reserved> {
		const { promise, resolve } = Promise.withResolvers<undefined>();
		this.waiting.push({
			bytes,
			enter: () => {
				resolve(undefined);
			},
		});
		this.admit();
		await promise;
		let mine = bytes;
		const correct = (now: number): void => {
			this.held += now - mine;
			mine = now;
			this.admit();
		};
		return {
			correct,
			release: () => {
				correct(0);
			},
		};
	}

	/** In their order, so that a large one is not passed over for ever. */
	private admit(): void {
		for (let next = this.waiting[0]; next; next = this.waiting[0]) {
			if (this.held > 0 && this.held + next.bytes > this.limit) return;
			this.waiting.shift();
			this.held += next.bytes;
			next.enter();
		}
	}
}

async function uploadNow(
	api: Pick<TaskApi, 'upload'>,
	image: ImageFile,
	digest: string,
): Promise<Result<UploadedImage>> {
	const uploaded = await api.upload(image);
	return uploaded.ok ? ok({ imageId: uploaded.value, digest }) : uploaded;
}
