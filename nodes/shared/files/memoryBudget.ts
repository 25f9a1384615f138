import type { Result } from '../errors/failure';
import type { UploadFile } from './uploadFile';

/** How much memory the files of a run's uploads may take at any one time. */
const BYTES_AT_ONCE = 32 * 1024 * 1024;

/** The memory that a file of unknown size may take at first; a larger file is loaded again with the whole budget. */
const SHARE_BYTES = BYTES_AT_ONCE / 4;

export class MemoryBudget {
	private usedBytes = 0;
	private readonly queued: Array<{ readonly bytes: number; readonly enter: () => void }> = [];

	/**
	 * Loads a file once there is room for it, lets `use` do its work, closes the file and frees the room. A file that is
	 * larger than the whole budget is held alone, and one that is streamed takes no room.
	 * @param load fails for a file that is larger than `mostBytes`, with that number as `maxBytes` in its failure's
	 *   details; `mostBytes` is `Infinity` if the size is known or the file is loaded again
	 * @param bytes the most memory that the file may take, if that is known before it is loaded
	 */
	async hold<T>(
		load: (mostBytes: number) => Promise<Result<UploadFile>>,
		use: (file: UploadFile) => Promise<Result<T>>,
		bytes?: number,
	): Promise<Result<T>> {
		if (bytes !== undefined) return await this.holdIn(bytes, async () => await load(Infinity), use);
		const held = await this.holdIn(SHARE_BYTES, async () => await load(SHARE_BYTES), use);
		const isLarger = !held.ok && held.failure.details?.maxBytes === SHARE_BYTES;
		return isLarger ? await this.holdIn(BYTES_AT_ONCE, async () => await load(Infinity), use) : held;
	}

	private async holdIn<T>(
		bytes: number,
		load: () => Promise<Result<UploadFile>>,
		use: (file: UploadFile) => Promise<Result<T>>,
	): Promise<Result<T>> {
		await new Promise<void>((enter) => {
			this.queued.push({ bytes, enter });
			this.admit();
		});
		let reserved = bytes;
		const correct = (needed: number): void => {
			this.usedBytes += needed - reserved;
			reserved = needed;
			this.admit();
		};
		try {
			const file = await load();
			if (!file.ok) return file;
			correct(file.value.heldBytes);
			try {
				return await use(file.value);
			} finally {
				file.value.close();
			}
		} finally {
			correct(0);
		}
	}

	/** Admits queued files first in, first out, so that a large file does not wait forever. */
	private admit(): void {
		for (let next = this.queued[0]; next; next = this.queued[0]) {
			if (this.usedBytes > 0 && this.usedBytes + next.bytes > BYTES_AT_ONCE) return;
			this.queued.shift();
			this.usedBytes += next.bytes;
			next.enter();
		}
	}
}
