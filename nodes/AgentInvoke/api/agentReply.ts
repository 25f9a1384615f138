import { isJsonObject, type Json, type JsonObject } from '../../shared/text/json';
import type { WireReply } from '../wire/conclusion';
import type { WireInterrupt } from '../wire/reader';

/** What the agent said in one turn. */
export interface AgentReply {
	readonly answer: string;
	readonly sessionId: string;
	readonly interrupt: WireInterrupt | undefined;
	/** All open interrupts if there are several, including `interrupt`; otherwise empty. */
	readonly interrupts: readonly WireInterrupt[];
	readonly reason: string;
	readonly requestId: string;
	/** Token counts and the like, as received. */
	readonly usage: Json;
	/** What the operator should know about the answer; usually empty. */
	readonly hint: string;
	readonly raw: JsonObject;
	/** The steps that a stream reported, in order. If there were too many, the last entry counts those left out. */
	readonly events?: readonly JsonObject[];
	/** Which entry of the description gave each value (`null` if none did), and what the answer contained. */
	readonly readFrom?: JsonObject;
}

/** Turns a complete answer into the reply that items show. */
export function replyOf(read: WireReply): AgentReply {
	const { interrupts, steps, stepsOmitted, raw, sessionId, reason, requestId, usage } = read;
	const answer = read.text;
	const [first] = interrupts;
	const isAlone = interrupts.length === 1;
	const events = [
		...steps.map(({ name, data }) => ({ name, data })),
		...(stepsOmitted > 0 ? [{ omitted: stepsOmitted }] : []),
	];
	return {
		answer,
		sessionId,
		reason,
		requestId,
		usage,
		hint: '',
		// With several interrupts, it is unknown which one the text is about.
		interrupt: first && (isAlone ? askedIn(answer, first) : first),
		interrupts: isAlone ? [] : interrupts,
		raw: isJsonObject(raw) ? raw : {},
		...(events.length > 0 && { events }),
		readFrom: readFromOf(read),
	};
}

function readFromOf({ readFrom, misfits, keys, names, unread }: WireReply): JsonObject {
	const others = ['session', 'usage', 'interrupt', 'requestId'].map(
		(name) => [name, readFrom[name] ?? null] as const,
	);
	return {
		answer: readFrom.text ?? null,
		...Object.fromEntries(others),
		found: [...keys],
		...(names.length > 0 && { events: [...names] }),
		...(unread && { unread }),
		...(Object.keys(misfits).length > 0 && { misfits: { ...misfits } }),
	};
}

/**
 * An agent may ask its question as plain text and then only signal that it waits. The text then becomes the question,
 * because the interrupt alone does not say what it is about.
 */
function askedIn(text: string, interrupt: WireInterrupt): WireInterrupt {
	const asksNothing = interrupt.kind === 'question' && interrupt.question.trim() === '';
	return asksNothing ? { ...interrupt, question: text } : interrupt;
}
