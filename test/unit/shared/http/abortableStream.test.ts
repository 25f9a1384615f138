import { Readable } from 'node:stream';
import { cuttable, type ByteStream } from '../../../../nodes/shared/http/abortableStream';
import { BodyEnded, readBody } from '../../../../nodes/shared/http/request';
import { readStream, type StreamEvent } from '../../../../nodes/shared/http/sse';

/** A body like that of the request client: one piece, and then a generator that waits forever. */
function silent(first = 'data: a\n\ndata: b'): Readable {
	return Readable.from(
		(async function* () {
			yield Buffer.from(first);
			await new Promise(() => undefined);
		})(),
		{ objectMode: false },
	);
}

async function readAll(body: ByteStream) {
	const events: StreamEvent[] = [];
	try {
		for await (const some of readStream(body)) events.push(...some);
		return { events, error: undefined };
	} catch (error) {
		return { events, error };
	}
}

test('a silent body ends at once with the reason for which it was destroyed', async () => {
	let closed = 0;
	const body = cuttable(silent(), () => closed++);
	const reading = readAll(body);
	await new Promise((resolve) => setImmediate(resolve));
	body.destroy(new BodyEnded('ETIMEDOUT', 'the connection went silent'));
	body.destroy(new BodyEnded('ERR_TOO_LATE', 'too late'));
	const { events, error } = await reading;
	expect(events.map(({ data }) => data)).toEqual(['a', 'b']);
	expect(error).toMatchObject({ code: 'ETIMEDOUT' });
	expect(closed).toBe(1);
});

test('a reader that stops early closes the connection', async () => {
	let closed = 0;
	for await (const piece of cuttable(silent(), () => closed++)) {
		expect(piece.byteLength).toBeGreaterThan(0);
		break;
	}
	expect(closed).toBe(1);
});

test('a body that was destroyed before it is read ends', async () => {
	const body = cuttable(silent(), () => undefined);
	body.destroy();
	expect(await readAll(body)).toMatchObject({ error: undefined });
});

test('reading a whole body times out if it does not end', async () => {
	await expect(readBody(silent(), 20, 1_000)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
});
