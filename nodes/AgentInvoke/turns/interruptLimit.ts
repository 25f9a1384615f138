import type { Failure } from '../../shared/errors/failure';
import { isJsonObject } from '../../shared/text/json';

/** A session of an agent: two agents may number their sessions alike. */
export interface AgentSession {
	readonly agent: string;
	/** Empty if there is none yet; then nothing is counted. */
	readonly sessionId: string;
}

/** How often an agent has interrupted since its last message: a bound for loops of tool and result. */
export interface InterruptLimit {
	/** A message begins a new step. */
	begin(session: AgentSession): void;
	/** @param asked the session in which the agent was asked, which its answer may go on with by another ID */
	interrupted(session: AgentSession, asked: AgentSession): void;
	/** Why another interrupt of this session is not answered; undefined if it may be. */
	whyNoMore(session: AgentSession): Failure | undefined;
}

const CONTEXT_KEY = 'flowAgentInterrupts';

/**
 * @param flowContext n8n's own object that all nodes of an execution share, so that a loop over two nodes is bounded,
 * even if it waits for a person in between
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
