import { storable } from '../../shared/dataTable/cells';
import type { TableRow } from '../../shared/dataTable/table';
import type { Lease } from '../../shared/dataTable/tableLock';
import { textOrNumber } from '../../shared/text/textOf';
import { sessionIn, type StoredCells, type StoredSession } from './sessionRows';

/** A session as a run knows it; the same object where it goes on under another ID. */
export interface KnownSession {
	sessionId: string;
	/** Turns that the row has. */
	turns: number;
	/** Turns that it lacks. */
	added: number;
}

/** What a run knows of one key, and what it holds of it. */
export class KeySession {
	session: KnownSession | undefined;
	/** What the row of the key has; undefined if there was none. */
	stored: StoredCells | undefined;
	/** What failed writes may have left there. */
	unclear: readonly StoredCells[] = [];
	/** What was read when it had no session. */
	unopened: readonly TableRow[] | undefined;
	/** Held while its session is opened here, or its turn is taken in strict order. */
	lease: Lease | undefined;
	/** The lease is kept until the turn is over, whatever is written before. */
	isStrict = false;
	/** Another execution took its row over while it was held, or somebody deleted it. */
	isLost = false;

	constructor(
		readonly key: string,
		readonly entryKey: string,
	) {}

	/** Empty if it has none as far as the run knows. */
	get sessionId(): string {
		return this.session?.sessionId ?? '';
	}

	get isHeld(): boolean {
		return this.lease !== undefined;
	}

	/** Whether the table has the session that the run knows. */
	get isStored(): boolean {
		return (
			this.session !== undefined &&
			textOrNumber(this.stored?.sessionId).trim() === storable(this.session.sessionId).trim()
		);
	}

	/** Takes over what its rows say. @param nowMs time of day @returns the session */
	learn(rows: readonly TableRow[], nowMs: number): string {
		const session = sessionIn(rows, nowMs);
		return session ? this.goOnIn(session) : this.forget();
	}

	goOnIn({ sessionId, stored, turns }: StoredSession): string {
		if (this.session?.sessionId === sessionId) this.session.turns = turns;
		else this.session = { sessionId, turns, added: 0 };
		this.stored = stored;
		return sessionId;
	}

	forget(): '' {
		this.session = undefined;
		this.stored = undefined;
		return '';
	}
}
