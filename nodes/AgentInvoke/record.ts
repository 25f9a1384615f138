import { isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import { textOf, type AgentReply, type Interrupt } from './envelope';

/** Where the session of an answer came from. */
export interface UsedSession {
	/** Empty where the item has none. */
	readonly key: string;
	readonly id: string;
	readonly source: 'mapped' | 'new' | 'explicit' | 'renewed';
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

/** A longer answer is not kept in the ledger (C7 of what it holds: in plain text, in a table). */
const LONGEST_RECORD_CHARS = 32_000;

/**
 * What is kept of an answer: all that an item shows of it, in a form that goes through JSON.
 * @param agent who answered
 */
export function recordOf({ reply, session, attempts, elapsedMs }: TurnResult, agent: string): JsonObject {
	const { answer, sessionId, interrupt, interrupts, reason, requestId, usage, hint, raw } = reply;
	return {
		reply: {
			...{ answer, sessionId, reason, requestId, usage, hint, raw },
			interrupt: interrupt ? { ...interrupt } : null,
			interrupts: interrupts.map((one) => ({ ...one })),
		},
		session: { ...session },
		attempts,
		elapsedMs,
		agent,
	};
}

export function withoutRaw(result: TurnResult): TurnResult {
	return { ...result, reply: { ...result.reply, raw: {} } };
}

/** The raw answer says the same once more, so it goes first where a record is too long. */
export function shortRecord(result: TurnResult, agent: string): string {
	const fits = [result, withoutRaw(result)]
		.map((one) => JSON.stringify(recordOf(one, agent)))
		// What is nested too deeply could not be read again.
		.find((record) => record.length <= LONGEST_RECORD_CHARS && parseJson(record) !== undefined);
	return fits ?? JSON.stringify({ agent });
}

/** Whether another agent than this one gave the recorded answer; a record that does not say counts as one's own. */
export function isOfAnother(record: JsonObject, agent: string): boolean {
	const recorded = textOf(record.agent);
	return recorded !== '' && recorded !== agent;
}

/** @returns `undefined` where a record is none: people can edit the ledger */
export function readRecord(record: JsonObject): TurnResult | undefined {
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
			hint: textOf(reply.hint),
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
