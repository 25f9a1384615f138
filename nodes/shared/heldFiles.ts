import type { Result } from './failure';

/** Files that are held in memory while they are uploaded: so much for all of them together. */
const BYTES_AT_ONCE = 32 * 1024 * 1024;

/** Bounds what the files that are under way take in memory. */
export interface HeldFiles {
	/**
	 * Loads a file as soon as there is room for it, and holds the room until `use` is done with it. A file that is
	 * larger than all of the room is held alone.
	 * @param bytes its size, where that is known before it is loaded
	 */
	hold<F extends { readonly bytes: Uint8Array }, T>(
		load: () => Promise<Result<F>>,
		use: (file: F) => Promise<Result<T>>,
		bytes?: number,
	): Promise<Result<T>>;
}

export function createHeldFiles(): HeldFiles {
	const room = new Room(BYTES_AT_ONCE);
	// Of those whose size is not known, the next one is taken to be as large as the largest so far.
	let largest = BYTES_AT_ONCE;
	let isFirst = true;
	return {
		hold: async (load, use, bytes) => {
			const reserved = await room.take(bytes ?? largest);
			try {
				const file = await load();
				if (!file.ok) return file;
				const size = file.value.bytes.byteLength;
				largest = isFirst ? size : Math.max(largest, size);
				isFirst = false;
				reserved.correct(size);
				return await use(file.value);
			} finally {
				reserved.release();
			}
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
