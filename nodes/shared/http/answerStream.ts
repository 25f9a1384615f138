import type { Clock } from '../time/clock';
import { excerpt } from '../text/json';
import type { Redact } from '../text/redact';
import type { Exchange, Headers, HttpRequest } from './exchange';
import { watchBody } from './body';
import { exchangeOfError, readWhole, type OpenHttp, type OpenReply } from './request';
import { readStream, type StreamEvent } from './sse';

export interface AnswerConnection {
	readonly open: OpenHttp;
	readonly clock: Clock;
	/** Ends an answer that is being read. */
	readonly signal: AbortSignal;
}

interface AnswerRequest extends Pick<HttpRequest, 'url' | 'json' | 'accept' | 'headers' | 'outlivesStop'> {
	/** The longest silence: before the answer begins, and between two meaningful events. */
	readonly idleMs: number;
	/** By when the answer must be complete, by the clock's `now()`. */
	readonly endByMs: number;
	/** Whether errors may come as events, so that events are read regardless of the HTTP status. */
	readonly hasErrorEvents?: boolean;
	/** Whether each line is an event if a body is several lines of JSON. */
	readonly hasLines?: boolean;
}

/** What an event meant. */
export type EventMeaning =
	| 'nothing' // it only keeps the connection alive, so the idle timer keeps running
	| 'progress' // it is a part of the answer, which goes on even if an earlier event had finished it
	| 'finished' // the answer is complete; only extras such as token counts may follow
	| 'closed'; // nothing after it is read

interface BrokenOff {
	readonly code: string;
	readonly reason: string;
	readonly isTimeout: boolean;
}

export interface ReadAnswer {
	readonly kind: 'read';
	readonly status: number;
	readonly headers: Headers;
	readonly broken: BrokenOff | undefined;
}

/** `timedOut`: no answer began in time. An `Exchange`: no answer, or an error that is not read as events. */
type AnswerEnd = ReadAnswer | { readonly kind: 'timedOut' } | Exchange;

/** How long a server may keep a stream open after the answer is finished; token counts may follow. */
const AFTER_FINISH_MS = 3_000;

/** Interprets an event; if it throws, the answer breaks off. */
type TakeEvent = (event: StreamEvent) => EventMeaning | Promise<EventMeaning>;

/**
 * Requests an answer and reads it event by event; a body that is not a stream is one event. Never throws.
 * @param afterSome awaited after each group of events that came together, and after the first part of the answer
 */
export async function readAnswer(
	connection: AnswerConnection,
	request: AnswerRequest,
	take: TakeEvent,
	afterSome?: () => Promise<void>,
): Promise<AnswerEnd> {
	const { open, clock, signal } = connection;
	const { idleMs, endByMs, hasErrorEvents, ...asked } = request;
	const timeoutMs = Math.min(idleMs, endByMs - clock.now());
	if (timeoutMs <= 0) return { kind: 'timedOut' };
	// A compressed answer that was cut off would be empty or pass for a whole one: n8n's client unpacks as much as arrived.
	const headers = { 'Accept-Encoding': 'identity', ...asked.headers };
	const opening = await open({ ...asked, headers, method: 'POST', timeoutMs, signal });
	if (opening.kind !== 'open') {
		return opening.kind === 'unclear' && isTimeout(opening.code) ? { kind: 'timedOut' } : opening;
	}
	const { status } = opening;
	const isGood = status >= 200 && status < 300;
	if (!isGood && !hasErrorEvents) return await readWhole(opening, timeoutMs, signal);
	try {
		await follow(connection, request, opening, take, afterSome);
		return { kind: 'read', status, headers: opening.headers, broken: undefined };
	} catch (error) {
		const ended = exchangeOfError(error, signal);
		if (ended.kind === 'cancelled') return ended;
		const { code, text: reason } = ended;
		const broken = { code: code || 'ERR_BROKEN', reason, isTimeout: isTimeout(code) };
		return { kind: 'read', status, headers: opening.headers, broken };
	}
}

async function follow(
	{ clock, signal }: AnswerConnection,
	{ idleMs, endByMs, hasLines }: AnswerRequest,
	{ body }: OpenReply,
	take: TakeEvent,
	afterSome?: () => Promise<void>,
): Promise<void> {
	const watched = watchBody(body, { idleMs, endByMs }, clock, signal);
	let hasBegun = false;
	let isFinished = false;
	try {
		for await (const events of readStream(body, hasLines)) {
			for (const event of events) {
				const meaning = await take(event);
				if (meaning === 'closed') return;
				if (meaning === 'progress') {
					if (isFinished) watched.expect({ idleMs, endByMs });
					isFinished = false;
					watched.received();
					if (!hasBegun) await afterSome?.();
					hasBegun = true;
				}
				if (meaning === 'finished' && !isFinished) {
					isFinished = true;
					const lastMs = Math.min(endByMs, clock.now() + AFTER_FINISH_MS);
					watched.expect({ idleMs: AFTER_FINISH_MS, endByMs: lastMs });
				}
			}
			await afterSome?.();
		}
	} finally {
		watched.release();
	}
}

function isTimeout(code: string): boolean {
	return code === 'ETIMEDOUT' || code === 'ECONNABORTED' || code === 'ERR_TOO_LATE';
}

/** Why an answer broke off, as a clause. */
export function whyBroken(broken: BrokenOff | undefined, redact: Redact): string {
	if (!broken) return 'the connection ended before the answer was finished';
	const reason = excerpt(redact(broken.reason));
	return broken.code === 'ETIMEDOUT' ? reason : `${reason} (${broken.code})`;
}
