import { createHash } from 'crypto';

import pLimit from 'p-limit';

import type { Clock } from '../shared/clock';
import { badInput, fail, ok, type Failure, type Result } from '../shared/failure';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/json';
import type { Ledger, LedgerAnswer } from '../shared/ledger';
import type { LedgerClaim } from '../shared/ledger.claim';
import type { AgentApi } from './agent.api';
import { textOf, type AgentReply, type Interrupt } from './agent.envelope';
import type { AgentFailure } from './agent.failures';
import type { AgentMemory } from './agent.memory';
import type { InterruptRounds } from './agent.rounds';
import type { SessionStore } from './agent.sessions';

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

export interface AgentTurn {
	readonly itemIndex: number;
	readonly session: SessionChoice;
	/** Answers an interrupt, so that it counts as a round of the same step. */
	readonly isResume: boolean;
	/** Puts the body together, files uploaded; called when the item's turn comes. */
	readonly prepare: () => Promise<Result<JsonObject>>;
	/** The body with a session in it. */
	readonly bodyFor: (body: JsonObject, sessionId: string) => JsonObject;
	/** Left out where the item has no idempotency key. */
	readonly idempotency: { readonly key: string; readonly payload: string } | undefined;
	readonly fingerprint: string;
	/** The item shows the answer as it came, so that is remembered as well. */
	readonly keepRaw: boolean;
	readonly onDelta: (text: string) => Promise<void>;
}

/** Where the session of an answer came from. */
export interface UsedSession {
	/** Empty where the item has none. */
	readonly key: string;
	readonly id: string;
	readonly source: 'mapped' | 'new' | 'explicit' | 'renewed';
}

export interface TurnOutcome {
	readonly itemIndex: number;
	readonly result: Result<TurnResult>;
}

export interface TurnResult {
	readonly reply: AgentReply;
	readonly session: UsedSession;
	readonly attempts: number;
	readonly elapsedMs: number;
	/** The recorded answer of an earlier run. */
	readonly replayed: boolean;
	/** The answer that an earlier try of this node run got. */
	readonly recalled?: boolean;
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
	readonly api: Pick<AgentApi, 'invoke'>;
	readonly clock: Clock;
	readonly sessions: SessionStore | undefined;
	readonly ledger: Ledger | undefined;
	readonly memory: AgentMemory;
	readonly rounds: InterruptRounds;
	readonly signal: AbortSignal;
	/** Told of each outcome as it comes. */
	readonly heard: (outcome: TurnOutcome) => Promise<void>;
}

/** A claim counts as alive for some minutes without a word from its owner; an agent may take longer. */
const RENEW_CLAIM_MS = 60_000;
/** A longer answer is not kept in the ledger (C7 of what it holds: in clear, in a table). */
const LONGEST_RECORD_CHARS = 32_000;

/**
 * Takes the turns of all items: those of one session one after the other and in their order, because a session is
 * one conversation; those of different sessions beside each other. What runs when a failure ends the run is
 * waited for, since an agent that was asked has to be heard.
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
			const name = conversationOf(turn.session);
			const before = name === undefined ? undefined : ofSession.get(name);
			const taken = (async (): Promise<TurnOutcome> => {
				await before;
				const result = await limit(async () => {
					if (hasFailed || parts.signal.aborted) return fail(notRun(parts.signal.aborted));
					const ended = await new TurnTaker(settings, parts, turn).take();
					// While the place is still held, else the next in line would slip through.
					if (!ended.ok && settings.stopAtFailure) hasFailed = true;
					return ended;
				});
				const outcome = { itemIndex: turn.itemIndex, result };
				await parts.heard(outcome);
				return outcome;
			})();
			if (name !== undefined) ofSession.set(name, taken);
			return await taken;
		}),
	);
}

function conversationOf(session: SessionChoice): string | undefined {
	if (session.kind === 'mapped') return `key ${session.key}`;
	return session.kind === 'explicit' ? `id ${session.id}` : undefined;
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
		private readonly parts: TurnParts,
		private readonly turn: AgentTurn,
	) {}

	async take(): Promise<Result<TurnResult>> {
		const { memory, ledger } = this.parts;
		const { itemIndex, fingerprint, idempotency } = this.turn;
		const known = memory.recall(itemIndex, fingerprint);
		if (known.kind === 'answered') {
			const recalled = readRecord(known.outcome);
			if (recalled) {
				this.restoreSession(recalled);
				return ok({ ...recalled, recalled: true });
			}
		}
		if (known.kind === 'unclear' && !this.settings.retryAmbiguous) return fail(stillUnclear(known.said));
		const tooMany = this.turn.isResume ? this.parts.rounds.whyNoMore(this.sessionId()) : undefined;
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

	private async takeOnce(
		ledger: Ledger,
		{ key, payload }: { readonly key: string; readonly payload: string },
	): Promise<Result<TurnResult>> {
		const payloadHash = createHash('sha256').update(payload).digest('base64url');
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
		const { clock, sessions, rounds } = this.parts;
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
		if (!isResume) rounds.begin(used.value.session.id);
		if (used.value.reply.interrupt) rounds.interrupted(used.value.session.id);
		const result: TurnResult = { ...used.value, elapsedMs: clock.now() - startedMs, replayed: false };
		const { itemIndex, fingerprint, keepRaw } = this.turn;
		this.parts.memory.answered(itemIndex, fingerprint, recordOf(keepRaw ? result : withoutRaw(result)));
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
			...{ body: bodyFor(body, sessionId), sessionId, timeoutMs, attempts, retryAmbiguous },
			...{ onDelta, onSession },
		});
		if (!invoked.ok) return invoked;
		const { reply } = invoked.value;
		const id = reply.sessionId || sessionId;
		if (id) onSession(id);
		return ok({ reply, session: { key, id, source }, attempts: invoked.value.attempts });
	}

	/** Tells ledger and memory what became of the call. */
	private tell(
		used: Result<Omit<TurnResult, 'elapsedMs' | 'replayed'>, AgentFailure>,
		claim: LedgerClaim | undefined,
	): void {
		if (used.ok) {
			claim?.ended('succeeded', shortRecord({ ...used.value, elapsedMs: 0, replayed: false }));
			return;
		}
		const { message, details } = used.failure;
		if (details?.mayHaveRun === true) {
			this.parts.memory.unclear(this.turn.itemIndex, this.turn.fingerprint, excerpt(message, 300));
			claim?.unanswered();
		} else claim?.released();
	}
}

/** What is kept of an answer: all that an item shows of it, in a form that goes through JSON. */
function recordOf({ reply, session, attempts, elapsedMs }: TurnResult): JsonObject {
	const { answer, sessionId, interrupt, interrupts, reason, requestId, usage, raw } = reply;
	return {
		reply: {
			...{ answer, sessionId, reason, requestId, usage, raw },
			interrupt: interrupt ? { ...interrupt } : null,
			interrupts: interrupts.map((one) => ({ ...one })),
		},
		session: { ...session },
		attempts,
		elapsedMs,
	};
}

function withoutRaw(result: TurnResult): TurnResult {
	return { ...result, reply: { ...result.reply, raw: {} } };
}

/** The raw answer says the same once more, so it goes first where a record is too long. */
function shortRecord(result: TurnResult): string {
	const fits = [result, withoutRaw(result)]
		.map((one) => JSON.stringify(recordOf(one)))
		.find((record) => record.length <= LONGEST_RECORD_CHARS);
	return fits ?? '{}';
}

/** @returns `undefined` where a record is none: people can edit the ledger */
function readRecord(record: JsonObject): TurnResult | undefined {
	const { reply, session } = record;
	if (!isJsonObject(reply) || !isJsonObject(session)) return undefined;
	const { interrupts, raw } = reply;
	const source = (['mapped', 'new', 'explicit', 'renewed'] as const).find((one) => one === session.source);
	return {
		reply: {
			answer: textOf(reply.answer),
			sessionId: textOf(reply.sessionId),
			reason: textOf(reply.reason),
			requestId: textOf(reply.requestId),
			usage: reply.usage ?? null,
			raw: isJsonObject(raw) ? raw : {},
			interrupt: readInterruptRecord(reply.interrupt),
			interrupts: Array.isArray(interrupts)
				? interrupts.flatMap((one) => readInterruptRecord(one) ?? [])
				: [],
		},
		session: { key: textOf(session.key), id: textOf(session.id), source: source ?? 'explicit' },
		attempts: Number(record.attempts) || 0,
		elapsedMs: Number(record.elapsedMs) || 0,
		replayed: false,
	};
}

function readInterruptRecord(record: Json | undefined): Interrupt | undefined {
	if (!isJsonObject(record)) return undefined;
	return {
		id: textOf(record.id),
		kind: record.kind === 'tool' ? 'tool' : 'question',
		tool: textOf(record.tool),
		arguments: record.arguments ?? {},
		question: textOf(record.question),
	};
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
