import type { Clock } from '../shared/run/clock';
import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import type { Redact } from '../shared/text/redact';
import type { BridgeEnd, BridgeEvents, BridgeLine } from './connection';
import { explainEnd, isRefusal, type Whom } from './failures';
import { belongs, isReply, isUncorrelated, readIncoming, type Frame, type ReplyRule } from './frames';
import type { Probe } from './probe';

export interface SessionParts {
	readonly open: (events: BridgeEvents) => BridgeLine;
	readonly probe: () => Promise<Probe>;
	readonly clock: Clock;
	readonly whom: Whom;
	/** Hides the token in frames: a platform may echo it. */
	readonly redact: Redact;
	/** Aborted when the execution is stopped. */
	readonly signal: AbortSignal;
}

/** What a request brought. */
export interface Exchange {
	readonly reply: Frame;
	/** The frames that came before the reply and belong to the request. */
	readonly collected: readonly Frame[];
	/** How many more of these came than are kept. */
	readonly notCollected: number;
	/** Until the reply was there, the opening of a connection included. */
	readonly elapsedMs: number;
}

/** The connection that all items of one node run share; opened by the first of them that needs it. */
export interface BridgeSession {
	/** Sends a frame. @returns the number of the connection that took it */
	send(text: string): Promise<Result<number>>;
	/** Sends a frame and collects others until one is the reply, or the time is over. */
	request(text: string, rule: ReplyRule, timeoutMs: number): Promise<Result<Exchange>>;
	/**
	 * Closes the connection. @returns why a connection ended otherwise than by our closing, by its number: what was
	 * sent over it may not have arrived
	 */
	close(): Promise<ReadonlyMap<number, Failure>>;
}

/** Frames that an error or an item shows of a request. A chatty platform must not fill the memory. */
const MAX_COLLECTED = 200;
/** The text of all of them in a run: its items are held until it ends. */
const MAX_COLLECTED_CHARS = 32_000_000;
/** New connections of one run: a platform that closes each one at once is not asked forever. */
const MAX_CONNECTIONS = 1_000;
/** The other side answers a close once it has taken all that was sent before; this is how long it may take. */
const CLOSE_CONFIRM_MS = 15_000;

const CANCELLED: Failure = { kind: 'cancelled', message: 'The execution was stopped', advice: '' };
export const SENT_BUT =
	'The frame was sent and may have been worked on, so it was not sent again. Whether to send it again is for the workflow to decide.';

/** Frames that came while a reply was waited for, and are not shown. */
interface Missed {
	notCollected: number;
	/** Those that do not belong to the request. */
	others: number;
	/** Those that could not be read, and what the first of them is. */
	strange: number;
	what?: string;
}

interface Collector {
	onFrame(frame: Frame, chars: number): void;
	/** @param what to be put behind "a frame that is" */
	onStrange(what: string): void;
	onFailure(failure: Failure): void;
}

export function openSession(parts: SessionParts): BridgeSession {
	const { clock, whom, redact, signal } = parts;
	const lost = new Map<number, Failure>();
	let line: BridgeLine | undefined;
	let connections = 0;
	let collectedChars = 0;
	let fatal: Failure | undefined;
	let collector: Collector | undefined;

	const onEnd = (number: number, end: BridgeEnd): void => {
		const failure = explainEnd(end, whom);
		line = undefined;
		lost.set(number, failure);
		if (isRefusal(end)) fatal = failure;
		collector?.onFailure(failure);
	};

	const connect = async (): Promise<Result<BridgeLine>> => {
		const outcome = await new Promise<BridgeEnd | BridgeLine>((resolve) => {
			let isOpen = false;
			const number = ++connections;
			const opening = parts.open({
				onOpen: () => {
					isOpen = true;
					resolve(opening);
				},
				onText: (text) => {
					if (!collector) return;
					const incoming = readIncoming(text, redact);
					if (incoming.ok) collector.onFrame(incoming.value, text.length);
					else collector.onStrange(incoming.failure);
				},
				onBinary: () => undefined,
				onEnd: (end) => {
					if (isOpen) onEnd(number, end);
					else resolve(end);
				},
			});
			signal.addEventListener('abort', () => void opening.close().then(resolve), { once: true });
		});
		if (signal.aborted) return fail(CANCELLED);
		if (!('cause' in outcome)) return ok((line = outcome));
		const probe = outcome.cause === 'handshake' ? await parts.probe() : undefined;
		// The items that follow do not knock again: they would each wait as long, for the same answer.
		fatal = explainEnd(outcome, whom, probe);
		return fail(fatal);
	};

	const ready = async (): Promise<Result<BridgeLine>> => {
		if (signal.aborted) return fail(CANCELLED);
		if (fatal) return fail(fatal);
		return line ? ok(line) : await connect();
	};

	/** @param onSent called in the very moment in which the frame is on its way, before anything can come back */
	const transmit = async (text: string, onSent: (number: number) => void): Promise<Result<number>> => {
		for (;;) {
			const open = await ready();
			if (!open.ok) return open;
			const number = connections;
			if (open.value.send(text)) {
				onSent(number);
				return ok(number);
			}
			// The other side is closing. Nothing was sent, so a new connection may do it.
			const end = await open.value.close();
			if (line === open.value) onEnd(number, { ...end, cause: 'closed' });
			if (connections >= MAX_CONNECTIONS) fatal ??= explainEnd({ ...end, cause: 'closed' }, whom);
		}
	};

	/** Nothing tells a late reply from that to the next frame: it ends with the line that it would come over. */
	const leave = async (): Promise<void> => {
		const left = line;
		line = undefined;
		await left?.close();
	};

	const request = async (text: string, rule: ReplyRule, timeoutMs: number): Promise<Result<Exchange>> => {
		const startedMs = clock.now();
		const collected: Frame[] = [];
		const over = new AbortController();
		const missed: Missed = { notCollected: 0, others: 0, strange: 0 };
		let unsent: Failure | undefined;
		const stop = (): void => collector?.onFailure(CANCELLED);
		signal.addEventListener('abort', stop, { once: true });
		const outcome = await new Promise<Result<Frame>>((resolve) => {
			const listenForReply = (): void => {
				collector = {
					onFrame: (frame, chars) => {
						if (isReply(frame, rule)) {
							resolve(ok(frame));
						} else if (!belongs(frame, rule)) {
							missed.others++;
						} else if (collected.length >= MAX_COLLECTED || collectedChars + chars > MAX_COLLECTED_CHARS) {
							missed.notCollected++;
						} else {
							collectedChars += chars;
							collected.push(frame);
						}
					},
					onStrange: (what) => {
						missed.strange++;
						missed.what ??= what;
					},
					onFailure: (failure) => resolve(fail(failure)),
				};
				void clock.sleep(timeoutMs, over.signal).then(() => resolve(fail(timedOut(timeoutMs, whom))));
			};
			void transmit(text, listenForReply).then((sent) => {
				if (sent.ok) return;
				unsent = sent.failure;
				resolve(sent);
			});
		});
		collector = undefined;
		over.abort();
		signal.removeEventListener('abort', stop);
		if (outcome.ok) {
			const elapsedMs = clock.now() - startedMs;
			return ok({ reply: outcome.value, collected, notCollected: missed.notCollected, elapsedMs });
		}
		if (outcome.failure.kind === 'timedOut' && isUncorrelated(rule)) await leave();
		return fail(unsent ?? withCollected(outcome.failure, collected, missed));
	};

	return {
		send: async (text) => await transmit(text, () => undefined),
		request,
		close: async () => {
			const number = connections;
			const end = await line?.close(undefined, signal.aborted ? undefined : CLOSE_CONFIRM_MS);
			// 1000 and 1005 are the answer to our own closing frame.
			if (end && end.code !== 1000 && end.code !== 1005) lost.set(number, explainEnd(end, whom));
			return lost;
		},
	};
}

function timedOut(timeoutMs: number, { host }: Whom): Failure {
	return {
		kind: 'timedOut',
		message: `No reply came from ${host} within ${timeoutMs / 1000} seconds`,
		advice:
			'Check "Reply Path" and "Reply Events" against the frames in the error\'s details, or allow more time.',
	};
}

/** What had come stands in the error: it shows why nothing of it was taken for the reply. */
function withCollected(failure: Failure, collected: readonly Frame[], missed: Missed): Failure {
	const isUnclear = failure.kind === 'unreachable';
	const { strange, what = '', others: otherFrames, notCollected } = missed;
	const advice = strange > 0 ? `${failure.advice} A frame came that is ${what}.`.trim() : failure.advice;
	return {
		...failure,
		kind: isUnclear ? 'unclear' : failure.kind,
		advice: isUnclear ? `${SENT_BUT} ${advice}` : advice,
		details: {
			...failure.details,
			collected: [...collected],
			otherFrames,
			...(notCollected > 0 && { notCollected }),
			...(strange > 0 && { unreadableFrames: strange }),
		},
	};
}
