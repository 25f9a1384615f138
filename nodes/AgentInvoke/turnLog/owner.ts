import type { DataTable } from '../../shared/dataTable/table';
import { digestOf, nodeOwner, type NodeIds } from '../../shared/dailyLimit/calendarDay';
import { ok, type Result } from '../../shared/errors/failure';
import { textOrNumber } from '../../shared/text/textOf';
import type { SessionChoice } from '../turns/turnSession';

/** Where a turn belongs. */
export interface OwnedTurn {
	readonly agent: string;
	readonly session: SessionChoice;
}

interface KeyOfSession {
	readonly entryKey: string;
	/** As people read it. */
	readonly sessionKey: string;
}

/**
 * Whose turns are whose, where they are counted per key: the key's, at one agent. A session that is named by its ID (an
 * interrupt is answered there) counts for the key that opened it, by the table of sessions, else for itself. Turns that
 * begin a session without a key are the node's, all together.
 */
export class TurnOwners {
	/** By agent and session. */
	private readonly keys = new Map<string, KeyOfSession | undefined>();

	constructor(
		private readonly node: NodeIds,
		/** `flow_agent_sessions` */
		private readonly sessions: DataTable,
	) {}

	/** Looks up the keys of sessions that are named by their IDs; of others there is nothing to look up. */
	async load(turns: readonly OwnedTurn[]): Promise<Result<undefined>> {
		const missing = new Map<string, OwnedTurn & { readonly id: string }>();
		for (const { agent, session } of turns) {
			if (session.kind !== 'explicit') continue;
			const name = nameOf(agent, session.id);
			if (!this.keys.has(name)) missing.set(name, { agent, session, id: session.id });
		}
		if (missing.size === 0) return ok(undefined);
		const read = await this.sessions.read(
			'sessionId',
			[...missing.values()].map(({ id }) => id),
		);
		if (!read.ok) return read;
		for (const name of missing.keys()) this.keys.set(name, undefined);
		for (const row of read.value) {
			const name = nameOf(textOrNumber(row.agent), textOrNumber(row.sessionId));
			const entryKey = textOrNumber(row.entryKey);
			// Two agents may number their sessions alike; of several keys the first row counts.
			if (!missing.has(name) || this.keys.get(name) || !entryKey) continue;
			this.keys.set(name, { entryKey, sessionKey: textOrNumber(row.sessionKey) });
		}
		return ok(undefined);
	}

	/** Who has the turn, as a digest. */
	ownerOf({ agent, session }: OwnedTurn): string {
		// As in the table of sessions, column `entryKey`.
		if (session.kind === 'mapped') return digestOf(agent, session.key);
		if (session.kind === 'new') return this.nodeOwner;
		return this.keys.get(nameOf(agent, session.id))?.entryKey ?? digestOf('session', agent, session.id);
	}

	/** The key of a turn as far as it is known, uncut where it was given. */
	keyOf({ agent, session }: OwnedTurn): string {
		if (session.kind === 'mapped') return session.key;
		return session.kind === 'new' ? '' : (this.keys.get(nameOf(agent, session.id))?.sessionKey ?? '');
	}

	get nodeOwner(): string {
		return nodeOwner(this.node);
	}
}

function nameOf(agent: string, sessionId: string): string {
	return JSON.stringify([agent, sessionId]);
}
