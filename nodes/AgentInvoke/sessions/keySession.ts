import { storable } from '../../shared/dataTable/cells';
import type { TableRow } from '../../shared/dataTable/table';
import type { Lease } from '../../shared/dataTable/tableLock';
import { textOrNumber } from '../../shared/text/textOf';
import { sessionIn, type StoredCells, type StoredSession } from './sessionRows';

/** A session as a run knows it. It stays the same object if the session continues under another ID. */
export interface KnownSession {
	sessionId: string;
	/** Turns counted in the row. */
	turns: number;
	/** Turns not yet counted in the row. */
	added: number;
}

/** What a run knows about one key, and the lease it may hold. */
export class KeySession {
	session: KnownSession | undefined;
	/** What the key's row contains; undefined if there was none. */
	stored: StoredCells | undefined;
	/** Cells that failed writes may have left in the row. */
	unclear: readonly StoredCells[] = [];
	/** The rows as read while the key had no session. */
	unopened: readonly TableRow[] | undefined;
	/** Held while this run opens the session, or during a turn in strict order. */
	lease: Lease | undefined;
	/** In strict order the lease is kept until the turn is over, even after a write. */
	isStrict = false;
	/** Whether another execution took over the row while it was held, or somebody deleted it. */
	isLost = false;

	constructor(
		readonly key: string,
		readonly entryKey: string,
	) {}

	/** Empty if the key has no session as far as this run knows. */
	get sessionId(): string {
		return this.session?.sessionId ?? '';
	}

	get isHeld(): boolean {
		return this.lease !== undefined;
	}

	/** Whether the table has the session that this run knows. */
	get isStored(): boolean {
		return (
			this.session !== undefined &&
			textOrNumber(this.stored?.sessionId).trim() === storable(this.session.sessionId).trim()
		);
	}

	/** Takes over what the key's rows say. @param nowMs time of day @returns the session */
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
