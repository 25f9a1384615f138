import type { Clock } from '../../shared/run/clock';
import { fail, ok, type Result } from '../../shared/errors/failure';
import type { UsedSession } from './savedAnswer';
import type { SessionStore } from '../sessions/sessionStore';
import type { LockAttempt } from '../../shared/dataTable/lockRows';
import type { Slot } from '../../shared/run/keyedQueue';
import type { WaitLimit } from '../sessions/waitLimit';

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

/**
 * - `arrival`: the turns of a key in one n8n process follow each other as they came
 * - `strict`: those of all processes do, in the order of the table
 */
export type TurnOrder = 'arrival' | 'strict';

/** What a turn says of its session. */
export interface SessionUse {
	readonly session: SessionChoice;
	readonly client: { readonly sessions: SessionStore };
	/** In the queue of the process for this session; without it nobody is waited for. */
	readonly slot?: Slot | undefined;
	/** It answers an interrupt in a session that may be that of a key. */
	readonly isResume: boolean;
}

/** The session of one turn: the only place where a turn obtains it and says what became of it. */
export class TurnSession {
	/** Empty if the session is not mapped. */
	readonly key: string;
	/** In the line of all processes, where it waits behind others of this one. */
	private line: LockAttempt | undefined;

	constructor(
		private readonly use: SessionUse,
		private readonly clock: Clock,
		private readonly turnOrder: TurnOrder,
	) {
		this.key = use.session.kind === 'mapped' ? use.session.key : '';
	}

	/** Empty if the call is to open a new session. */
	get id(): string {
		const { session } = this.use;
		if (session.kind === 'explicit') return session.id;
		return this.key && this.sessions.find(this.key);
	}

	get source(): UsedSession['source'] {
		return this.id ? this.use.session.kind : 'new';
	}

	private get sessions(): SessionStore {
		return this.use.client.sessions;
	}

	/** The message has come: in strict order it takes its place before those that come to other processes later. */
	lineUp(): void {
		const { key, sessions } = this;
		const { slot } = this.use;
		if (key && this.turnOrder === 'strict' && slot && !slot.isFirst) this.line = sessions.lineUp(key);
	}

	/**
	 * Waits for the turn of this key, and for its session or the right to open one. Whoever holds something here waits
	 * only for what comes later in this order, so that no two wait for each other: queue, row of the key.
	 * `end` must follow, however it ends.
	 */
	async begin(waitLimit: WaitLimit): Promise<Result<undefined>> {
		const { key, sessions, clock } = this;
		const { slot } = this.use;
		if (slot && !slot.isFirst) {
			waitLimit.pause();
			await slot.wait(waitLimit.untilMs - clock.now(), clock, waitLimit.signal);
		}
		const stop = waitLimit.whyStop();
		if (stop) return fail(stop);
		if (!key) return ok(undefined);
		const { line } = this;
		this.line = undefined;
		const obtained =
			this.turnOrder === 'strict'
				? await sessions.hold(key, waitLimit, line)
				: await sessions.obtain(key, waitLimit, { isOld: slot?.isBehindOthers === true });
		if (!obtained.ok) return obtained;
		// Waiting took its time, in which the run may have ended.
		const late = waitLimit.whyStop();
		return late ? fail(late) : ok(undefined);
	}

	/** The platform no longer knows the session. @returns the one to go on with; empty where a new one is to be opened */
	async renew(waitLimit: WaitLimit): Promise<Result<string>> {
		if (!this.key) return ok('');
		return await this.sessions.obtain(this.key, waitLimit, { voidId: this.id });
	}

	/** The call opened a session, or was told its ID. @param askedIn the session in which the agent was asked, if any */
	opened(id: string, askedIn = ''): void {
		const { key, sessions } = this;
		if (key && !sessions.isReplaced(key, askedIn)) sessions.opened(key, id, askedIn !== '');
	}

	/** A turn was taken in it. @param answeredId the session that the answer names */
	used(answeredId: string): void {
		const { key, sessions } = this;
		if (key && !sessions.isReplaced(key, answeredId)) sessions.used(key);
		else if (!key && this.use.isResume) sessions.resumedById(this.id, answeredId);
	}

	/** Takes a saved answer's session, which the table may lack if the try that asked ended early. */
	async restore(id: string): Promise<void> {
		const { key } = this;
		if (!id || !key || this.id) return;
		// In strict order nothing has been read of a key whose turn has not come.
		if (this.turnOrder === 'strict') await this.sessions.load([key]);
		if (!this.id) this.opened(id);
	}

	/** The turn is over: the next one finds what is known of the session. @param isStopped nothing is waited for */
	async end(isStopped: boolean): Promise<void> {
		const { key, sessions } = this;
		const { slot } = this.use;
		if (this.line) sessions.leaveLine(this.line);
		const told = key ? sessions.release(key, slot?.isWanted === true) : undefined;
		if (!isStopped) await told;
		slot?.leave();
	}
}
