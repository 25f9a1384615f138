import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { Socket, SocketEnd } from '../../shared/http/webSocket';
import { within } from '../../shared/run/clock';
import { explainEnd, TOKEN_REFUSED_CODE, whyEnded, type Bridge, type Peer } from './failures';
import { belongs, isUncorrelated, readIncoming, type Frame, type ReplyRule } from '../frames';

/** The most frames kept per request, so that a chatty platform cannot fill the memory. */
const MAX_COLLECTED = 200;
/** The most characters that a session collects for all its requests, because they are kept until the run ends. */
const MAX_COLLECTED_CHARS = 32_000_000;
/** The most connections per session: a platform that closes each at once would otherwise keep the run going forever. */
const MAX_CONNECTIONS = 1_000;
/** How long the platform may take to answer a close, which it does once it has received everything sent before. */
const CLOSE_CONFIRM_MS = 15_000;
/** How long after the token a platform that reads it from a frame may refuse it, before this side closes. */
const TOKEN_REFUSAL_MS = 1_000;

const CANCELLED: Failure = { kind: 'cancelled', message: 'The execution was stopped', advice: '' };
const MAY_HAVE_ARRIVED =
	'The connection ended before the platform confirmed the frame, so it may or may not have arrived. Send it again only if a duplicate does no harm.';
export const SENT_BUT =
	'The frame was sent and may have been processed, so it was not sent again. Send it again only if a duplicate does no harm.';

/** A request that waits for its reply, and the frames that have arrived in the meantime. */
class PendingRequest {
	/** The frames that belong to the request, except the reply. */
	readonly collected: Frame[] = [];
	/** How many frames belonged to the request, but were not collected, because of a limit. */
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

/** One connection of a session. */
interface Link {
	readonly socket: Socket;
	/** By the clock's `now()`; the token was sent then, if it is sent in a frame. */
	openedAtMs: number;
	/** Whether an answer to one of its frames arrived, which shows that the platform accepted the account. */
	hasAnswered: boolean;
	/** The values that late replies over it may still repeat. */
	readonly unanswered: Set<string | undefined>;
	/**
	 * Why it ended without a confirmed close, so that frames sent over it may be lost; absent otherwise. Of kind
	 * `credential` if the platform read none of them.
	 */
	lost?: Failure;
}

/** The connection that items with the same account and authentication share. It is opened when an item needs it. */
export class RequestSession {
	/** The connection that sent each item's frame. */
	private readonly sentOver = new Map<number, Link>();
	private link: Link | undefined;
	private connections = 0;
	private collectedChars = 0;
	private fatal: Failure | undefined;
	private pending: PendingRequest | undefined;

	/** @param signal aborted when the execution is stopped */
	constructor(
		private readonly bridge: Bridge,
		private readonly signal: AbortSignal,
	) {}

	async send(text: string, itemIndex: number): Promise<Result<unknown>> {
		const sent = await this.transmit(text);
		if (sent.ok) this.sentOver.set(itemIndex, sent.value);
		return sent;
	}

	/** The items whose frames were sent but may not have arrived, and why; call it once the session is closed. */
	losses(): Array<[itemIndex: number, failure: Failure]> {
		return [...this.sentOver].flatMap(([itemIndex, { lost }]): Array<[number, Failure]> => {
			if (!lost) return [];
			const advice = `${MAY_HAVE_ARRIVED} ${lost.advice}`;
			return [[itemIndex, lost.kind === 'credential' ? lost : { ...lost, kind: 'unclear', advice }]];
		});
	}

	/** Sends a frame and collects incoming ones until the reply arrives or the time is up. */
	async request(text: string, rule: ReplyRule, timeoutMs: number) {
		const { clock, peer } = this.bridge;
		const startedMs = clock.now();
		// A late reply to an earlier request would be mistaken for the reply to this one.
		if (this.link?.unanswered.has(rule.correlation)) await this.leave();
		const sent = await this.transmit(text);
		if (!sent.ok) return sent;
		const { promise, resolve } = Promise.withResolvers<Result<Frame>>();
		const pending = new PendingRequest(rule, resolve);
		this.pending = pending;
		const stop = (): void => resolve(fail(CANCELLED));
		this.signal.addEventListener('abort', stop);
		const outcome = await within(clock, timeoutMs, promise, fail(timedOut(timeoutMs, peer)));
		this.signal.removeEventListener('abort', stop);
		this.pending = undefined;
		const { collected, notCollected } = pending;
		if (outcome.ok) {
			// The time includes the opening of a connection.
			return ok({ reply: outcome.value, collected, notCollected, elapsedMs: clock.now() - startedMs });
		}
		if (outcome.failure.kind === 'timedOut') {
			if (isUncorrelated(rule)) await this.leave();
			else sent.value.unanswered.add(rule.correlation);
		}
		return fail(withReceived(outcome.failure, pending));
	}

	/** Closes the connection and waits for the platform to confirm, which proves that everything sent has arrived. */
	async close(): Promise<void> {
		const { clock, peer } = this.bridge;
		if (this.link && this.sentOver.size > 0 && peer.tokenIn === 'frame') {
			// Once this side closes, the close of a platform that refuses the token would be taken for the answer to it.
			const { socket, openedAtMs } = this.link;
			const leftMs = openedAtMs + TOKEN_REFUSAL_MS - clock.now();
			if (leftMs > 0) await clock.sleep(leftMs, AbortSignal.any([socket.over, this.signal]));
		}
		const { link } = this;
		if (!link) return;
		const end = await link.socket.close(undefined, this.signal.aborted ? undefined : CLOSE_CONFIRM_MS);
		// Codes 1000 and 1005 are the answers to this side's close.
		if (end.code !== 1000 && end.code !== 1005) this.lose(link, end);
	}

	/** @returns why the connection ended */
	private lose(link: Link, end: SocketEnd): Failure {
		const { peer } = this.bridge;
		const failure = explainEnd(end, peer, link.hasAnswered);
		// Only a platform that refuses the token in the first frame is known to have read no other. One that accepted the
		// handshake may have processed frames before it refused the account.
		const isUnread = peer.tokenIn === 'frame' && !link.hasAnswered && end.code === TOKEN_REFUSED_CODE;
		link.lost = failure.kind === 'credential' && !isUnread ? { ...failure, kind: 'unreachable' } : failure;
		return failure;
	}

	private collect(link: Link, text: string, pending: PendingRequest): void {
		const incoming = readIncoming(text, this.bridge.peer.redact);
		if (!incoming.ok) {
			pending.addUnreadable(incoming.failure);
			return;
		}
		const frame = incoming.value;
		const { rule, collected } = pending;
		const isForRequest = belongs(frame, rule);
		const isFinal = isForRequest && rule.filter.accepts(frame);
		// A frame that repeats no value of the request may be about anything, such as a refusal of the account.
		link.hasAnswered ||= isFinal || (isForRequest && !isUncorrelated(rule));
		if (isFinal) {
			pending.settle(ok(frame));
		} else if (!isForRequest) {
			pending.others++;
		} else if (collected.length >= MAX_COLLECTED || this.collectedChars + text.length > MAX_COLLECTED_CHARS) {
			pending.notCollected++;
		} else {
			this.collectedChars += text.length;
			collected.push(frame);
		}
	}

	private async transmit(text: string): Promise<Result<Link>> {
		for (;;) {
			if (this.signal.aborted) return fail(CANCELLED);
			if (this.fatal) return fail(this.fatal);
			const opened = this.link ? ok(this.link) : await this.connect();
			if (!opened.ok || opened.value.socket.send(text)) return opened;
			// The platform is closing the connection and the frame was not sent, so a new connection may send it.
			const end: SocketEnd = { ...(await opened.value.socket.close()), cause: 'closed' };
			if (this.link === opened.value) this.onEnd(opened.value, end);
			if (this.connections >= MAX_CONNECTIONS) this.fatal ??= explainEnd(end, this.bridge.peer);
		}
	}

	private async connect(): Promise<Result<Link>> {
		// The SSRF guard has already allowed the first connection.
		const refused = this.connections > 0 ? await this.bridge.refusal() : undefined;
		if (refused) return fail((this.fatal = refused));
		if (this.signal.aborted) return fail(CANCELLED);
		this.connections++;
		const { promise, resolve } = Promise.withResolvers<SocketEnd | undefined>();
		const socket = this.bridge.open({
			onOpen: () => {
				this.link = link;
				link.openedAtMs = this.bridge.clock.now();
				resolve(undefined);
			},
			onText: (text) => {
				if (this.pending) this.collect(link, text, this.pending);
			},
			onBinary: () => this.pending?.addUnreadable('binary, not text'),
			onEnd: (end) => {
				if (this.link === link) this.onEnd(link, end);
				else resolve(end);
			},
		});
		const link: Link = { socket, openedAtMs: 0, hasAnswered: false, unanswered: new Set() };
		this.signal.addEventListener('abort', () => void socket.close().then(resolve), { once: true });
		const end = await promise;
		if (!end) return ok(link);
		if (end.cause === 'ours') return fail(CANCELLED);
		// Later items do not try again: each would wait just as long for the same answer.
		return fail((this.fatal = await whyEnded(end, this.bridge)));
	}

	private onEnd(link: Link, end: SocketEnd): void {
		const failure = this.lose(link, end);
		this.link = undefined;
		if (failure.kind === 'credential') this.fatal = failure;
		this.pending?.settle(fail(link.lost ?? failure));
	}

	/** Closes the connection, because a late reply could be mistaken for the reply to the next frame. */
	private async leave(): Promise<void> {
		const left = this.link;
		this.link = undefined;
		await left?.socket.close();
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
function withReceived(failure: Failure, pending: PendingRequest): Failure {
	const { collected, notCollected, others, unreadable, firstUnreadable } = pending;
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
