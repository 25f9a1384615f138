import type { Failure } from '../../shared/errors/failure';
import { isJsonObject, type JsonObject } from '../../shared/text/json';
import { nameOfSession } from '../sessions/sessionRows';

interface AgentSession {
	readonly agent: string;
	/** Empty if there is no session yet; then nothing is counted. */
	readonly sessionId: string;
}

const CONTEXT_KEY = 'flowAgentInterrupts';

/** Counts how often an agent has interrupted since the last message, to bound loops of tool call and result. */
export class InterruptLimit {
	/**
	 * @param flowContext n8n's object that all nodes of an execution share: it bounds even a loop through two nodes with a
	 * human step between them
	 * @param most how many interrupts may be answered in a step; 0 = no limit
	 */
	constructor(
		private readonly flowContext: Record<string, unknown>,
		private readonly most: number,
	) {}

	/** A message starts a new step. */
	begin(session: AgentSession): void {
		if (this.countOf(session) > 0) this.set(session, 0);
	}

	/** @param asked the session in which the agent was asked; its answer may use another ID */
	interrupted(session: AgentSession, asked: AgentSession): void {
		this.set(session, this.countOf(asked) + 1);
	}

	/** Why a further interrupt of this session must not be answered; undefined if it may be. */
	whyNoMore(session: AgentSession): Failure | undefined {
		const count = this.countOf(session);
		if (this.most === 0 || count <= this.most) return undefined;
		return {
			kind: 'notSubmitted',
			message: `The agent has interrupted ${count} times in this step, but 'Max Interrupts' allows ${this.most}`,
			advice:
				"This interrupt was not answered, to keep agent and workflow from looping forever. Check what the agent asks for, or raise 'Max Interrupts' under 'Cost and Speed'.",
			details: { sessionId: session.sessionId, interrupts: count },
		};
	}

	private get counts(): JsonObject {
		const known = this.flowContext[CONTEXT_KEY];
		return isJsonObject(known) ? known : {};
	}

	private countOf({ agent, sessionId }: AgentSession): number {
		return Number(this.counts[nameOfSession(agent, sessionId)] ?? 0) || 0;
	}

	private set({ agent, sessionId }: AgentSession, count: number): void {
		if (!sessionId) return;
		this.flowContext[CONTEXT_KEY] = Object.assign(this.counts, { [nameOfSession(agent, sessionId)]: count });
	}
}
