import { NEVER_MS } from '../../shared/dataTable/cells';
import type { TableRow } from '../../shared/dataTable/table';
import { textOrNumber } from '../../shared/text/textOf';
import { KeySession, sessionIn } from './sessionRows';

interface Resumed {
	readonly turns: number;
	/** The session's ID after the last answer. */
	readonly nextId: string;
}

/** The turns with which a run resumed sessions by their IDs. */
export class ResumedSessions {
	private readonly resumed = new Map<string, Resumed>();
	/** The ID by which each session was first resumed, keyed by the ID under which it continues. */
	private readonly resumedFrom = new Map<string, string>();

	/** The IDs by which the sessions were first resumed. */
	get ids(): string[] {
		return [...this.resumed.keys()];
	}

	used(sessionId: string, nextId: string): void {
		const first = this.resumedFrom.get(sessionId) ?? sessionId;
		const { turns = 0 } = this.resumed.get(first) ?? {};
		this.resumed.set(first, { turns: turns + 1, nextId });
		this.resumedFrom.set(nextId, first);
	}

	/** The keys of these rows, with the turns to add and the new IDs of their sessions. @param nowMs time of day */
	keysIn(rows: readonly TableRow[], nowMs: number): KeySession[] {
		const keys = new Map<string, KeySession>();
		for (const row of rows) {
			const entryKey = textOrNumber(row.entryKey);
			const found = sessionIn([row], nowMs);
			const resumed = found && this.resumed.get(found.sessionId);
			if (!resumed || keys.has(entryKey)) continue;
			const key = new KeySession(textOrNumber(row.sessionKey), entryKey);
			key.continueIn(found);
			key.session = {
				sessionId: resumed.nextId || found.sessionId,
				turns: found.turns,
				added: resumed.turns,
			};
			key.lifeMs = lifeOf(row, nowMs);
			keys.set(entryKey, key);
		}
		return [...keys.values()];
	}
}

/**
 * How long a mapping lasts after its last use, in ms; 0 = forever. The last run that used the key chose the lifetime; a
 * resumed turn only restarts it.
 */
function lifeOf({ expiresAtMs, lastUsedAt }: TableRow, nowMs: number): number {
	const expiryMs = Number(expiresAtMs);
	if (expiryMs >= NEVER_MS) return 0;
	const usedMs = Date.parse(textOrNumber(lastUsedAt)) || nowMs;
	return Math.max(expiryMs - usedMs, expiryMs - nowMs);
}
