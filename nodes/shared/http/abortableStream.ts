/** A body as n8n returns it for `encoding: 'stream'`. */
export interface ByteStream extends AsyncIterable<Uint8Array> {
	destroy(error?: Error): unknown;
}

/**
 * A body that ends as soon as it is destroyed. n8n's bodies do not: its client wraps them in a generator to count their
 * bytes, which cannot be ended while it waits for a chunk, so a reader of a silent connection would wait forever.
 * @param close closes the connection
 */
export function cuttable(body: ByteStream, close: () => void): ByteStream {
	let isCut = false;
	let cutBy: Error | undefined;
	let wake: (() => void) | undefined;

	const end = (): IteratorReturnResult<undefined> => {
		if (cutBy) throw cutBy;
		return { done: true, value: undefined };
	};
	const next = async (
		iterator: AsyncIterator<Uint8Array>,
	): Promise<IteratorResult<Uint8Array, undefined>> => {
		if (isCut) return end();
		const cut = new Promise<'cut'>((resolve) => {
			wake = () => resolve('cut');
		});
		const piece = await Promise.race([iterator.next(), cut]);
		// A chunk that arrives at the same moment still counts.
		if (piece === 'cut') return end();
		return piece.done ? { done: true, value: undefined } : piece;
	};
	const destroy = (error?: Error): void => {
		if (isCut) return;
		isCut = true;
		cutBy = error;
		wake?.();
		close();
		body.destroy();
	};

	return {
		destroy,
		[Symbol.asyncIterator]: () => {
			const iterator = body[Symbol.asyncIterator]();
			return {
				next: async () => await next(iterator),
				return: async () => {
					destroy();
					return await Promise.resolve({ done: true, value: undefined });
				},
			};
		},
	};
}
