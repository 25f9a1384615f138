import { SEND_AGAIN } from '../../shared/form/sharedFields';
import { nameOfUser, shownKey, type KeyWords, type Reused } from '../../shared/effects/due';
import { fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { tokenCounts } from '../../shared/usage/budgetMessages';
import { isJsonObject, objectsIn, parseJson, type Json, type JsonObject } from '../../shared/text/json';
import { sha256 } from '../../shared/text/sha256';
import { textOf } from '../../shared/text/textOf';
import type { AgentReply } from '../wire/conclusion';
import type { WireInterrupt } from '../wire/answerValues';

const SOURCES = ['mapped', 'new', 'explicit', 'renewed'] as const;

/** The session of an answer, and where the session came from. */
export interface UsedSession {
	/** Empty if the item has no session key. */
	readonly key: string;
	readonly id: string;
	readonly source: (typeof SOURCES)[number];
}

export interface TurnResult {
	readonly reply: AgentReply;
	readonly session: UsedSession;
	/** How many calls were sent, including retries. */
	readonly attempts: number;
	readonly elapsedMs: number;
	/** Whether the answer was read from the ledger, so that the agent was not asked. */
	readonly replayed: boolean;
	/** Whether an earlier try of this node run got the answer. */
	readonly recalled?: boolean;
	/** The digest of a saved answer whose text was not kept. */
	readonly answerDigest?: string;
}

/** How much of an answer the ledger keeps. */
export type AnswerKeeping = 'keep' | 'digest';

/** The ledger stores answers in plain text; an answer longer than this is not kept. */
const LONGEST_SAVED_CHARS = 32_000;

/**
 * Everything that an item shows of an answer, as JSON.
 * @param agent the agent that answered
 */
export function savedAnswerOf(result: TurnResult, agent: string, keepRaw: boolean): JsonObject {
	const { session, attempts, elapsedMs } = result;
	const { interrupts, raw, events, readFrom, ...reply } = result.reply;
	return {
		reply: {
			...reply,
			raw: keepRaw ? raw : {},
			...(keepRaw && events && { events: [...events] }),
			...(readFrom && { readFrom }),
			interrupts: interrupts.map((one) => ({ ...one })),
		},
		session: { ...session },
		attempts,
		elapsedMs,
		agent,
	};
}

/**
 * The text that the ledger keeps of an answer. If it is too long, the raw answer and the steps are dropped first:
 * items can do without them.
 */
export function savedAnswerText(result: TurnResult, agent: string, keeping: AnswerKeeping): string {
	const isDigest = keeping === 'digest';
	const digest = isDigest && { answerDigest: sha256(result.reply.answer) };
	const kept = isDigest ? withoutWords(result) : result;
	const fits = [true, false]
		.map((keepRaw) => JSON.stringify({ ...savedAnswerOf(kept, agent, keepRaw), ...digest }))
		// An answer that is nested too deeply could not be read back.
		.find((saved) => saved.length <= LONGEST_SAVED_CHARS && parseJson(saved) !== undefined);
	return fits ?? JSON.stringify({ agent });
}

/** A reason or an ID, but not a sentence. */
const CODE = /^[\w.:/+=-]{1,128}$/;

/**
 * Removes what the agent said, so that only the session, the reason, the request ID and the tokens remain. An interrupt
 * is left out, because without its arguments it must not be acted on.
 */
function withoutWords(result: TurnResult): TurnResult {
	const { sessionId, reason, requestId, usage } = result.reply;
	const reply: AgentReply = {
		sessionId,
		reason: CODE.test(reason) ? reason : '',
		requestId: CODE.test(requestId) ? requestId : '',
		usage: tokenCounts(usage),
		answer: '',
		hint: '',
		interrupts: [],
		raw: {},
	};
	return { ...result, reply };
}

/** @returns `undefined` if the value is not a saved answer: people can edit the ledger */
export function readSavedAnswer(saved: Json | undefined): TurnResult | undefined {
	if (!isJsonObject(saved)) return undefined;
	const { reply, session } = saved;
	if (!isJsonObject(reply) || !isJsonObject(session)) return undefined;
	const { raw, interrupts, events, readFrom } = reply;
	return {
		reply: {
			answer: textOf(reply.answer),
			sessionId: textOf(reply.sessionId),
			reason: textOf(reply.reason),
			requestId: textOf(reply.requestId),
			usage: reply.usage ?? null,
			hint: textOf(reply.hint),
			raw: raw ?? {},
			interrupts: objectsIn(interrupts).map(readInterrupt),
			...(Array.isArray(events) && { events: events.filter(isJsonObject) }),
			...(isJsonObject(readFrom) && { readFrom }),
		},
		session: {
			key: textOf(session.key),
			id: textOf(session.id),
			source: SOURCES.find((source) => source === session.source) ?? 'explicit',
		},
		attempts: Number(saved.attempts) || 0,
		elapsedMs: Number(saved.elapsedMs) || 0,
		replayed: false,
		...(typeof saved.answerDigest === 'string' && { answerDigest: saved.answerDigest }),
	};
}

function readInterrupt({ id, kind, tool, arguments: given = {}, question }: JsonObject): WireInterrupt {
	return {
		id: textOf(id),
		kind: kind === 'tool' ? 'tool' : 'question',
		tool: textOf(tool),
		arguments: given,
		question: textOf(question),
	};
}

/** The answer that another execution saved for a key, or why there is none. The agent is not asked in either case. */
export function replayed(key: string, { reference, by }: Reused, agent: string): Result<TurnResult> {
	const shown = shownKey(key);
	const { executionId } = by;
	const who = nameOfUser(by);
	const details = { idempotencyKey: shown, executionId };
	const saved = parseJson(reference);
	// Neither the answer nor the session of another agent is of any use here.
	if (isJsonObject(saved) && saved.agent !== agent) {
		return failInput(
			`The idempotency key "${shown}" was used by ${who} to ask another agent`,
			"This agent was not asked. Use separate keys for each agent, or set 'Idempotency Scope' to 'This Node'. Two credentials are treated as two agents, even if they belong to the same agent.",
			details,
		);
	}
	const result = readSavedAnswer(saved);
	const where = executionId ? who : 'the execution that asked';
	if (result?.answerDigest) {
		const hint = `The agent has answered for this key already, and was not asked again. Its answer was not kept, because 'Idempotency Answers' was 'Digest Only'. Find it in ${where}.`;
		return ok({ ...result, replayed: true, reply: { ...result.reply, hint } });
	}
	if (result) return ok({ ...result, replayed: true });
	return fail({
		kind: 'notSubmitted',
		message: `The agent has already answered for the idempotency key "${shown}", but the answer was too long or too deeply nested to be kept`,
		advice: `The agent was not asked again. Find the answer in the output of ${where}, or use another key to ask again.`,
		details,
	});
}

export const WORDS_OF_KEY: KeyWords = {
	otherUse: 'another message',
	conflictAdvice:
		"The agent was not asked. A key stands for one question: use another key, or delete this key's rows in the Data Table flow_task_ledger.",
	unknown: (key, who) =>
		`The agent may have run for the idempotency key "${key}" in ${who}, but its answer is unknown`,
	unknownAdvice: `The agent was not asked again, so that nothing is done twice. Check the session on the platform. To ask anyway, ${SEND_AGAIN}.`,
	unknownDetails: { mayHaveRun: true },
};

/**
 * What an earlier try kept of its turn: its answer, or why the agent must not be asked again; undefined if it may be.
 * @param sendAgain whether to ask again even if the agent may have run
 */
export function recalledFrom(
	kept: JsonObject | undefined,
	sendAgain: boolean,
): Result<TurnResult> | undefined {
	const { outcome, unclear } = kept ?? {};
	const result = isJsonObject(outcome) ? readSavedAnswer(outcome) : undefined;
	if (result) return ok({ ...result, recalled: true });
	const mayAsk = isJsonObject(outcome) || unclear === undefined || sendAgain;
	return mayAsk ? undefined : fail(stillUnclear(textOf(unclear)));
}

/** Says of a turn that this try did not take that the agent may have run in an earlier one. */
export function notAskedAgain(kept: JsonObject | undefined, failure: Failure): Failure {
	if (kept?.unclear === undefined || failure.details?.mayHaveRun === true) return failure;
	return {
		...failure,
		message: `The agent may have run for this item in an earlier try. This try did not ask it: ${failure.message}`,
		advice: `Check the session on the platform before you run this item again. ${failure.advice}`,
		details: { ...failure.details, mayHaveRun: true },
	};
}

function stillUnclear(said: string): Failure {
	return {
		kind: 'unclear',
		message:
			'An earlier try called the agent for this item and got no usable answer, so the agent may have run',
		advice: `The agent was not asked again. Check the session on the platform, or ${SEND_AGAIN} if asking twice does no harm.${said ? ` The earlier error was: ${said}` : ''}`,
		details: { mayHaveRun: true },
	};
}
