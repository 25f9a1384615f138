import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { Socket, SocketEnd } from '../../shared/http/webSocket';
import { explainEnd, whyEnded, type Bridge, type Peer } from './failures';
import { belongs, isUncorrelated, readIncoming, type Frame, type ReplyRule } from '../frames/frames';

/** The most frames kept per request, so that a chatty platform cannot fill the memory. */
const MAX_COLLECTED = 200;
/** Limits the total length of the frames that a session collects, because all are kept until the run ends. */
const MAX_COLLECTED_CHARS = 32_000_000;
/** The most connections per session: a platform that closes each at once would otherwise keep the run going forever. */
const MAX_CONNECTIONS = 1_000;
/** How long the platform may take to answer a close, which it does once it has received everything sent before. */
const CLOSE_CONFIRM_MS = 15_000;

const CANCELLED: Failure = { kind: 'cancelled', message: 'The execution was stopped', advice: '' };
const MAY_HAVE_ARRIVED =
	'The connection ended before the platform confirmed the frame, so it may or may not have arrived. Send it again only if a duplicate does no harm.';
export const SENT_BUT =
	'The frame was sent and may have been processed, so it was not sent again. Send it again only if a duplicate does no harm.';

/** Frames that arrived while a request waited for its reply. */
class CollectedFrames {
	/** The frames that belong to the request, except the reply. */
	readonly collected: Frame[] = [];
	/** How many more frames belong to the request, but exceeded a limit. */
	notCollected = 0;
	/** How many frames did not belong to the request. */
	others = 0;
	unreadable = 0;
	/** What is wrong with the first unreadable frame: words that complete the phrase "a frame that is". */
	firstUnreadable = '';

	constructor(
		readonly rule: ReplyRule,
		readonly settle: (outcome: Result<Frame>) => void,
	) {}

	addUnreadable(what: string): void {
		if (this.unreadable++ === 0) this.firstUnreadable = what;
	}
}

/** The connection that items with the same account and authentication share. It is opened when an item needs it. */
export class RequestSession {
	/** By connection number, why a connection ended without a confirmed close: frames sent over it may be lost. */
	readonly lost = new Map<number, Failure>();
	/** The number of the connection that sent each item's frame. */
	private readonly sentOver = new Map<number, number>();
	private connection: Socket | undefined;
	/** Whether the connection carried an answer to one of its frames, so that the platform accepted the account. */
	private hasAnswered = false;
	private connections = 0;
	private collectedChars = 0;
	private fatal: Failure | undefined;
	/** The values that late replies on this connection may still repeat. */
	private readonly unanswered = new Set<string | undefined>();
	/** The frames that have arrived for the request in progress; undefined if none is. */
	private received: CollectedFrames | undefined;

	/** @param signal aborted when the execution is stopped */
	constructor(
		private readonly bridge: Bridge,
		private readonly signal: AbortSignal,
	) {}

	/** Sends an item's frame. @returns the number of the connection that sent it */
	async send(text: string, itemIndex: number): Promise<Result<number>> {
		const sent = await this.transmit(text, () => undefined);
		if (sent.ok) this.sentOver.set(itemIndex, sent.value);
		return sent;
	}

	/** Why an item's frame that was sent may not have arrived; call it once the session is closed. */
	whyLost(itemIndex: number): Failure | undefined {
		const failure = this.lost.get(this.sentOver.get(itemIndex) ?? 0);
		if (!failure || failure.kind === 'credential') return failure;
		return { ...failure, kind: 'unclear', advice: `${MAY_HAVE_ARRIVED} ${failure.advice}` };
	}

	/** Sends a frame and collects incoming ones until the reply arrives or the time is up. */
	async request(text: string, rule: ReplyRule, timeoutMs: number) {
		const { clock, peer } = this.bridge;
		const startedMs = clock.now();
		const over = new AbortController();
		const { promise, resolve } = Promise.withResolvers<Result<Frame>>();
		const received = new CollectedFrames(rule, resolve);
		// A late reply to an earlier request would be mistaken for the reply to this one.
		if (this.unanswered.has(rule.correlation)) await this.leave();
		const sent = await this.transmit(text, () => {
			this.received = received;
			this.signal.addEventListener('abort', () => resolve(fail(CANCELLED)), { signal: over.signal });
			void clock.sleep(timeoutMs, over.signal).then(() => resolve(fail(timedOut(timeoutMs, peer))));
		});
		if (!sent.ok) return sent;
		const outcome = await promise;
		this.received = undefined;
		over.abort();
		const { collected, notCollected } = received;
		if (outcome.ok) {
			// The time includes the opening of a connection.
			return ok({ reply: outcome.value, collected, notCollected, elapsedMs: clock.now() - startedMs });
		}
		if (outcome.failure.kind === 'timedOut') {
			if (isUncorrelated(rule)) await this.leave();
			else this.unanswered.add(rule.correlation);
		}
		return fail(withReceived(outcome.failure, received));
	}

	/** Closes the connection and waits for the platform to confirm, which proves that everything sent has arrived. */
	async close(): Promise<void> {
		const number = this.connections;
		const end = await this.connection?.close(undefined, this.signal.aborted ? undefined : CLOSE_CONFIRM_MS);
		// Codes 1000 and 1005 are the answers to this side's close.
		if (end && end.code !== 1000 && end.code !== 1005) {
			this.lost.set(number, explainEnd(end, this.bridge.peer));
		}
	}

	private collect(text: string, received: CollectedFrames): void {
		const incoming = readIncoming(text, this.bridge.peer.redact);
		if (!incoming.ok) {
			received.addUnreadable(incoming.failure);
			return;
		}
		const frame = incoming.value;
		const { rule, collected } = received;
		const isForRequest = belongs(frame, rule);
		const isFinal = isForRequest && rule.filter.accepts(frame);
		// A frame that repeats no value of the request may be about anything, such as a refusal of the account.
		this.hasAnswered ||= isFinal || (isForRequest && !isUncorrelated(rule));
		if (isFinal) {
			received.settle(ok(frame));
		} else if (!isForRequest) {
			received.others++;
		} else if (collected.length >= MAX_COLLECTED || this.collectedChars + text.length > MAX_COLLECTED_CHARS) {
			received.notCollected++;
		} else {
			this.collectedChars += text.length;
			collected.push(frame);
		}
	}

	/** @param onSent called the moment the frame is sent, before anything can come back */
	private async transmit(text: string, onSent: () => void): Promise<Result<number>> {
		for (;;) {
			if (this.signal.aborted) return fail(CANCELLED);
			if (this.fatal) return fail(this.fatal);
			const open = this.connection ? ok(this.connection) : await this.connect();
			if (!open.ok) return open;
			const number = this.connections;
			if (open.value.send(text)) {
				onSent();
				return ok(number);
			}
			// The platform is closing the connection and the frame was not sent, so a new connection may send it.
			const end: SocketEnd = { ...(await open.value.close()), cause: 'closed' };
			if (this.connection === open.value) this.onEnd(number, end);
			if (this.connections >= MAX_CONNECTIONS) this.fatal ??= explainEnd(end, this.bridge.peer);
		}
	}

	private async connect(): Promise<Result<Socket>> {
		// The SSRF guard has already allowed the first connection.
		const refused = this.connections > 0 ? await this.bridge.refusal() : undefined;
		if (refused) return fail((this.fatal = refused));
		return this.signal.aborted ? fail(CANCELLED) : await this.openNew();
	}

	private async openNew(): Promise<Result<Socket>> {
		const number = ++this.connections;
		this.hasAnswered = false;
		let isOpen = false;
		const { promise, resolve } = Promise.withResolvers<SocketEnd | Socket>();
		const opening = this.bridge.open({
			onOpen: () => {
				isOpen = true;
				resolve(opening);
			},
			onText: (text) => {
				if (this.received) this.collect(text, this.received);
			},
			onBinary: () => this.received?.addUnreadable('binary, not text'),
			onEnd: (end) => {
				if (isOpen) this.onEnd(number, end);
				else resolve(end);
			},
		});
		this.signal.addEventListener('abort', () => void opening.close().then(resolve), { once: true });
		const outcome = await promise;
		if (this.signal.aborted) return fail(CANCELLED);
		if (!('cause' in outcome)) return ok((this.connection = outcome));
		// Later items do not try again: each would wait just as long for the same answer.
		this.fatal = await whyEnded(outcome, this.bridge);
		return fail(this.fatal);
	}

	private onEnd(number: number, end: SocketEnd): void {
		const failure = explainEnd(end, this.bridge.peer);
		this.connection = undefined;
		this.unanswered.clear();
		this.lost.set(number, failure);
		if (failure.kind === 'credential') this.fatal = failure;
		// If the account is refused only after an answer, the platform may have processed the frame.
		const isUnclear = failure.kind === 'credential' && this.hasAnswered;
		this.received?.settle(fail(isUnclear ? { ...failure, kind: 'unreachable' } : failure));
	}

	/** Closes the connection, because a late reply could be mistaken for the reply to the next frame. */
	private async leave(): Promise<void> {
		const left = this.connection;
		this.connection = undefined;
		this.unanswered.clear();
		await left?.close();
	}
}

function timedOut(timeoutMs: number, { host }: Peer): Failure {
	return {
		kind: 'timedOut',
		message: `No reply arrived from ${host} within ${timeoutMs / 1000} seconds`,
		advice:
			'Check "ID in Reply" and "Reply Events" against the frames in the error\'s details, or raise "Timeout (Seconds)".',
	};
}

/** Adds the received frames, so that the operator sees why none of them was the reply. */
function withReceived(failure: Failure, received: CollectedFrames): Failure {
	const { collected, notCollected, others, unreadable, firstUnreadable } = received;
	const isUnclear = failure.kind === 'unreachable';
	const advice =
		unreadable > 0 ? `${failure.advice} A frame arrived that is ${firstUnreadable}.`.trim() : failure.advice;
	return {
		...failure,
		kind: isUnclear ? 'unclear' : failure.kind,
		advice: isUnclear ? `${SENT_BUT} ${advice}` : advice,
		details: {
			...failure.details,
			collected,
			otherFrames: others,
			...(notCollected > 0 && { notCollected }),
			...(unreadable > 0 && { unreadableFrames: unreadable }),
		},
	};
}
