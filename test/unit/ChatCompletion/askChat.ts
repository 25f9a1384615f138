import { createChatApi, type ChatCall } from '../../../nodes/ChatCompletion/api';
import type { ContentParts } from '../../../nodes/shared/answer/contentParts';
import type { JsonObject } from '../../../nodes/shared/text/json';
import { redactor } from '../../../nodes/shared/text/redact';
import type { AdaptiveRate } from '../../../nodes/shared/retry/adaptiveRate';
import { Retry } from '../../../nodes/shared/retry/retry';
import { cuttable } from '../../../nodes/shared/http/body';
import { TestClock } from '../testClock';

export const KEY = 'sk-0123456789abcdef/xyz';

interface Script {
	/** The pieces of the body; each is requested when it is to be read. */
	readonly body: (clock: TestClock) => AsyncIterable<string> | Iterable<string>;
	readonly status?: number;
	readonly contentType?: string;
	readonly idleMs?: number;
	readonly totalMs?: number;
	readonly tries?: number;
	readonly rate?: AdaptiveRate;
	/** The body of the question. */
	readonly asked?: JsonObject;
}

/** Asks a platform that answers with one body, which is read as in production. */
export async function askChat({
	body,
	status = 200,
	contentType = 'text/event-stream',
	idleMs = 10_000,
	totalMs = Infinity,
	tries = 1,
	rate,
	asked = {},
}: Script) {
	const clock = new TestClock();
	const run = new AbortController();
	const redact = redactor([KEY]);
	const pieces: ContentParts[] = [];
	let opened = 0;
	const headers: unknown[] = [];
	const stream = () =>
		cuttable(
			{
				destroy: () => undefined,
				async *[Symbol.asyncIterator]() {
					for await (const piece of body(clock)) yield Buffer.from(piece);
				},
			},
			() => undefined,
		);
	const complete = createChatApi({
		baseUrl: 'http://platform',
		busyTerms: ['too frequent'],
		open: async (request) => {
			opened++;
			headers.push(request.headers);
			return await Promise.resolve({
				kind: 'open',
				status,
				headers: { 'content-type': contentType },
				body: stream(),
			});
		},
		retry: new Retry({ requestsPerSecond: 0, concurrency: 1 }, { clock, signal: run.signal }, () => 0, rate),
		clock,
		redact,
		signal: run.signal,
	});
	const startMs = clock.now();
	const call: ChatCall = {
		body: asked,
		onPiece: async (piece) => void pieces.push(await Promise.resolve(piece)),
		idleMs,
		endByMs: startMs + totalMs,
		tries,
	};
	const result = await clock.run(complete(call));
	const tookMs = clock.elapsedMs;
	run.abort();
	return { result, tookMs, opened, pieces, headers };
}

export const sse = (...events: (JsonObject | string)[]): string =>
	events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');

export const delta = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
	id: 'chatcmpl-1',
	choices: [{ index: 0, delta: fields }],
	...more,
});

export const finish = (reason: string, fields: JsonObject = {}): JsonObject => ({
	choices: [{ index: 0, delta: fields, finish_reason: reason }],
});
