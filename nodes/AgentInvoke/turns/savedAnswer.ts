import { isJsonObject, parseJson, type Json, type JsonObject } from '../../shared/text/json';
import { textOf } from '../../shared/text/textOf';
import type { AgentReply, Interrupt } from '../api/agentReply';

const SOURCES = ['mapped', 'new', 'explicit', 'renewed'] as const;

/** Which session an answer belongs to, and where it came from. */
export interface UsedSession {
	/** Empty if the item has none. */
	readonly key: string;
	readonly id: string;
	readonly source: (typeof SOURCES)[number];
}

export interface TurnResult {
	readonly reply: AgentReply;
	readonly session: UsedSession;
	readonly attempts: number;
	readonly elapsedMs: number;
	/** The recorded answer of another execution. */
	readonly replayed: boolean;
	/** The answer that an earlier try of this node run got. */
	readonly recalled?: boolean;
}

/** A longer answer is not kept in the ledger, which stores it in plain text. */
const LONGEST_RECORD_CHARS = 32_000;

/**
 * Everything that an item shows of an answer, as JSON.
 * @param agent who answered
 */
export function recordOf(result: TurnResult, agent: string, keepRaw: boolean): JsonObject {
	const { session, attempts, elapsedMs } = result;
	const { interrupt, interrupts, raw, events, readFrom, ...reply } = result.reply;
	return {
		reply: {
			...reply,
			raw: keepRaw ? raw : {},
			...(keepRaw && events && { events: [...events] }),
			...(readFrom && { readFrom }),
			interrupt: interrupt ? { ...interrupt } : null,
			interrupts: interrupts.map((one) => ({ ...one })),
		},
		session: { ...session },
		...{ attempts, elapsedMs, agent },
	};
}

/** A record for the ledger; one that is too long loses the raw answer first, which says everything twice. */
export function shortRecord(result: TurnResult, agent: string): string {
	const fits = [true, false]
		.map((keepRaw) => JSON.stringify(recordOf(result, agent, keepRaw)))
		// A record that is nested too deeply could not be read back.
		.find((record) => record.length <= LONGEST_RECORD_CHARS && parseJson(record) !== undefined);
	return fits ?? JSON.stringify({ agent });
}

/** Whether another agent gave the recorded answer; records of older versions do not say who did. */
export function isOfAnother(record: JsonObject, agent: string): boolean {
	const recorded = textOf(record.agent);
	return recorded !== '' && recorded !== agent;
}

/** @returns `undefined` if this is not a record: people can edit the ledger */
export function readRecord(record: Json | undefined): TurnResult | undefined {
	if (!isJsonObject(record)) return undefined;
	const { reply, session } = record;
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
			raw: isJsonObject(raw) ? raw : {},
			interrupt: readInterrupts([reply.interrupt ?? null])[0],
			interrupts: Array.isArray(interrupts) ? readInterrupts(interrupts) : [],
			...(Array.isArray(events) && { events: events.filter(isJsonObject) }),
			...(isJsonObject(readFrom) && { readFrom }),
		},
		session: {
			key: textOf(session.key),
			id: textOf(session.id),
			source: SOURCES.find((source) => source === session.source) ?? 'explicit',
		},
		attempts: Number(record.attempts) || 0,
		elapsedMs: Number(record.elapsedMs) || 0,
		replayed: false,
	};
}

function readInterrupts(records: readonly Json[]): Interrupt[] {
	return records.filter(isJsonObject).map((record) => ({
		id: textOf(record.id),
		kind: record.kind === 'tool' ? 'tool' : 'question',
		tool: textOf(record.tool),
		arguments: record.arguments ?? {},
		question: textOf(record.question),
	}));
}
