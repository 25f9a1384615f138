import { timerMs, type Clock } from '../time/clock';

/** A body as n8n returns it for `encoding: 'stream'`. */
export interface ByteStream extends AsyncIterable<Uint8Array> {
	destroy(error?: Error): unknown;
}

/** Why we ended a body ourselves. */
export class BodyEnded extends Error {
	constructor(
		readonly code: string,
		message: string,
	) {
		super(message);
	}
}

/**
 * A body that ends as soon as it is destroyed. n8n's bodies do not: its client wraps them in a generator to count their
 * bytes, which cannot be ended while it waits for a chunk, so a reader of a silent connection would wait forever.
 * @param close closes the connection
 */
export function cuttable(body: ByteStream, close: () => void): ByteStream {
	let isOver = false;
	let cutBy: Error | undefined;
	let wake = (): void => undefined;
	const destroy = (error?: Error): void => {
		if (isOver) return;
		isOver = true;
		cutBy = error;
		wake();
		close();
		body.destroy();
	};
	async function* pieces(): AsyncGenerator<Uint8Array, void, void> {
		const iterator = body[Symbol.asyncIterator]();
		try {
			while (!isOver) {
				const cut = new Promise<undefined>((resolve) => {
					wake = () => resolve(undefined);
				});
				// The chunk comes first, because one that arrives at the moment of the cut still counts.
				const piece = await Promise.race([iterator.next(), cut]);
				if (piece?.done) {
					isOver = true;
					return;
				}
				if (piece) yield piece.value;
			}
			if (cutBy) throw cutBy;
		} finally {
			destroy();
		}
	}
	return { destroy, [Symbol.asyncIterator]: pieces };
}

/**
 * Reads a body to its end.
 * @param chunks receives the body, so that what has arrived is known even if this throws
 * @throws `BodyEnded` with code `ETIMEDOUT` or `ERR_TOO_LARGE`
 */
export async function readBody(
	stream: ByteStream,
	timeoutMs: number,
	maxBytes: number,
	chunks: Uint8Array[] = [],
): Promise<Buffer> {
	const body = cuttable(stream, () => undefined);
	const expiry = AbortSignal.timeout(timerMs(timeoutMs));
	const expire = (): void => {
		body.destroy(new BodyEnded('ETIMEDOUT', 'the answer did not end in time'));
	};
	expiry.addEventListener('abort', expire, { once: true });
	let bytes = 0;
	try {
		for await (const chunk of body) {
			bytes += chunk.byteLength;
			if (bytes > maxBytes) throw new BodyEnded('ERR_TOO_LARGE', 'the answer is too large');
			chunks.push(chunk);
		}
	} finally {
		expiry.removeEventListener('abort', expire);
	}
	return Buffer.concat(chunks);
}

interface PatienceLimits {
	readonly idleMs: number;
	/** When the body must have ended, by the clock's `now()`. */
	readonly endByMs: number;
}

/** A body is checked at this interval, because a timer for each chunk would cost more than reading it. */
const CHECK_MS = 500;

/** Ends a body at the signal, or if it goes silent or never ends, so that its reader gets an error. */
export function watchBody(body: ByteStream, first: PatienceLimits, clock: Clock, signal: AbortSignal) {
	const released = new AbortController();
	const over = AbortSignal.any([released.signal, signal]);
	let limits = first;
	let receivedAtMs = clock.now();
	const watch = async (): Promise<void> => {
		for (;;) {
			await clock.sleep(CHECK_MS, over);
			if (released.signal.aborted) return;
			if (signal.aborted) {
				body.destroy(new BodyEnded('ERR_CANCELED', 'the run has ended'));
				return;
			}
			const nowMs = clock.now();
			if (nowMs - receivedAtMs > limits.idleMs) {
				body.destroy(new BodyEnded('ETIMEDOUT', 'the connection went silent'));
			} else if (nowMs > limits.endByMs) {
				body.destroy(new BodyEnded('ERR_TOO_LATE', 'it did not end before the timeout'));
			}
		}
	};
	void watch();
	return {
		/** Restarts the idle timer; to be called when something meaningful arrives. */
		received: () => {
			receivedAtMs = clock.now();
		},
		/** Sets new limits and restarts the idle timer. */
		expect: (next: PatienceLimits) => {
			limits = next;
			receivedAtMs = clock.now();
		},
		/** Ends the watch; must be called. */
		release: () => released.abort(),
	};
}
