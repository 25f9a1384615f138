import { nodeOwner, type NodeIds } from '../../shared/effects/calendarDay';
import type { DataTable } from '../../shared/dataTable/table';
import { ok, type Result } from '../../shared/errors/failure';
import { digestOf } from '../../shared/text/sha256';
import { textOrNumber } from '../../shared/text/textOf';
import { entryKeyOf, nameOfSession } from '../sessions/sessionRows';
import type { SessionChoice } from '../turns/turn';

export interface OwnedTurn {
	readonly itemIndex: number;
	readonly client: { readonly agent: string };
	readonly session: SessionChoice;
	readonly isResume: boolean;
}

/**
 * Assigns each turn to the owner that it counts for, if turns are counted per key. An owner is usually a session key
 * with one agent. A turn in a session given by ID (as when an interrupt is answered) counts for the key that opened the
 * session, if the table of sessions contains it, otherwise for the session itself. Turns that start a session without a
 * key count for the node.
 */
export class TurnOwners {
	/** By agent and session: the key in a readable form, and its digest. */
	private readonly keys = new Map<string, { sessionKey: string; entryKey: string } | undefined>();

	constructor(
		private readonly node: NodeIds,
		/** The table `flow_agent_sessions`. */
		private readonly sessions: DataTable,
	) {}

	/** Looks up the keys of sessions that are given by ID. */
	async load(turns: readonly OwnedTurn[]): Promise<Result<undefined>> {
		const missing = new Map<string, string>();
		for (const { client, session } of turns) {
			if (session.kind !== 'explicit') continue;
			const name = nameOfSession(client.agent, session.id);
			if (!this.keys.has(name)) missing.set(name, session.id);
		}
		const read = await this.sessions.read('sessionId', [...missing.values()]);
		if (!read.ok) return read;
		for (const name of missing.keys()) this.keys.set(name, undefined);
		for (const row of read.value) {
			const name = nameOfSession(textOrNumber(row.agent), textOrNumber(row.sessionId));
			const entryKey = textOrNumber(row.entryKey);
			// Two agents may use the same session IDs. If several keys match, the first row is used.
			if (!missing.has(name) || this.keys.get(name) || !entryKey) continue;
			this.keys.set(name, { entryKey, sessionKey: textOrNumber(row.sessionKey) });
		}
		return ok(undefined);
	}

	ownerOf({ client: { agent }, session }: OwnedTurn): string {
		if (session.kind === 'mapped') return entryKeyOf(agent, session.key);
		if (session.kind === 'new') return this.nodeOwner;
		return (
			this.keys.get(nameOfSession(agent, session.id))?.entryKey ?? digestOf('session', agent, session.id)
		);
	}

	/** The session key of a turn, if known: in full if the item gave it, otherwise as stored in the table. */
	keyOf({ client: { agent }, session }: OwnedTurn): string {
		if (session.kind === 'mapped') return session.key;
		return session.kind === 'new' ? '' : (this.keys.get(nameOfSession(agent, session.id))?.sessionKey ?? '');
	}

	get nodeOwner(): string {
		return nodeOwner(this.node);
	}
}
