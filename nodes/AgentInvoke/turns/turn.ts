import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { LedgerClaim } from '../../shared/idempotency/claim';
import type { Ledger } from '../../shared/idempotency/ledger';
import type { Clock } from '../../shared/run/clock';
import type { Slot } from '../../shared/run/keyedQueue';
import type { RetryMemory } from '../../shared/run/retryMemory';
import { excerpt, isJsonObject } from '../../shared/text/json';
import { sha256 } from '../../shared/text/sha256';
import { textOf } from '../../shared/text/textOf';
import type { AgentApi } from '../api/api';
import type { TurnCalls } from '../api/callLimit';
import type { AgentFailure } from '../api/failures';
import type { SessionStore } from '../sessions/sessionStore';
import type { OpenRequest } from '../wire/request';
import { askOnce } from './askOnce';
import type { InterruptLimit } from './interruptLimit';
import {
	readSavedAnswer,
	savedAnswerOf,
	savedAnswerText,
	type AnswerKeeping,
	type TurnResult,
	type UsedSession,
} from './savedAnswer';
import type { WaitLimit } from './waitLimit';

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

/**
 * - `arrival`: the turns of a key in one n8n process run in the order they arrived
 * - `strict`: the turns of a key in all processes run in the order of the table's queue
 */
export type TurnOrder = 'arrival' | 'strict';

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

export interface CallSettings {
	readonly timeoutMs: number;
	readonly attempts: number;
	readonly retryAmbiguous: boolean;
	readonly renewExpired: boolean;
	readonly turnOrder: TurnOrder;
	readonly idempotencyAnswers: AnswerKeeping;
}

/** What all turns of a run share. */
export interface TurnRun<T extends AgentTurn = AgentTurn> {
	readonly clock: Clock;
	readonly ledger: Ledger | undefined;
	readonly memory: RetryMemory;
	readonly interruptLimit: InterruptLimit;
	/** Returns a number in [0, 1). */
	readonly random: () => number;
	/** Aborted when the execution is stopped. */
	readonly signal: AbortSignal;
	/** Everything that a turn's idempotency key stands for, with files as digests. */
	readonly payloadOf: (turn: T) => Promise<Result<string>>;
	/** Checks the budget, uploads files and builds the request except for its session; called when the turn comes. */
	readonly prepare: (turn: T) => Promise<Result<OpenRequest>>;
	readonly onDelta: (turn: T, text: string) => Promise<void>;
	/** Called with each outcome as soon as it is known. */
	readonly received: (outcome: TurnOutcome<T>) => Promise<void>;
}

/** The turn of one item. It is skipped if an earlier try or another execution has already taken it. */
export class ItemTurn<T extends AgentTurn> {
	private readonly agent: string;
	private readonly sessions: SessionStore;
	/** Empty if the session is not mapped. */
	private readonly key: string;

	/** @param isLast whether no later turn of the run has the same session */
	constructor(
		private readonly turn: T,
		private readonly calls: TurnCalls,
		private readonly settings: CallSettings,
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
		const { agent, sessions, key, waitLimit } = this;
		const { slot, isResume } = this.turn;
		const { interruptLimit, clock } = this.run;
		const tooMany = isResume ? interruptLimit.whyNoMore({ agent, sessionId: this.sessionId }) : undefined;
		if (tooMany) return fail(tooMany);
		if (slot && !slot.isFirst) {
			waitLimit.pause();
			await slot.wait(waitLimit.untilMs - clock.now(), clock, waitLimit.signal);
		}
		const stop = waitLimit.whyStop();
		if (stop) return fail(stop);
		if (!key) return ok(undefined);
		const obtained = await sessions.obtain(key, waitLimit, {
			isStrict: this.settings.turnOrder === 'strict',
			isOld: slot?.isBehindOthers === true,
		});
		if (!obtained.ok) return obtained;
		// From here on, the key's held row keeps later messages waiting.
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

	private async askAtMostOnce(): Promise<Result<TurnResult>> {
		const { agent } = this;
		const { idempotencyKey: key } = this.turn;
		const { ledger, clock, payloadOf } = this.run;
		if (!ledger || key === undefined) return await this.ask();
		const waitLimit = this.waitLimit.again();
		const payload = await payloadOf(this.turn);
		if (!payload.ok) return payload;
		const entry = { key, payloadHash: sha256(payload.value), whyStop: () => waitLimit.whyStop() };
		const once = await askOnce(entry, { agent, ledger, clock }, async (claim) => await this.ask(claim));
		if (once.ok && once.value.replayed) await this.restore(once.value.session.id);
		return once;
	}

	/** The result of an earlier try of this node run; undefined if the agent should be asked. */
	private async recall(): Promise<Result<TurnResult> | undefined> {
		const known = this.run.memory.recall(this.turn.itemIndex, this.turn.fingerprint);
		const { outcome, unclear } = known ?? {};
		if (!isJsonObject(outcome)) {
			if (unclear === undefined || this.settings.retryAmbiguous) return undefined;
			return fail(stillUnclear(textOf(unclear)));
		}
		const result = readSavedAnswer(outcome);
		if (!result) return undefined;
		// The agent is not asked twice, even if the credential was changed in between.
		if (outcome.agent === this.agent) await this.restore(result.session.id);
		return ok({ ...result, recalled: true });
	}

	/** Takes over a saved answer's session, which the table may lack if the try that asked ended early. */
	private async restore(id: string): Promise<void> {
		const { sessions, key } = this;
		if (!id || !key || this.sessionId) return;
		// In strict order, nothing has been read for a key before its turn comes.
		if (this.settings.turnOrder === 'strict') await sessions.load([key]);
		if (!this.sessionId) sessions.opened(key, id);
	}

	private async ask(claim?: LedgerClaim): Promise<Result<TurnResult>> {
		// Prepared only now, so that files are uploaded only if the agent is really asked.
		const open = await this.run.prepare(this.turn);
		if (!open.ok) {
			claim?.released();
			return open;
		}
		const { calls } = this;
		const { session } = this.turn;
		const startedMs = this.run.clock.now();
		const { sessionId } = this;
		let called = await this.call(open.value, sessionId, sessionId ? session.kind : 'new');
		if (!called.ok && this.mayRenew(called.failure) && calls.mayRepeat()) {
			called = await this.callRenewed(open.value);
		}
		if (!called.ok) {
			this.failed(called.failure, claim);
			return fail(calls.failed(called.failure));
		}
		const elapsedMs = this.run.clock.now() - startedMs;
		return ok(this.answered({ ...called.value, attempts: calls.made, elapsedMs, replayed: false }, claim));
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
		const { timeoutMs, attempts, retryAmbiguous } = this.settings;
		const invoke = async (): ReturnType<AgentApi['invoke']> =>
			await turn.client.api.invoke({
				request: open(sessionId),
				sessionId,
				timeoutMs,
				tries: attempts,
				retryAmbiguous,
				onDelta: async (text) => await this.run.onDelta(turn, text),
				onSession: (id) => {
					if (key) sessions.opened(key, id, sessionId);
				},
				calls,
			});
		const invoked = await this.waitLimit.retryWhileBusy(invoke, () => calls.mayRepeat(), this.run.random);
		if (!invoked.ok) return invoked;
		const { value: reply } = invoked;
		return ok({ reply, session: { key, id: reply.sessionId || sessionId, source } });
	}

	/** The only place that reports a successful turn: to the claim, session, interrupt limit and memory. */
	private answered(result: TurnResult, claim: LedgerClaim | undefined): TurnResult {
		const { agent, sessions, key } = this;
		const { memory, interruptLimit } = this.run;
		const { itemIndex, fingerprint, isResume, simplify } = this.turn;
		const saved = savedAnswerText({ ...result, elapsedMs: 0 }, agent, this.settings.idempotencyAnswers);
		claim?.ended('succeeded', saved);
		const answered = { agent, sessionId: result.session.id };
		if (key) sessions.used(key, answered.sessionId);
		else if (isResume) sessions.resumedById(this.sessionId, answered.sessionId);
		if (!isResume) interruptLimit.begin(answered);
		const asked = isResume ? { agent, sessionId: this.sessionId } : answered;
		if (result.reply.interrupts.length > 0) interruptLimit.interrupted(answered, asked);
		memory.keep(itemIndex, fingerprint, { outcome: savedAnswerOf(result, agent, !simplify) });
		return result;
	}

	/** The only place that reports a failed call. The agent may be asked again only if it cannot have run. */
	private failed({ message, details }: AgentFailure, claim: LedgerClaim | undefined): void {
		if (details?.mayHaveRun !== true && !this.calls.wasUnclear) {
			claim?.released();
			return;
		}
		this.run.memory.keep(this.turn.itemIndex, this.turn.fingerprint, {
			unclear: excerpt(message, 300),
		});
		claim?.unanswered();
	}
}

function stillUnclear(said: string): Failure {
	return {
		kind: 'unclear',
		message:
			'An earlier try called the agent for this item and got no usable answer, so the agent may have run',
		advice: `It was not asked again. Check the session on the platform, or turn on "Retry Ambiguous Failures" under "Cost and Speed" if asking twice does no harm.${said ? ` The earlier try said: ${said}` : ''}`,
		details: { mayHaveRun: true },
	};
}
