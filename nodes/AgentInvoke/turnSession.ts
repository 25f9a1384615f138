import type { UsedSession } from './record';
import type { SessionStore } from './sessions';

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

/** The session of one turn: the only place where a turn obtains it and says what became of it. */
export class TurnSession {
	/** Empty if the session is not mapped. */
	readonly key: string;

	constructor(
		private readonly choice: SessionChoice,
		private readonly sessions: SessionStore,
	) {
		this.key = choice.kind === 'mapped' ? choice.key : '';
	}

	/** Empty if the call is to open a new session. */
	get id(): string {
		if (this.choice.kind === 'explicit') return this.choice.id;
		return this.key && this.sessions.find(this.key);
	}

	get source(): UsedSession['source'] {
		return this.id ? this.choice.kind : 'new';
	}

	/** The call opened a session, or was told its ID. */
	opened(id: string): void {
		if (this.key) this.sessions.opened(this.key, id);
	}

	/** A turn was taken in it. */
	used(): void {
		if (this.key) this.sessions.used(this.key);
	}

	/** Takes a recorded answer's session, which the table may lack if the try that asked ended early. */
	restore(id: string): void {
		if (id && !this.id) this.opened(id);
	}
}
