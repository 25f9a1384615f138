import { createHash } from 'crypto';

import pLimit from 'p-limit';

import type { Clock } from '../shared/run/clock';
import { badInput, fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, type JsonObject } from '../shared/text/json';
import type { Ledger, LedgerAnswer } from '../shared/idempotency/ledger';
import type { LedgerClaim } from '../shared/idempotency/claim';
import type { AgentApi } from './api';
import type { AgentFailure } from './failures';
import type { AgentMemory } from './memory';
import {
	isOfAnother,
	readRecord,
	recordOf,
	shortRecord,
	withoutRaw,
	type TurnResult,
	type UsedSession,
} from './record';
import type { InterruptRounds } from './rounds';
import type { SessionStore } from './sessions';

/** The agent that an item's turn is with. */
export interface TurnLine {
	/** Which agent it is, as the sessions have it. */
	readonly agent: string;
	readonly api: Pick<AgentApi, 'invoke'>;
	readonly sessions: SessionStore | undefined;
}

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

export interface Idempotency {
	readonly key: string;
	/** All that is going to be sent, bytes by their digests; asked for when the item's turn comes. */
	readonly payload: () => Promise<Result<string>>;
}

export interface AgentTurn {
	readonly itemIndex: number;
	readonly line: TurnLine;
	readonly session: SessionChoice;
	/** Answers an interrupt, so that it counts as a round of the same step. */
	readonly isResume: boolean;
	/** Puts the body together, files uploaded; called when the item's turn comes. */
	readonly prepare: () => Promise<Result<JsonObject>>;
	/** The body with a session in it. */
	readonly bodyFor: (body: JsonObject, sessionId: string) => JsonObject;
	/** Left out where the item has no idempotency key. */
	readonly idempotency: Idempotency | undefined;
	readonly fingerprint: string;
	/** The item shows the answer as it came, so that is remembered as well. */
	readonly keepRaw: boolean;
	readonly onDelta: (text: string) => Promise<void>;
}

export interface TurnOutcome {
	readonly itemIndex: number;
	readonly result: Result<TurnResult>;
}

export interface TurnSettings {
	readonly concurrency: number;
	readonly timeoutMs: number;
	readonly attempts: number;
	readonly retryAmbiguous: boolean;
	readonly renewExpired: boolean;
	/** After a failure no further turn begins. */
	readonly stopAtFailure: boolean;
}

export interface TurnParts {
	readonly clock: Clock;
	readonly ledger: Ledger | undefined;
	readonly memory: AgentMemory;
	readonly rounds: InterruptRounds;
	readonly signal: AbortSignal;
	/** Told of each outcome as it comes. */
	readonly received: (outcome: TurnOutcome) => Promise<void>;
}

/** A claim counts as alive for some minutes without a word from its owner; an agent may take longer. */
const RENEW_CLAIM_MS = 60_000;

/**
 * Takes the turns of all items: those of one session one after the other and in their order, because a session is
 * one conversation; those of different sessions beside each other. What runs when a failure ends the run is
 * waited for, since an agent that was asked must be heard.
 */
export async function takeTurns(
	turns: readonly AgentTurn[],
	settings: TurnSettings,
	parts: TurnParts,
): Promise<TurnOutcome[]> {
	const limit = pLimit(settings.concurrency);
	const ofSession = new Map<string, Promise<unknown>>();
	let hasFailed = false;
	return await Promise.all(
		turns.map(async (turn) => {
			const name = conversationOf(turn);
			const before = name === undefined ? undefined : ofSession.get(name);
			const taken = (async (): Promise<TurnOutcome> => {
				await before;
				const result = await limit(async () => {
					if (hasFailed || parts.signal.aborted) return fail(notRun(parts.signal.aborted));
					const ended = await new TurnTaker(settings, { ...parts, ...turn.line }, turn).take();
					// While the place is still held, else the next in line would slip through.
					if (!ended.ok && settings.stopAtFailure) hasFailed = true;
					return ended;
				});
				const outcome = { itemIndex: turn.itemIndex, result };
				await parts.received(outcome);
				return outcome;
			})();
			if (name !== undefined) ofSession.set(name, taken);
			return await taken;
		}),
	);
}

function conversationOf({ session, line: { agent } }: AgentTurn): string | undefined {
	if (session.kind === 'mapped') return JSON.stringify([agent, 'key', session.key]);
	return session.kind === 'explicit' ? JSON.stringify([agent, 'id', session.id]) : undefined;
}

function notRun(isStopped: boolean): Failure {
	return {
		kind: isStopped ? 'cancelled' : 'notSubmitted',
		message: `The agent was not asked for this item, because ${isStopped ? 'the execution was stopped' : 'another item failed'}`,
		advice: 'Nothing was sent for it.',
	};
}

class TurnTaker {
	constructor(
		private readonly settings: TurnSettings,
		private readonly parts: TurnParts & TurnLine,
		private readonly turn: AgentTurn,
	) {}

	async take(): Promise<Result<TurnResult>> {
		const { memory, ledger } = this.parts;
		const { itemIndex, fingerprint, idempotency } = this.turn;
		const known = memory.recall(itemIndex, fingerprint);
		if (known.kind === 'answered') {
			const recalled = readRecord(known.outcome);
			if (recalled) {
				// The credential may have been changed since; an answer that was had is not asked for again.
				if (!isOfAnother(known.outcome, this.parts.agent)) this.restoreSession(recalled);
				return ok({ ...recalled, recalled: true });
			}
		}
		if (known.kind === 'unclear' && !this.settings.retryAmbiguous) return fail(stillUnclear(known.said));
		const session = { agent: this.parts.agent, sessionId: this.sessionId() };
		const tooMany = this.turn.isResume ? this.parts.rounds.whyNoMore(session) : undefined;
		if (tooMany) return fail(tooMany);
		return ledger && idempotency
			? await this.takeOnce(ledger, idempotency)
			: await this.prepareAndAsk(undefined);
	}

	/** Files are uploaded only where the agent is really asked. */
	private async prepareAndAsk(claim: LedgerClaim | undefined): Promise<Result<TurnResult>> {
		const body = await this.turn.prepare();
		if (body.ok) return await this.ask(body.value, claim);
		claim?.released();
		return body;
	}

	private sessionId(): string {
		const { session } = this.turn;
		if (session.kind === 'explicit') return session.id;
		return session.kind === 'mapped' ? (this.parts.sessions?.find(session.key) ?? '') : '';
	}

	private async takeOnce(ledger: Ledger, { key, payload }: Idempotency): Promise<Result<TurnResult>> {
		const described = await payload();
		if (!described.ok) return described;
		const payloadHash = createHash('sha256').update(described.value).digest('base64url');
		const answer = await ledger.claim({ key, payloadHash });
		if (!answer.ok) return answer;
		if (answer.value.kind === 'exists') return this.replay(key, answer.value);
		if (answer.value.kind !== 'mine') return fail(explainClaim(key, answer.value));
		const { claim } = answer.value;
		const ended = new AbortController();
		void this.keepAlive(claim, ended.signal);
		try {
			return await this.prepareAndAsk(claim);
		} finally {
			ended.abort();
		}
	}

	private async keepAlive(claim: LedgerClaim, ended: AbortSignal): Promise<void> {
		for (;;) {
			await this.parts.clock.sleep(RENEW_CLAIM_MS, ended);
			if (ended.aborted) return;
			claim.renew();
		}
	}

	/** The try that asked may have ended before the table held its session. */
	private restoreSession({ session: { id } }: TurnResult): void {
		const { sessions } = this.parts;
		const { session } = this.turn;
		if (session.kind === 'mapped' && id && sessions?.find(session.key) === '') {
			sessions.opened(session.key, id);
		}
	}

	private replay(key: string, known: Extract<LedgerAnswer, { kind: 'exists' }>): Result<TurnResult> {
		const record = parseJson(known.reference);
		if (isJsonObject(record) && isOfAnother(record, this.parts.agent)) {
			return fail(explainOtherAgent(key, known.by.executionId));
		}
		const result = isJsonObject(record) ? readRecord(record) : undefined;
		if (result) {
			this.restoreSession(result);
			return ok({ ...result, replayed: true });
		}
		return fail({
			kind: 'notSubmitted',
			message: `The agent has answered for the idempotency key "${excerpt(key, 80)}" already, but the answer was too long to be kept`,
			advice: `It was not asked again. The answer stands in execution ${known.by.executionId || 'that asked first'}. Use another key to ask again.`,
			details: { idempotencyKey: excerpt(key, 80), executionId: known.by.executionId },
		});
	}

	private async ask(body: JsonObject, claim: LedgerClaim | undefined): Promise<Result<TurnResult>> {
		const { agent, clock, sessions, rounds } = this.parts;
		const { session, isResume } = this.turn;
		const startedMs = clock.now();
		const sessionId = this.sessionId();
		let used = await this.invoke(
			body,
			sessionId,
			session.kind === 'mapped' && !sessionId ? 'new' : session.kind,
		);
		if (!used.ok && used.failure.isSessionUnknown && this.settings.renewExpired && !isResume) {
			used = await this.invoke(body, '', 'renewed');
		}
		this.tell(used, claim);
		if (!used.ok) return used;
		if (session.kind === 'mapped') sessions?.used(session.key);
		const answered = { agent, sessionId: used.value.session.id };
		if (!isResume) rounds.begin(answered);
		if (used.value.reply.interrupt) rounds.interrupted(answered);
		const result: TurnResult = { ...used.value, elapsedMs: clock.now() - startedMs, replayed: false };
		const { itemIndex, fingerprint, keepRaw } = this.turn;
		this.parts.memory.answered(
			itemIndex,
			fingerprint,
			recordOf(keepRaw ? result : withoutRaw(result), agent),
		);
		return ok(result);
	}

	private async invoke(
		body: JsonObject,
		sessionId: string,
		source: UsedSession['source'],
	): Promise<Result<Omit<TurnResult, 'elapsedMs' | 'replayed'>, AgentFailure>> {
		const { api, sessions } = this.parts;
		const { session, bodyFor, onDelta } = this.turn;
		const { timeoutMs, attempts, retryAmbiguous } = this.settings;
		const key = session.kind === 'mapped' ? session.key : '';
		const onSession = (id: string): void => {
			if (session.kind === 'mapped') sessions?.opened(key, id);
		};
		const invoked = await api.invoke({
			...{ body: bodyFor(body, sessionId), sessionId, timeoutMs, tries: attempts, retryAmbiguous },
			...{ onDelta, onSession },
		});
		if (!invoked.ok) return invoked;
		const { reply } = invoked.value;
		const id = reply.sessionId || sessionId;
		return ok({ reply, session: { key, id, source }, attempts: invoked.value.tries });
	}

	/** Tells ledger and memory what became of the call. */
	private tell(
		used: Result<Omit<TurnResult, 'elapsedMs' | 'replayed'>, AgentFailure>,
		claim: LedgerClaim | undefined,
	): void {
		if (used.ok) {
			claim?.ended(
				'succeeded',
				shortRecord({ ...used.value, elapsedMs: 0, replayed: false }, this.parts.agent),
			);
			return;
		}
		const { message, details } = used.failure;
		if (details?.mayHaveRun === true) {
			this.parts.memory.unclear(this.turn.itemIndex, this.turn.fingerprint, excerpt(message, 300));
			claim?.unanswered();
		} else claim?.released();
	}
}

function stillUnclear(said: string): Failure {
	return {
		kind: 'unclear',
		message: 'An earlier try asked the agent for this item and got no good answer, so it may have run',
		advice: `It was not asked again. Look into the session at the platform, or turn on "Retry Ambiguous Failures" in the options if asking twice does no harm.${said ? ` The earlier try said: ${said}` : ''}`,
		details: { mayHaveRun: true },
	};
}

function explainClaim(
	key: string,
	{ kind, by }: Extract<LedgerAnswer, { kind: 'conflict' | 'unknown' }>,
): Failure {
	const shown = excerpt(key, 80);
	const who = by.executionId ? `execution ${by.executionId}` : 'another execution';
	const details = { idempotencyKey: shown, executionId: by.executionId };
	if (kind === 'conflict') {
		return badInput(
			`The idempotency key "${shown}" was used by ${who} for another message`,
			'The agent was not asked. A key stands for one question: use another key, or delete its rows in the Data Table flow_task_ledger.',
			details,
		);
	}
	return {
		kind: 'unclear',
		message: `The agent may have run for the idempotency key "${shown}" in ${who}, but its answer is not known`,
		advice:
			'It was not asked again, so that nothing is done twice. Look into the session at the platform. To ask all the same, turn on "Retry Ambiguous Failures" in the options.',
		details: { ...details, mayHaveRun: true },
	};
}

/** A key stands for one question to one agent: the answer of another is none of this one's, and its session neither. */
function explainOtherAgent(key: string, executionId: string): Failure {
	const shown = excerpt(key, 80);
	return badInput(
		`The idempotency key "${shown}" was used by ${executionId ? `execution ${executionId}` : 'another execution'} to ask another agent`,
		'This agent was not asked. Use keys of its own for each agent, or set "Idempotency Scope" to "This Node". Two credentials count as two agents, whatever they lead to.',
		{ idempotencyKey: shown, executionId },
	);
}
