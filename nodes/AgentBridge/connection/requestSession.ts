import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { Socket, SocketEnd } from '../../shared/http/webSocket';
import { explainEnd, TOKEN_REFUSED_CODE, whyEnded, type Bridge, type Peer, type Served } from './failures';
import { belongs, nameAt, readIncoming, type ReplyRule } from '../frames';
import { Question } from './question';

/** The most connections in a row that a platform closes before one of them sends a frame. */
const MAX_FUTILE = 10;
/** The pause after which a platform that has accepted a connection before is asked once more for another. */
const RECONNECT_MS = 1_000;
/** How long a test in the editor listens for frames that come after a reply. */
const LISTEN_AFTER_REPLY_MS = 1_000;
/** How long the platform may take to answer a close, which it does once it has received everything sent before. */
const CLOSE_CONFIRM_MS = 15_000;
/** How long after the token a platform may refuse the connection by closing it, before this side closes. */
const REFUSAL_MS: Readonly<Record<Peer['tokenIn'], number>> = { frame: 1_000, handshake: 200, nothing: 200 };

/** The codes of a close in order: with 1005 there is none in the frame. */
const NORMAL_CODES: ReadonlySet<number> = new Set([1000, 1005]);

const CANCELLED: Failure = { kind: 'cancelled', message: 'The execution was stopped', advice: '' };
const MAY_HAVE_ARRIVED =
	'The connection ended before the platform confirmed the frame, so it may or may not have arrived. Send it again only if a duplicate does no harm.';
export const SENT_BUT =
	'The frame was sent and may have been processed, so it was not sent again. Send it again only if a duplicate does no harm.';

/** One connection of a session. */
interface Link {
	readonly socket: Socket;
	/** By the clock's `now()`; the token was sent then, if it is sent in a frame. */
	openedAtMs: number;
	/** What is known of the account: after an answer to one of its frames, the platform accepts it. */
	served: Served;
	/** The IDs of its requests, which late frames may still repeat; `undefined` for a request without one. */
	readonly asked: Set<string | undefined>;
	/** The newest request over it. */
	question?: Question;
	/**
	 * Why it ended without a confirmed close, so that frames sent over it may be lost; absent otherwise. Of kind
	 * `credential` if the platform read none of them.
	 */
	lost?: Failure;
}

/**
 * The conversation of items with the same account and authentication, over one connection after the other. Items share
 * a connection only as long as each frame on it tells whose it is: two requests whose replies look alike never do.
 */
export class RequestSession {
	/** The connection that sent each item's frame. */
	private readonly sentOver = new Map<number, Link>();
	private link: Link | undefined;
	/** Whether the platform has accepted a connection. */
	private hasOpened = false;
	private readonly totals = { chars: 0, late: 0 };
	private fatal: Failure | undefined;

	/** @param signal aborted when the execution is stopped */
	constructor(
		private readonly bridge: Bridge,
		private readonly signal: AbortSignal,
	) {}

	/** How many messages came for requests that were over. */
	get late(): number {
		return this.totals.late;
	}

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

	/** Sends a frame and collects incoming ones until the reply is complete or the time is up. */
	async request(text: string, rule: ReplyRule, timeoutMs: number) {
		const { clock, peer } = this.bridge;
		const startedMs = clock.now();
		await this.leaveAlike(rule);
		const sent = await this.transmit(text);
		if (!sent.ok) return sent;
		const question = new Question(rule, clock, this.totals);
		sent.value.asked.add(rule.id?.value);
		sent.value.question = question;
		const { late } = this.totals;
		const timeUp = (): Failure => timedOut(timeoutMs, peer.host, question, this.totals.late > late);
		const stop = (): void => question.settle(fail(CANCELLED));
		this.signal.addEventListener('abort', stop);
		const outcome = await question.settled(timeoutMs, timeUp);
		this.signal.removeEventListener('abort', stop);
		if (!outcome.ok) return fail(withReceived(outcome.failure, question));
		const { replies, collected, notCollected } = question;
		// The time includes the opening of a connection.
		return ok({ replies, collected, notCollected, elapsedMs: clock.now() - startedMs });
	}

	/**
	 * Closes the connection and waits for the platform to confirm, which proves that everything sent has arrived.
	 * @param isTest whether an operator is watching, who is told of messages that come right after the reply
	 */
	async close(isTest = false): Promise<void> {
		const { clock, peer } = this.bridge;
		if (isTest && this.link?.question) {
			await clock.sleep(LISTEN_AFTER_REPLY_MS, AbortSignal.any([this.link.socket.over, this.signal]));
		}
		const hasSent = this.sentOver.size > 0;
		if (this.link && hasSent) {
			// Once this side closes, the close of a platform that refuses the connection would be taken for the answer to it.
			const { socket, openedAtMs } = this.link;
			const leftMs = openedAtMs + REFUSAL_MS[peer.tokenIn] - clock.now();
			if (leftMs > 0) await clock.sleep(leftMs, AbortSignal.any([socket.over, this.signal]));
		}
		const { link } = this;
		if (!link) return;
		const isAwaited = hasSent && !this.signal.aborted;
		const end = await link.socket.close(undefined, isAwaited ? CLOSE_CONFIRM_MS : undefined);
		if (!NORMAL_CODES.has(end.code)) this.lose(link, end);
	}

	/** @returns why the connection ended */
	private lose(link: Link, end: SocketEnd): Failure {
		const { peer } = this.bridge;
		const failure = explainEnd(end, peer, link.served);
		// Only a platform that refuses the token in the first frame is known to have read no other. One that accepted the
		// handshake may have processed frames before it refused the account.
		const isUnread = peer.tokenIn === 'frame' && link.served !== 'here' && end.code === TOKEN_REFUSED_CODE;
		link.lost = failure.kind === 'credential' && !isUnread ? { ...failure, kind: 'unreachable' } : failure;
		return failure;
	}

	private hear(link: Link, text: string): void {
		const { question, asked } = link;
		if (!question) return;
		const incoming = readIncoming(text, this.bridge.peer.redact);
		if (!incoming.ok) {
			question.addUnreadable(incoming.failure);
			return;
		}
		const frame = incoming.value;
		const { rule } = question;
		const isOwn = belongs(frame, rule);
		const isMessage = rule.filter.accepts(frame);
		if (isOwn) {
			// A frame that repeats no value of the request may be about anything, such as a refusal of the account.
			if (isMessage || rule.id) link.served = 'here';
			question.take(frame, text.length);
		} else if (isMessage && asked.has(nameAt(rule.id?.at, frame))) this.totals.late++;
		else question.others++;
	}

	private async transmit(text: string): Promise<Result<Link>> {
		for (let futile = 0; ;) {
			if (this.signal.aborted) return fail(CANCELLED);
			if (this.fatal) return fail(this.fatal);
			const opened = this.link ? ok(this.link) : await this.connect();
			if (!opened.ok || opened.value.socket.send(text)) return opened;
			// The platform is closing the connection and the frame was not sent, so a new connection may send it.
			const end: SocketEnd = { ...(await opened.value.socket.close()), cause: 'closed' };
			if (this.link === opened.value) this.onEnd(opened.value, end);
			if (++futile >= MAX_FUTILE) this.fatal ??= explainEnd(end, this.bridge.peer);
		}
	}

	private async connect(): Promise<Result<Link>> {
		const { clock } = this.bridge;
		// The SSRF guard has already allowed the first connection.
		const refused = this.hasOpened ? await this.bridge.refusal() : undefined;
		if (refused) return fail((this.fatal = refused));
		let opened = await this.open();
		if (!opened.ok && this.hasOpened) {
			// A platform may refuse for a moment, such as when connections come too fast.
			await clock.sleep(RECONNECT_MS, this.signal);
			opened = await this.open();
		}
		// Later items do not try again: each would wait just as long for the same answer.
		if (!opened.ok) this.fatal = opened.failure;
		return opened;
	}

	private async open(): Promise<Result<Link>> {
		if (this.signal.aborted) return fail(CANCELLED);
		const { promise, resolve } = Promise.withResolvers<SocketEnd | undefined>();
		const socket = this.bridge.open({
			onOpen: () => {
				this.link = link;
				link.openedAtMs = this.bridge.clock.now();
				resolve(undefined);
			},
			onText: (text) => this.hear(link, text),
			onBinary: () => link.question?.addUnreadable('binary, not text'),
			onEnd: (end) => {
				if (this.link === link) this.onEnd(link, end);
				else resolve(end);
			},
		});
		const served = this.hasOpened ? 'before' : 'never';
		const link: Link = { socket, openedAtMs: 0, served, asked: new Set() };
		this.signal.addEventListener('abort', () => void socket.close().then(resolve), { once: true });
		const end = await promise;
		if (end?.cause === 'ours') return fail(CANCELLED);
		if (end) return fail(await whyEnded(end, this.bridge, served));
		this.hasOpened = true;
		return ok(link);
	}

	private onEnd(link: Link, end: SocketEnd): void {
		const failure = this.lose(link, end);
		this.link = undefined;
		if (failure.kind === 'credential') this.fatal = failure;
		const { question } = link;
		// A platform that closes the connection in order has said all that it had to say.
		const isComplete = question && question.replies.length > 0 && NORMAL_CODES.has(end.code);
		question?.settle(isComplete ? ok(undefined) : fail(link.lost ?? failure));
	}

	/** Closes the connection if a late message for an earlier request could be taken for the reply to the next one. */
	private async leaveAlike({ id }: ReplyRule): Promise<void> {
		const { link } = this;
		if (!link?.question || !(id ? link.asked.has(id.value) : link.asked.size > 0)) return;
		await link.question.quiet(AbortSignal.any([link.socket.over, this.signal]));
		if (this.link === link) this.link = undefined;
		await link.socket.close();
	}
}

function timedOut(timeoutMs: number, host: string, question: Question, isLate: boolean): Failure {
	const { replies } = question;
	const time = `within ${timeoutMs / 1000} seconds`;
	if (replies.length > 0) {
		return {
			kind: 'timedOut',
			message: `The reply from ${host} was not complete ${time}: messages kept coming`,
			advice: "Raise 'Timeout (Seconds)', or shorten 'Silence (Milliseconds)'.",
		};
	}
	return {
		kind: 'timedOut',
		message: `No reply arrived from ${host} ${time}`,
		advice: `${whatToCheck(question, isLate)} 'Timeout (Seconds)'.`,
	};
}

function whatToCheck({ collected, others, unreadable }: Question, isLate: boolean): string {
	// The details hold only the frames of the request: the others may be about other people.
	if (collected.length > 0) return "Check 'Reply Events' against the frames in the error's details, or raise";
	if (others > 0) return "Check 'ID in Reply': other frames arrived, or raise";
	if (isLate || unreadable > 0) return 'Raise';
	return "Check in the platform's console that the account is bound to an agent, or raise";
}

/** Adds the received frames, so that the operator sees why none of them was the reply. */
function withReceived(failure: Failure, question: Question): Failure {
	const { replies, collected, notCollected, others, unreadable, firstUnreadable } = question;
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
			...(replies.length > 0 && { replies }),
			otherFrames: others,
			...(notCollected > 0 && { notCollected }),
			...(unreadable > 0 && { unreadableFrames: unreadable }),
		},
	};
}
