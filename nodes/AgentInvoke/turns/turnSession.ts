import type { Clock } from '../../shared/run/clock';
import { fail, ok, type Result } from '../../shared/errors/failure';
import type { UsedSession } from './savedAnswer';
import type { SessionStore } from '../sessions/sessionStore';
import type { LockAttempt } from '../../shared/dataTable/lockRows';
import type { Slot } from '../../shared/run/keyedQueue';
import type { WaitLimit } from './waitLimit';

/** Which session an item's turn belongs to. */
export type SessionChoice =
	| { readonly kind: 'mapped'; readonly key: string }
	| { readonly kind: 'explicit'; readonly id: string }
	| { readonly kind: 'new' };

/**
 * - `arrival`: the turns of a key in one n8n process run in the order they arrived
 * - `strict`: the turns of a key in all processes run in the order of the table's queue
 */
export type TurnOrder = 'arrival' | 'strict';

/** What a turn needs to use its session. */
export interface SessionUse {
	readonly session: SessionChoice;
	readonly client: { readonly sessions: SessionStore };
	/** The turn's slot in the process's queue for this session; without a slot, the turn does not wait. */
	readonly slot?: Slot | undefined;
	/** Whether the turn answers an interrupt, in a session that may belong to a key. */
	readonly isResume: boolean;
}

/** The session of one turn: the only place where a turn obtains it and reports what became of it. */
export class TurnSession {
	/** Empty if the session is not mapped. */
	readonly key: string;
	/** The position in the table's queue, reserved while the turn is still queued in this process. */
	private line: LockAttempt | undefined;

	constructor(
		private readonly use: SessionUse,
		private readonly clock: Clock,
		private readonly turnOrder: TurnOrder,
	) {
		this.key = use.session.kind === 'mapped' ? use.session.key : '';
	}

	/** Empty if the call should open a new session. */
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

	/**
	 * Called when the message arrives: in strict order it reserves a position in the table's queue, ahead of messages
	 * that reach other processes later.
	 */
	lineUp(): void {
		const { key, sessions } = this;
		const { slot } = this.use;
		if (key && this.turnOrder === 'strict' && slot && !slot.isFirst) this.line = sessions.lineUp(key);
	}

	/**
	 * Waits until the turn may use its key, and for the key's session or the right to open one. A turn always takes its
	 * slot in the queue first, then the key's row, so no two turns wait for each other. Always call `end` afterwards.
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
		// The run may have ended during the wait.
		const late = waitLimit.whyStop();
		return late ? fail(late) : ok(undefined);
	}

	/**
	 * Replaces a session that the platform no longer knows.
	 * @returns the session to continue in; empty if a new one should be opened
	 */
	async renew(waitLimit: WaitLimit): Promise<Result<string>> {
		if (!this.key) return ok('');
		return await this.sessions.obtain(this.key, waitLimit, { voidId: this.id });
	}

	/**
	 * Called when a call has opened a session, or learned its ID.
	 * @param askedIn the session in which the agent was asked, if any
	 */
	opened(id: string, askedIn = ''): void {
		const { key, sessions } = this;
		if (key && !sessions.isReplaced(key, askedIn)) sessions.opened(key, id, askedIn !== '');
	}

	/** Records a turn in the session. @param answeredId the session that the answer names */
	used(answeredId: string): void {
		const { key, sessions } = this;
		if (key && !sessions.isReplaced(key, answeredId)) sessions.used(key);
		else if (!key && this.use.isResume) sessions.resumedById(this.id, answeredId);
	}

	/** Takes over a saved answer's session, which the table may lack if the try that asked ended early. */
	async restore(id: string): Promise<void> {
		const { key } = this;
		if (!id || !key || this.id) return;
		// In strict order, nothing has been read for a key before its turn comes.
		if (this.turnOrder === 'strict') await this.sessions.load([key]);
		if (!this.id) this.opened(id);
	}

	/** Ends the turn and releases its session. @param isStopped do not wait for the table */
	async end(isStopped: boolean): Promise<void> {
		const { key, sessions } = this;
		const { slot } = this.use;
		if (this.line) sessions.leaveLine(this.line);
		const released = key ? sessions.release(key, slot?.isWanted === true) : undefined;
		if (!isStopped) await released;
		slot?.leave();
	}
}
