import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { within, type Clock } from '../../shared/time/clock';
import type { Frame, ReplyRule } from '../frames';

/** The most frames kept per request, so that a chatty platform cannot fill the memory. */
const MAX_COLLECTED = 200;
/** The most characters that a session keeps for all its requests, because they are kept until the run ends. */
const MAX_COLLECTED_CHARS = 32_000_000;

/** What the requests of a session share. */
interface SessionTotals {
	/** The characters of the frames that are kept. */
	chars: number;
	/** How many messages came for requests that were over. */
	late: number;
}

/**
 * A request that was sent, and the frames that belong to it. It is over once its reply is complete or no longer waited
 * for: `settled` has resolved then, and what comes later is no part of it.
 */
export class Question {
	/** The messages of the reply: one, unless the rule waits for silence. */
	readonly replies: Frame[] = [];
	/** The other frames that belong to the request. */
	readonly collected: Frame[] = [];
	/** How many frames belonged to the request, but were not kept, because of a limit. */
	notCollected = 0;
	/** How many frames did not belong to the request. */
	others = 0;
	unreadable = 0;
	/** What is wrong with the first unreadable frame: words that complete the phrase "a frame that is". */
	firstUnreadable = '';

	private readonly outcome = Promise.withResolvers<Result<undefined>>();
	private readonly ending = new AbortController();
	private heardAtMs = 0;
	/** Until when a message may come for a question that is over without one. */
	private awaitedUntilMs = 0;

	constructor(
		readonly rule: ReplyRule,
		private readonly clock: Clock,
		private readonly totals: SessionTotals,
	) {}

	get isOver(): boolean {
		return this.ending.signal.aborted;
	}

	settle(outcome: Result<undefined>): void {
		this.outcome.resolve(outcome);
		this.ending.abort();
	}

	/** Waits until the question is over. @param late the failure if that takes longer than `ms` */
	async settled(ms: number, late: () => Failure): Promise<Result<undefined>> {
		const outcome = (await within(this.clock, ms, this.outcome.promise, undefined)) ?? fail(late());
		this.settle(outcome);
		if (this.replies.length === 0) this.awaitedUntilMs = this.clock.now() + ms;
		return outcome;
	}

	/**
	 * Waits until no further message is to be expected, because some platforms send to the newest connection of a user,
	 * whichever of them asked: until silence, and for a reply that did not come in time, as long again.
	 */
	async quiet(signal: AbortSignal): Promise<void> {
		const { silenceMs } = this.rule;
		while (silenceMs > 0 && !signal.aborted) {
			const leftMs = Math.max(this.heardAtMs + silenceMs, this.awaitedUntilMs) - this.clock.now();
			if (leftMs <= 0) return;
			await this.clock.sleep(Math.min(leftMs, silenceMs), signal);
		}
	}

	/** Takes a frame that belongs to the request; after the end, it is only counted. */
	take(frame: Frame, chars: number): void {
		const { replies, collected, rule, totals } = this;
		this.heardAtMs = this.clock.now();
		const isMessage = rule.filter.accepts(frame);
		if (this.isOver) {
			if (isMessage) [this.awaitedUntilMs, totals.late] = [0, totals.late + 1];
			return;
		}
		// The first message is the answer, so no limit applies to it.
		if (!isMessage || replies.length > 0) {
			if (replies.length + collected.length >= MAX_COLLECTED || totals.chars + chars > MAX_COLLECTED_CHARS) {
				this.notCollected++;
				return;
			}
			totals.chars += chars;
		}
		(isMessage ? replies : collected).push(frame);
		if (!isMessage) return;
		if (rule.isOneMessage) this.settle(ok(undefined));
		else if (replies.length === 1) void this.watchSilence();
	}

	addUnreadable(what: string): void {
		if (this.unreadable++ === 0) this.firstUnreadable = what;
	}

	private async watchSilence(): Promise<void> {
		while (!this.isOver) {
			const leftMs = this.heardAtMs + this.rule.silenceMs - this.clock.now();
			if (leftMs <= 0) this.settle(ok(undefined));
			else await this.clock.sleep(leftMs, this.ending.signal);
		}
	}
}
