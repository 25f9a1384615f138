/** The most keys that are remembered. */
const MOST_KEYS = 10_000;

/**
 * Which key has which session, as far as the executions of this process have seen. Some platforms give all callers that
 * name no session the same one; the conversations of different keys would then be mixed.
 */
export class KnownSessions {
	private readonly sessionOf = new Map<string, string>();
	private readonly keyOf = new Map<string, string>();

	/** Whether another key of the agent has the session. */
	isOfAnother(agent: string, entryKey: string, sessionId: string): boolean {
		return (this.keyOf.get(nameOfSession(agent, sessionId)) ?? entryKey) !== entryKey;
	}

	/** Records the session of a key, unless another key has it. */
	keep(agent: string, entryKey: string, sessionId: string): void {
		if (this.isOfAnother(agent, entryKey, sessionId)) return;
		const session = nameOfSession(agent, sessionId);
		this.forget(entryKey);
		this.keyOf.set(session, entryKey);
		this.sessionOf.set(entryKey, session);
		const [oldest] = this.sessionOf.keys();
		if (oldest !== undefined && this.sessionOf.size > MOST_KEYS) this.forget(oldest);
	}

	/** Forgets a key, whose mapping has ended. */
	forget(entryKey: string): void {
		const session = this.sessionOf.get(entryKey);
		if (session !== undefined) this.keyOf.delete(session);
		this.sessionOf.delete(entryKey);
	}
}

/** Two agents may use the same session IDs. */
export function nameOfSession(agent: string, sessionId: string): string {
	return JSON.stringify([agent, sessionId]);
}
