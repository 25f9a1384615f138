import pLimit from 'p-limit';

import { fail, ok, type Result } from '../../shared/errors/failure';
import { due, type EffectMemory, type Ticket } from '../../shared/effects/due';
import type { Ledger } from '../../shared/effects/ledger';
import type { Clock } from '../../shared/time/clock';
import type { Slot } from '../../shared/time/keyedQueue';
import type { RetryMemory } from '../../shared/run/retryMemory';
import { excerpt, isJsonObject } from '../../shared/text/json';
import { sha256 } from '../../shared/text/sha256';
import type { AgentApi } from '../api/api';
import { TurnCalls, type CallLimit } from '../api/callLimit';
import { explainSharedSession, type AgentFailure } from '../api/failures';
import type { SessionStore } from '../sessions/sessionStore';
import type { OpenRequest } from '../wire/request';
import type { InterruptLimit } from './interruptLimit';
import {
	recalledFrom,
	replayed,
	savedAnswerOf,
	savedAnswerText,
	WORDS_OF_KEY,
	type AnswerKeeping,
	type TurnResult,
	type UsedSession,
} from './savedAnswer';
import { WaitLimit } from './waitLimit';

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

/**
 * - `arrival`: the turns of a key in one n8n process run in the order they arrived
 * - `strict`: the turns of a key in all processes exclude each other, and who has waited longest goes first
 */
type TurnOrder = 'arrival' | 'strict';

export interface AgentTurn {
	readonly itemIndex: number;
	readonly client: {
		/** The agent's name in sessions and saved answers. */
		readonly agent: string;
		readonly api: Pick<AgentApi, 'invoke'>;
		readonly sessions: SessionStore;
	};
	readonly session: SessionChoice;
	/** The turn's slot in the process's queue for this session; without a slot, the turn does not wait. */
	readonly slot?: Slot | undefined;
	/** When the message came, by the clock's `now()`. */
	readonly sinceMs: number;
	/** Whether the turn answers an interrupt, in a session that may belong to a key. */
	readonly isResume: boolean;
	/** Undefined if the option is not set. */
	readonly idempotencyKey: string | undefined;
	readonly fingerprint: string;
	/** Whether the item does without the raw answer, which then need not be remembered. */
	readonly simplify: boolean;
}

export interface TurnOutcome<T extends AgentTurn = AgentTurn> {
	readonly turn: T;
	readonly calls: TurnCalls;
	readonly result: Result<TurnResult>;
}

export interface TurnSettings {
	readonly concurrency: number;
	/** How many calls are allowed in total; 0 = no limit. */
	readonly maxInvocations: number;
	readonly timeoutMs: number;
	readonly attempts: number;
	readonly sendAgain: boolean;
	readonly renewExpired: boolean;
	readonly turnOrder: TurnOrder;
	readonly idempotencyAnswers: AnswerKeeping;
	/** Whether no further turn begins after a failure. */
	readonly stopAtFailure: boolean;
}

/** What all turns of a run share. */
interface TurnRun<T extends AgentTurn> extends TurnEffects<T> {
	readonly clock: Clock;
	readonly ledger: Ledger | undefined;
	readonly memory: RetryMemory;
	readonly interruptLimit: InterruptLimit;
	/** Returns a number in [0, 1). */
	readonly random: () => number;
	/** Aborted when the execution is stopped. */
	readonly signal: AbortSignal;
}

export interface TurnEffects<T extends AgentTurn> {
	/** Everything that a turn's idempotency key stands for, with files as digests. */
	readonly payloadOf: (turn: T) => Promise<Result<string>>;
	/** Asks the limit per day and the turn log right before anything is sent; left out if turns are not recorded. */
	readonly admit?: ((turn: T) => Promise<Result<undefined>>) | undefined;
	/** Uploads files and builds the request except for its session; called when the turn comes. */
	readonly prepare: (turn: T) => Promise<Result<OpenRequest>>;
	readonly onDelta: (turn: T, text: string) => Promise<void>;
	/** Called with each outcome as soon as it is known, before a turn that waited for the permit is prepared. */
	readonly received: (outcome: TurnOutcome<T>) => Promise<void>;
}

/**
 * Takes the turns of all items. A session is one conversation, so its turns follow each other in order; different
 * sessions run at the same time. When a failure ends the run, calls under way are still awaited, so that their answers
 * are not lost.
 */
export async function runTurns<T extends AgentTurn>(
	turns: readonly T[],
	settings: TurnSettings,
	run: TurnRun<T>,
): Promise<Array<TurnOutcome<T>>> {
	const { clock, signal } = run;
	const permits = pLimit(settings.concurrency);
	const callLimit: CallLimit = { most: settings.maxInvocations, taken: turns.length };
	const ending = new AbortController();
	const isStrict = settings.turnOrder === 'strict';
	const takeNow = async (turn: T, isLast: boolean, pause: () => void): Promise<TurnOutcome<T>> => {
		const calls = new TurnCalls(callLimit, clock);
		const waitLimit = new WaitLimit(clock, settings.timeoutMs, signal, ending.signal, pause);
		const result = await new ItemTurn(turn, calls, settings, run, waitLimit, isLast).take();
		calls.ended();
		// Aborted while this turn still holds its permit; otherwise the next turn in the queue would start.
		if (!result.ok && settings.stopAtFailure) ending.abort();
		const outcome = { turn, calls, result };
		// Reported while this turn still holds its permit, so that a limit counts it before it admits the next one.
		await run.received(outcome);
		return outcome;
	};
	const take = async (turn: T, isLast: boolean): Promise<TurnOutcome<T>> => {
		// A turn that must wait for another gives its permit up for good, and only the rate limiter bounds its call. So no
		// turn waits for a permit while it holds a session that another turn waits for.
		const paused = Promise.withResolvers<undefined>();
		const { taken } = await permits(async () => {
			const taken = takeNow(turn, isLast, () => paused.resolve(undefined));
			await Promise.race([taken, paused.promise]);
			return { taken };
		});
		return await taken;
	};
	const takeAll = async (conversation: readonly T[]): Promise<Array<TurnOutcome<T>>> => {
		const outcomes: Array<TurnOutcome<T>> = [];
		const last = conversation.at(-1);
		// Ahead of messages that reach other processes later; the last turn gives the place up.
		const waits = last?.slot?.isFirst === false;
		if (isStrict && waits && last.session.kind === 'mapped')
			last.client.sessions.queueUp(last.session.key, last.sinceMs);
		for (const turn of conversation) {
			outcomes.push(await take(turn, turn === last));
		}
		return outcomes;
	};
	const conversations = [...Map.groupBy(turns, conversationOf).values()];
	const outcomes = await Promise.all(conversations.map(takeAll));
	return outcomes.flat().sort((a, b) => a.turn.itemIndex - b.turn.itemIndex);
}

/** Identifies a conversation; a turn in a new session is a conversation of its own. */
function conversationOf(turn: AgentTurn): unknown {
	const { session, client } = turn;
	if (session.kind === 'new') return turn;
	return JSON.stringify([client.agent, session.kind, session.kind === 'mapped' ? session.key : session.id]);
}

/** The turn of one item. It is skipped if an earlier try or another execution has already taken it. */
class ItemTurn<T extends AgentTurn> {
	private readonly agent: string;
	private readonly sessions: SessionStore;
	/** Empty if the session is not mapped. */
	private readonly key: string;
	/** Whether all claims of this turn are fresh. */
	private maySend = (): boolean => true;

	/** @param isLast whether no later turn of the run has the same session */
	constructor(
		private readonly turn: T,
		private readonly calls: TurnCalls,
		private readonly settings: TurnSettings,
		private readonly run: TurnRun<T>,
		private readonly waitLimit: WaitLimit,
		private readonly isLast: boolean,
	) {
		this.agent = turn.client.agent;
		this.sessions = turn.client.sessions;
		this.key = turn.session.kind === 'mapped' ? turn.session.key : '';
	}

	async take(): Promise<Result<TurnResult>> {
		try {
			const stop = this.waitLimit.whyStop();
			if (stop) return fail(stop);
			const known = await this.recall();
			if (known) return known;
			const begun = await this.begin();
			return begun.ok ? await this.askAtMostOnce() : begun;
		} finally {
			await this.end();
		}
	}

	/** Empty if the call should open a new session. */
	private get sessionId(): string {
		const { session } = this.turn;
		if (session.kind === 'explicit') return session.id;
		return this.key && this.sessions.find(this.key);
	}

	/**
	 * Waits for the turn's slot, then for the key's session or the right to open one. The order is always this, so no two
	 * turns wait for each other.
	 */
	private async begin(): Promise<Result<undefined>> {
		const { sessions, key, waitLimit } = this;
		const { slot } = this.turn;
		const { clock } = this.run;
		if (slot && !slot.isFirst) {
			waitLimit.pause();
			await slot.wait(waitLimit.untilMs - clock.now(), clock, waitLimit.signal);
		}
		const stop = waitLimit.whyStop();
		if (stop) return fail(stop);
		if (!key) return ok(undefined);
		const obtained = await sessions.obtain(key, waitLimit, {
			sinceMs: this.settings.turnOrder === 'strict' ? this.turn.sinceMs : undefined,
			isOld: slot?.isBehindOthers === true,
		});
		if (!obtained.ok) return obtained;
		// From here on, the claim keeps later messages waiting.
		if (this.isLast) sessions.leaveQueue(key);
		// The run may have ended during the wait.
		const late = waitLimit.whyStop();
		return late ? fail(late) : ok(undefined);
	}

	private async end(): Promise<void> {
		const { sessions, key } = this;
		const { slot } = this.turn;
		if (this.isLast && key) sessions.leaveQueue(key);
		const released = key ? sessions.release(key, slot?.isWanted === true) : undefined;
		// A run that was stopped or ended by a failure does not wait for the table.
		if (!this.waitLimit.signal.aborted) await released;
		slot?.leave();
	}

	/** Asks the agent at most once per idempotency key; other executions get the saved answer. */
	private async askAtMostOnce(): Promise<Result<TurnResult>> {
		const { turn, agent } = this;
		const { ledger, payloadOf } = this.run;
		const key = ledger && turn.idempotencyKey;
		const waitLimit = this.waitLimit.again();
		const payload = key === undefined ? ok('') : await payloadOf(turn);
		if (!payload.ok) return payload;
		const entry =
			key === undefined
				? undefined
				: { key, payloadHash: sha256(payload.value), whyStop: () => waitLimit.whyStop() };
		const asked = await due(ledger, {
			entry,
			admit: async () => await this.admit(),
			memory: this.memory,
			words: WORDS_OF_KEY,
		});
		if (!asked.ok) return asked;
		if (asked.value.kind === 'go') return await this.ask(asked.value.ticket);
		const saved = replayed(key ?? '', asked.value.known, agent);
		if (saved.ok) await this.restore(saved.value.session.id);
		return saved;
	}

	private async admit(): Promise<Result<undefined>> {
		const { turn, agent, sessionId } = this;
		const { interruptLimit, admit } = this.run;
		const tooMany = turn.isResume ? interruptLimit.whyNoMore({ agent, sessionId }) : undefined;
		if (tooMany) return fail(tooMany);
		return (await admit?.(turn)) ?? ok(undefined);
	}

	private get memory(): EffectMemory {
		const { itemIndex, fingerprint } = this.turn;
		const keep = (entry: object): void => this.run.memory.keep(itemIndex, fingerprint, entry);
		return {
			unclear: (said = '') => keep({ unclear: excerpt(said, 300) }),
			done: (_, outcome) => keep({ outcome }),
		};
	}

	/** What an earlier try of this node run kept; undefined if the agent should be asked. */
	private async recall(): Promise<Result<TurnResult> | undefined> {
		const kept = this.run.memory.recall(this.turn.itemIndex, this.turn.fingerprint);
		const known = recalledFrom(kept, this.settings.sendAgain);
		// The agent is not asked twice, even if the credential was changed in between.
		const isOwn = isJsonObject(kept?.outcome) && kept.outcome.agent === this.agent;
		if (known?.ok && isOwn) await this.restore(known.value.session.id);
		return known;
	}

	/** Takes over a saved answer's session, which the table may lack if the try that asked ended early. */
	private async restore(id: string): Promise<void> {
		const { sessions, key } = this;
		if (!id || !key || this.sessionId) return;
		// In strict order, nothing has been read for a key before its turn comes.
		if (this.settings.turnOrder === 'strict') await sessions.load([key]);
		if (!this.sessionId) sessions.opened(key, id);
	}

	private async ask(ticket: Ticket): Promise<Result<TurnResult>> {
		// Prepared only now, so that files are uploaded only if the agent is really asked.
		const open = await this.run.prepare(this.turn);
		if (!open.ok) {
			ticket.refused();
			return open;
		}
		const { calls } = this;
		const { session } = this.turn;
		const startedMs = this.run.clock.now();
		const { sessionId } = this;
		this.maySend = () => ticket.maySend() && (!this.key || this.sessions.maySend(this.key));
		let called = await this.call(open.value, sessionId, sessionId ? session.kind : 'new');
		if (!called.ok && this.mayRenew(called.failure) && calls.mayRepeat()) {
			called = await this.callRenewed(open.value);
		}
		if (!called.ok) {
			this.failed(called.failure, ticket);
			return fail(calls.failed(called.failure));
		}
		const elapsedMs = this.run.clock.now() - startedMs;
		return ok(this.answered({ ...called.value, attempts: calls.made, elapsedMs, replayed: false }, ticket));
	}

	private mayRenew({ isSessionUnknown }: AgentFailure): boolean {
		const isWanted = this.settings.renewExpired && !this.turn.isResume;
		return isSessionUnknown === true && isWanted && !this.run.signal.aborted;
	}

	/** Continues in the session that another execution renewed, or else in a new one. */
	private async callRenewed(open: OpenRequest): ReturnType<ItemTurn<T>['call']> {
		const { sessions, key, sessionId: voidId } = this;
		const renewed = key ? await sessions.obtain(key, this.waitLimit.again(), { voidId }) : ok('');
		if (!renewed.ok) return renewed;
		return await this.call(open, renewed.value, renewed.value ? 'mapped' : 'renewed');
	}

	private async call(
		open: OpenRequest,
		sessionId: string,
		source: UsedSession['source'],
	): Promise<Result<Pick<TurnResult, 'reply' | 'session'>, AgentFailure>> {
		const { sessions, key, calls, turn } = this;
		const { timeoutMs, attempts, sendAgain } = this.settings;
		let isOfAnother = false;
		const invoke = async (): ReturnType<AgentApi['invoke']> =>
			await turn.client.api.invoke({
				request: open,
				sessionId,
				timeoutMs,
				tries: attempts,
				sendAgain,
				maySend: this.maySend,
				onDelta: async (text) => {
					// The words of another person's conversation must not appear in this one's chat.
					if (!isOfAnother) await this.run.onDelta(turn, text);
				},
				onSession: (id) => {
					isOfAnother = key !== '' && !sessions.opened(key, id, sessionId);
				},
				calls,
			});
		const invoked = await this.waitLimit.retryWhileBusy(invoke, () => calls.mayRepeat(), this.run.random);
		if (!invoked.ok) return invoked;
		const { value: reply } = invoked;
		if (key && sessions.isOfAnother(key, reply.sessionId)) return fail(explainSharedSession(reply));
		return ok({ reply, session: { key, id: reply.sessionId || sessionId, source } });
	}

	/** Tells the ticket, the session and the interrupt limit of a successful turn. */
	private answered(result: TurnResult, ticket: Ticket): TurnResult {
		const { agent, sessions, key } = this;
		const { interruptLimit } = this.run;
		const { isResume, simplify } = this.turn;
		const saved = savedAnswerText({ ...result, elapsedMs: 0 }, agent, this.settings.idempotencyAnswers);
		ticket.done('succeeded', saved, savedAnswerOf(result, agent, !simplify));
		const answered = { agent, sessionId: result.session.id };
		if (key) sessions.used(key, answered.sessionId);
		else if (isResume) sessions.resumedById(this.sessionId, answered.sessionId);
		if (!isResume) interruptLimit.begin(answered);
		const asked = isResume ? { agent, sessionId: this.sessionId } : answered;
		if (result.reply.interrupts.length > 0) interruptLimit.interrupted(answered, asked);
		return result;
	}

	/** Tells the ticket of a failed call. The agent may be asked again only if it cannot have run. */
	private failed({ message, details }: AgentFailure, ticket: Ticket): void {
		if (details?.mayHaveRun !== true && !this.calls.wasUnclear) ticket.refused();
		else ticket.unclear(message);
	}
}
