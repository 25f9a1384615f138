import type { Clock } from '../../shared/run/clock';
import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject } from '../../shared/text/json';
import type { RetryMemory } from '../../shared/run/retryMemory';
import type { LedgerClaim } from '../../shared/idempotency/claim';
import type { Ledger } from '../../shared/idempotency/ledger';
import type { AgentApi } from '../api/api';
import type { AgentFailure } from '../api/failures';
import { askOnce, type Idempotency } from './askOnce';
import {
	readSavedAnswer,
	savedAnswerOf,
	savedAnswerText,
	type AnswerKeeping,
	type TurnResult,
	type UsedSession,
} from './savedAnswer';
import type { OpenRequest } from '../wire/request';
import type { InterruptLimit } from './interruptLimit';
import type { SessionStore } from '../sessions/sessionStore';
import { textOf } from '../../shared/text/textOf';
import type { TurnCalls } from '../api/callLimit';
import type { SessionUse, TurnOrder, TurnSession } from './turnSession';
import { retryBusySession, type WaitLimit } from './waitLimit';

/** What one item says to its agent. */
export interface AgentTurn extends SessionUse {
	readonly itemIndex: number;
	readonly client: {
		/** The agent's name in sessions and saved answers. */
		readonly agent: string;
		readonly api: Pick<AgentApi, 'invoke'>;
		readonly sessions: SessionStore;
	};
	/** Uploads files and builds the request except for its session; called when the item's turn comes. */
	readonly prepare: () => Promise<Result<OpenRequest>>;
	/** Undefined if the item has no idempotency key. */
	readonly idempotency: Idempotency | undefined;
	readonly fingerprint: string;
	/** Whether the item shows the raw answer, which must then be remembered as well. */
	readonly keepRaw: boolean;
	readonly onDelta: (text: string) => Promise<void>;
	/** Counts and limits the requests. */
	readonly calls: TurnCalls;
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
export interface TurnRun {
	readonly clock: Clock;
	readonly ledger: Ledger | undefined;
	readonly memory: RetryMemory;
	readonly interruptLimit: InterruptLimit;
	/** A number in [0, 1). */
	readonly random: () => number;
	/** Aborted when the execution is stopped. */
	readonly signal: AbortSignal;
}

/** The turn of one item. It is skipped if an earlier try or another execution has already taken it. */
export class ItemTurn {
	private readonly agent: string;

	constructor(
		private readonly turn: AgentTurn,
		private readonly session: TurnSession,
		private readonly settings: CallSettings,
		private readonly run: TurnRun,
		private readonly waitLimit: WaitLimit,
	) {
		this.agent = turn.client.agent;
	}

	async take(): Promise<Result<TurnResult>> {
		const { session, waitLimit } = this;
		try {
			const stop = waitLimit.whyStop();
			if (stop) return fail(stop);
			const known = await this.recall();
			if (known) return known;
			const begun = await this.begin();
			return begun.ok ? await this.askAtMostOnce() : begun;
		} finally {
			await session.end(waitLimit.signal.aborted);
		}
	}

	private async begin(): Promise<Result<undefined>> {
		const { agent, session, run, waitLimit } = this;
		const tooMany = this.turn.isResume
			? run.interruptLimit.whyNoMore({ agent, sessionId: session.id })
			: undefined;
		return tooMany ? fail(tooMany) : await session.begin(waitLimit);
	}

	private async askAtMostOnce(): Promise<Result<TurnResult>> {
		const { agent, session } = this;
		const { idempotency } = this.turn;
		const { ledger, clock } = this.run;
		if (!ledger || !idempotency) return await this.ask();
		const asking = { agent, ledger, clock, waitLimit: this.waitLimit.again() };
		const once = await askOnce(idempotency, asking, async (claim) => await this.ask(claim));
		if (once.ok && once.value.replayed) await session.restore(once.value.session.id);
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
		if (outcome.agent === this.agent) await this.session.restore(result.session.id);
		return ok({ ...result, recalled: true });
	}

	private async ask(claim?: LedgerClaim): Promise<Result<TurnResult>> {
		// Prepared only now, so that files are uploaded only if the agent is really asked.
		const open = await this.turn.prepare();
		if (!open.ok) {
			claim?.released();
			return open;
		}
		const startedMs = this.run.clock.now();
		let called = await this.call(open.value, this.session.id, this.session.source);
		if (!called.ok && this.mayRenew(called.failure)) {
			const { calls } = this.turn;
			const isFree = calls.mayRepeat();
			called = isFree ? await this.callRenewed(open.value) : fail(calls.failed(called.failure));
		}
		if (called.ok) {
			const elapsedMs = this.run.clock.now() - startedMs;
			const { made: attempts } = this.turn.calls;
			return ok(this.answered({ ...called.value, attempts, elapsedMs, replayed: false }, claim));
		}
		this.failed(called.failure, claim);
		return called;
	}

	private mayRenew({ isSessionUnknown }: AgentFailure): boolean {
		const isWanted = this.settings.renewExpired && !this.turn.isResume;
		return isSessionUnknown === true && isWanted && !this.run.signal.aborted;
	}

	/** Continues in the session that another execution renewed, or else in a new one. */
	private async callRenewed(open: OpenRequest): ReturnType<ItemTurn['call']> {
		const renewed = await this.session.renew(this.waitLimit.again());
		if (!renewed.ok) return renewed;
		return await this.call(open, renewed.value, renewed.value ? 'mapped' : 'renewed');
	}

	private async call(
		open: OpenRequest,
		sessionId: string,
		source: UsedSession['source'],
	): Promise<Result<Pick<TurnResult, 'reply' | 'session'>, AgentFailure>> {
		const { client, onDelta } = this.turn;
		const { timeoutMs, attempts, retryAmbiguous } = this.settings;
		const invoke = async (): ReturnType<AgentApi['invoke']> =>
			await client.api.invoke({
				request: open(sessionId),
				sessionId,
				timeoutMs,
				tries: attempts,
				retryAmbiguous,
				onDelta,
				onSession: (id) => this.session.opened(id, sessionId),
				calls: this.turn.calls,
			});
		const { clock, random } = this.run;
		const invoked = await retryBusySession(invoke, this.turn.calls, this.waitLimit, clock, random);
		if (!invoked.ok) return invoked;
		const { value: reply } = invoked;
		return ok({ reply, session: { key: this.session.key, id: reply.sessionId || sessionId, source } });
	}

	/** The only place that reports a successful turn: to claim, session, interrupt limit and memory. */
	private answered(result: TurnResult, claim: LedgerClaim | undefined): TurnResult {
		const { agent } = this;
		const { memory, interruptLimit } = this.run;
		const { itemIndex, fingerprint, isResume, keepRaw } = this.turn;
		const saved = savedAnswerText({ ...result, elapsedMs: 0 }, agent, this.settings.idempotencyAnswers);
		claim?.ended('succeeded', saved);
		const answered = { agent, sessionId: result.session.id };
		this.session.used(answered.sessionId);
		if (!isResume) interruptLimit.begin(answered);
		const asked = isResume ? { agent, sessionId: this.session.id } : answered;
		if (result.reply.interrupts.length > 0) interruptLimit.interrupted(answered, asked);
		memory.keep(itemIndex, fingerprint, { outcome: savedAnswerOf(result, agent, keepRaw) });
		return result;
	}

	/** The only place that reports a failed call. The agent may be asked again only if it cannot have run. */
	private failed({ message, details }: AgentFailure, claim: LedgerClaim | undefined): void {
		if (details?.mayHaveRun !== true && !this.turn.calls.wasUnclear) {
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
			'An earlier try asked the agent for this item without getting a usable answer, so it may have run',
		advice: `It was not asked again. Check the session on the platform, or turn on "Retry Ambiguous Failures" under "Cost and Speed" if asking twice does no harm.${said ? ` The earlier try said: ${said}` : ''}`,
		details: { mayHaveRun: true },
	};
}
