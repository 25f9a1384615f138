import type { Failure } from '../shared/errors/failure';
import { isJsonObject } from '../shared/text/json';

/** A session of an agent: two agents may number their sessions alike. */
export interface AgentSession {
	readonly agent: string;
	/** Empty where there is none yet: then nothing is counted. */
	readonly sessionId: string;
}

/** How often an agent has interrupted since it was last given a message: a bound for loops of tool and result. */
export interface InterruptRounds {
	/** A message begins a new step. */
	begin(session: AgentSession): void;
	interrupted(session: AgentSession): void;
	/** Why an interrupt of this session is not answered any more; undefined where it may be. */
	whyNoMore(session: AgentSession): Failure | undefined;
}

const CONTEXT_KEY = 'flowAgentInterrupts';

/**
 * @param flowContext n8n's own object that all nodes of an execution share, so that a loop over two nodes is bounded,
 * and one that waits for a person in between
 * @param maxInterrupts 0 = no bound
 */
export function createInterruptRounds(
	flowContext: Record<string, unknown>,
	maxInterrupts: number,
): InterruptRounds {
	const nameOf = ({ agent, sessionId }: AgentSession): string => JSON.stringify([agent, sessionId]);
	const countOf = (session: AgentSession): number => {
		const counts = flowContext[CONTEXT_KEY];
		const count = isJsonObject(counts) ? counts[nameOf(session)] : undefined;
		return typeof count === 'number' ? count : 0;
	};
	const set = (session: AgentSession, count: number): void => {
		if (!session.sessionId) return;
		const known = flowContext[CONTEXT_KEY];
		const counts = isJsonObject(known) ? known : {};
		counts[nameOf(session)] = count;
		flowContext[CONTEXT_KEY] = counts;
	};
	return {
		begin: (session) => {
			if (countOf(session) > 0) set(session, 0);
		},
		interrupted: (session) => set(session, countOf(session) + 1),
		whyNoMore: (session) => {
			const count = countOf(session);
			if (maxInterrupts === 0 || count <= maxInterrupts) return undefined;
			return {
				kind: 'notSubmitted',
				message: `The agent has interrupted ${count} times in this step, more than the ${maxInterrupts} that "Max Interrupts" allows`,
				advice:
					'This interrupt was not answered, so that the two do not go on forever. Look at what the agent asks for, or raise "Max Interrupts" in the options.',
				details: { sessionId: session.sessionId, interrupts: count },
			};
		},
	};
}
