import type { Failure } from '../shared/failure';

/** How often an agent has interrupted since it was last given a message: a bound for loops of tool and result. */
export interface InterruptRounds {
	/** A message begins a new step. */
	begin(sessionId: string): void;
	interrupted(sessionId: string): void;
	/** Why an interrupt of this session is not answered any more; undefined where it may be. */
	whyNoMore(sessionId: string): Failure | undefined;
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
	const known: unknown = flowContext[CONTEXT_KEY];
	const counts = new Map<string, number>(
		typeof known === 'object' && known !== null
			? Object.entries(known).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
			: [],
	);
	const set = (sessionId: string, count: number): void => {
		if (!sessionId) return;
		counts.set(sessionId, count);
		flowContext[CONTEXT_KEY] = Object.fromEntries(counts);
	};
	return {
		begin: (sessionId) => {
			if (counts.has(sessionId)) set(sessionId, 0);
		},
		interrupted: (sessionId) => set(sessionId, (counts.get(sessionId) ?? 0) + 1),
		whyNoMore: (sessionId) => {
			const count = counts.get(sessionId) ?? 0;
			if (maxInterrupts === 0 || count <= maxInterrupts) return undefined;
			return {
				kind: 'notSubmitted',
				message: `The agent has interrupted ${count} times in this step, more than the ${maxInterrupts} that "Max Interrupts" allows`,
				advice:
					'This interrupt was not answered, so that the two do not go on for ever. Look at what the agent asks for, or raise "Max Interrupts" in the options.',
				details: { sessionId, interrupts: count },
			};
		},
	};
}
