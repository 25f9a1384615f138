import type { Result } from '../errors/failure';

/** Files that are held in memory while they are uploaded: so much for all of them together. */
const BYTES_AT_ONCE = 32 * 1024 * 1024;

/** What a file of unknown size gets at first; one that is larger is loaded once more, alone. */
const SHARE_BYTES = BYTES_AT_ONCE / 4;

/** Bounds what the files that are under way take in memory. */
export interface HeldFiles {
	/**
	 * Loads a file as soon as there is room for it, and holds the room until `use` is done with it. A file that is
	 * larger than all of the room is held alone.
	 * @param load gives up a file that is larger than `mostBytes` with that number as `maxBytes` in its failure's
	 *   details; `Infinity` where the size is known
	 * @param bytes the most that it can hold, where that is known before it is loaded
	 */
	hold<F extends { readonly bytes: Uint8Array }, T>(
		load: (mostBytes: number) => Promise<Result<F>>,
		use: (file: F) => Promise<Result<T>>,
		bytes?: number,
	): Promise<Result<T>>;
}

export function createHeldFiles(): HeldFiles {
	const room = new Room(BYTES_AT_ONCE);
	const holdIn = async <F extends { readonly bytes: Uint8Array }, T>(
		bytes: number,
		load: () => Promise<Result<F>>,
		use: (file: F) => Promise<Result<T>>,
	): Promise<Result<T>> => {
		const reserved = await room.take(bytes);
		try {
			const file = await load();
			if (!file.ok) return file;
			reserved.correct(file.value.bytes.byteLength);
			return await use(file.value);
		} finally {
			reserved.release();
		}
	};
	return {
		hold: async (load, use, bytes) => {
			if (bytes !== undefined) return await holdIn(bytes, async () => await load(Infinity), use);
			const held = await holdIn(SHARE_BYTES, async () => await load(SHARE_BYTES), use);
			const isLarger = !held.ok && held.failure.details?.maxBytes === SHARE_BYTES;
			return isLarger ? await holdIn(BYTES_AT_ONCE, async () => await load(Infinity), use) : held;
		},
	};
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

	/** In their order, so that a large one is not passed over forever. */
	private admit(): void {
		for (let next = this.waiting[0]; next; next = this.waiting[0]) {
			if (this.held > 0 && this.held + next.bytes > this.limit) return;
			this.waiting.shift();
			this.held += next.bytes;
			next.enter();
		}
	}
}
