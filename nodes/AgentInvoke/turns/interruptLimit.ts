import type { Failure } from '../../shared/errors/failure';
import { isJsonObject } from '../../shared/text/json';

/** A session of an agent; two agents may use the same session IDs. */
export interface AgentSession {
	readonly agent: string;
	/** Empty if there is no session yet; then nothing is counted. */
	readonly sessionId: string;
}

/** Counts how often an agent has interrupted since the last message, to bound loops of tool call and result. */
export interface InterruptLimit {
	/** A message starts a new step. */
	begin(session: AgentSession): void;
	/** @param asked the session in which the agent was asked; its answer may use another ID */
	interrupted(session: AgentSession, asked: AgentSession): void;
	/** Why a further interrupt of this session must not be answered; undefined if it may be. */
	whyNoMore(session: AgentSession): Failure | undefined;
}

const CONTEXT_KEY = 'flowAgentInterrupts';

/**
 * @param flowContext n8n's object shared by all nodes of an execution, so that even a loop over two nodes with a human
 * in between is bounded
 * @param maxInterrupts 0 = no limit
 */
export function createInterruptLimit(
	flowContext: Record<string, unknown>,
	maxInterrupts: number,
): InterruptLimit {
	const nameOf = ({ agent, sessionId }: AgentSession): string => JSON.stringify([agent, sessionId]);
	const counts = () => {
		const known = flowContext[CONTEXT_KEY];
		return isJsonObject(known) ? known : {};
	};
	const countOf = (session: AgentSession): number => Number(counts()[nameOf(session)] ?? 0) || 0;
	const set = (session: AgentSession, count: number): void => {
		if (!session.sessionId) return;
		flowContext[CONTEXT_KEY] = Object.assign(counts(), { [nameOf(session)]: count });
	};
	return {
		begin: (session) => {
			if (countOf(session) > 0) set(session, 0);
		},
		interrupted: (session, asked) => set(session, countOf(asked) + 1),
		whyNoMore: (session) => {
			const count = countOf(session);
			if (maxInterrupts === 0 || count <= maxInterrupts) return undefined;
			return {
				kind: 'notSubmitted',
				message: `The agent has interrupted ${count} times in this step, but "Max Interrupts" allows ${maxInterrupts}`,
				advice:
					'This interrupt was not answered, to keep agent and workflow from looping forever. Check what the agent asks for, or raise "Max Interrupts" under "Cost and Speed".',
				details: { sessionId: session.sessionId, interrupts: count },
			};
		},
	};
}
