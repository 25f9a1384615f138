// Event streams: whether time grows only linearly with their length, what a stream costs, and how soon it is passed on.
import { createChatApi, type CompleteChat } from '../../nodes/ChatCompletion/api';
import { systemClock } from '../../nodes/shared/time/clock';
import { redactor } from '../../nodes/shared/text/redact';
import type { Retry } from '../../nodes/shared/retry/retry';
import { chatCompletion, chunksOf, asks, inARow, modelById, webhook } from '../../test/e2e/chatWorkflows';
import type { RunningN8n, SavedCredential } from '../../test/e2e/runner';
import { atLeast, atMost, median, told, type Figure } from '../figures';
import { promptFlow, runWell } from '../flow';
import type { BenchPlatform } from '../platform';
import { cpuSecondsOf, MB } from '../processMeter';
import type { Row } from '../stage';

const RUNS = 5;
const FIRST_CHUNK_RUNS = 15;

const LARGE_MB = 10;
const GROWTH_LIMIT = 12;
/** The size of the pieces that a socket delivers. */
const PIECE_BYTES = 64 * 1024;

const TOKENS_PER_SECOND = 100;
const STREAMS = 500;
const STREAMS_LIMIT = 500;
const LIVE_STREAMS = 20;
const LIVE_SECONDS = 5;

const FIRST_CHUNK_MS = 20;

export const sse: Row = {
	name: 'sse',
	async measure(stage) {
		return await stage.withPlatform({}, async (platform) => {
			const n8n = await stage.n8n();
			const account = await n8n.client.createCredential('flowPlatformApi', 'Platform for chats', {
				apiKey: platform.apiKey,
				baseUrl: platform.apiUrl,
				wsBaseUrl: platform.wsUrl,
			});
			return [
				...(await lengthFigures()),
				...(await costFigures()),
				...(await liveCostFigures(n8n, account)),
				...(await firstChunkFigures(n8n, platform, account)),
			];
		});
	},
};

// The whole path from bytes to an answer without n8n's client, measured in this process, which does nothing else.

function event(content: string): string {
	const choices = [{ index: 0, delta: { content }, finish_reason: null }];
	const chunk = { id: 'chat-1', object: 'chat.completion.chunk', created: 1, model: 'plain-1', choices };
	return `data: ${JSON.stringify(chunk)}\n\n`;
}

const LAST = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;

/** A chat client that reads the given bodies instead of a server's. */
function reader(piecesOf: () => AsyncIterable<Uint8Array>): CompleteChat {
	const retry: Pick<Retry, 'run' | 'pausedMs'> = {
		pausedMs: 0,
		run: async (_terms, exchange) => ({ outcome: await exchange(), tries: 1 }),
	};
	return createChatApi({
		baseUrl: 'http://127.0.0.1',
		busyTerms: [],
		open: async () => {
			const pieces = piecesOf();
			const body = { destroy: () => undefined, [Symbol.asyncIterator]: () => pieces[Symbol.asyncIterator]() };
			return { kind: 'open', status: 200, headers: {}, body };
		},
		retry,
		clock: systemClock,
		redact: redactor([]),
		signal: new AbortController().signal,
	});
}

async function readOne(complete: CompleteChat): Promise<number> {
	let characters = 0;
	const answer = await complete({
		body: {},
		onPiece: async ({ content }) => {
			characters += content.length;
		},
		idleMs: 60_000,
		endByMs: Date.now() + 600_000,
		tries: 1,
	});
	if (!answer.ok) throw new Error(answer.failure.message);
	return characters;
}

async function timeToRead(megabytes: number): Promise<number> {
	const one = event('word ');
	const text = Buffer.from(one.repeat(Math.ceil((megabytes * MB) / one.length)) + LAST);
	const complete = reader(async function* () {
		for (let at = 0; at < text.length; at += PIECE_BYTES) yield text.subarray(at, at + PIECE_BYTES);
	});
	// CPU time is measured, because other load on the machine disturbs a long reading more often than a short one.
	const before = process.cpuUsage();
	await readOne(complete);
	const { user, system } = process.cpuUsage(before);
	return (user + system) / 1000;
}

async function lengthFigures(): Promise<Figure[]> {
	const ratios: number[] = [];
	await timeToRead(1);
	for (let run = 1; run <= RUNS; run++) {
		const smallMs = median([await timeToRead(1), await timeToRead(1), await timeToRead(1)]);
		ratios.push((await timeToRead(LARGE_MB)) / smallMs);
	}
	const what = `event stream of ${LARGE_MB} MB ÷ 1 MB: CPU time`;
	return [atMost(GROWTH_LIMIT, median(ratios), { what, kind: 'time', unit: ' ×', runs: ratios })];
}

/** Reads all streams in parallel, with each token as a piece of its own, as if tokens arrived one by one. */
async function costFigures(): Promise<Figure[]> {
	const pieces = [...Array.from({ length: TOKENS_PER_SECOND }, () => event('word ')), LAST].map((text) =>
		Buffer.from(text),
	);
	const complete = reader(async function* () {
		for (const piece of pieces) {
			// This lets the other streams continue.
			await new Promise((resolve) => setImmediate(resolve));
			yield piece;
		}
	});
	const served: number[] = [];
	for (let run = 0; run <= RUNS; run++) {
		const before = process.cpuUsage();
		await Promise.all(Array.from({ length: STREAMS }, () => readOne(complete)));
		const { user, system } = process.cpuUsage(before);
		// The first run compiles.
		if (run > 0) served.push(STREAMS / ((user + system) / 1e6));
	}
	const what = `streams of ${TOKENS_PER_SECOND} tokens/s that a CPU-second serves, from bytes to answer`;
	return [atLeast(STREAMS_LIMIT, median(served), { what, kind: 'time', runs: served })];
}

/** Measures the same with all that n8n does around it: its HTTP client, sockets, the execution. */
async function liveCostFigures(n8n: RunningN8n, account: SavedCredential): Promise<Figure[]> {
	const words = TOKENS_PER_SECOND * LIVE_SECONDS;
	const ask = chatCompletion(account, {
		model: modelById('plain-1'),
		messages: asks(`={{ $json.prompt }} [words: ${words}] [pause: ${1000 / TOKENS_PER_SECOND}]`),
		limits: { concurrency: LIVE_STREAMS },
	});
	const served: number[] = [];
	for (let run = 0; run <= RUNS; run++) {
		const step = { type: '', typeVersion: 1, parameters: {}, ...ask };
		const flow = promptFlow(LIVE_STREAMS, `streams ${run}`, [step]);
		const before = cpuSecondsOf(n8n.pid);
		await runWell(n8n, flow);
		const seconds = cpuSecondsOf(n8n.pid) - before;
		if (run > 0) served.push((LIVE_STREAMS * LIVE_SECONDS) / seconds);
	}
	return [told(median(served), 'the same in n8n, all of its process counted', '', served)];
}

async function firstChunkFigures(
	n8n: RunningN8n,
	platform: BenchPlatform,
	account: SavedCredential,
): Promise<Figure[]> {
	const path = 'bench-talk';
	const ask = chatCompletion(account, {
		model: modelById('plain-1'),
		messages: asks('={{ $json.body.question }}'),
		options: {},
	});
	await n8n.client.activate(
		await n8n.client.createWorkflow(inARow('Bench talk', [webhook(path, 'streaming'), ask])),
	);
	const delaysMs: number[] = [];
	for (let run = 0; run <= FIRST_CHUNK_RUNS; run++) {
		await platform.resetBooks();
		const question = '[words: 20] [takes: 100] [pause: 20]';
		const response = await n8n.client.callWebhook(path, { question });
		let heardAtMs: number | undefined;
		for await (const { type } of chunksOf(response)) {
			if (type === 'item') heardAtMs ??= performance.timeOrigin + performance.now();
		}
		const [chat] = (await platform.books()).chats;
		const delayMs = (heardAtMs ?? Number.NaN) - (chat?.firstChunkAt ?? Number.NaN);
		if (run > 0) delaysMs.push(delayMs);
	}
	const what = 'first chunk, from the platform through n8n to the caller';
	return [atMost(FIRST_CHUNK_MS, median(delaysMs), { what, kind: 'time', unit: ' ms', runs: delaysMs })];
}
