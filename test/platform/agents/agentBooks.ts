import { canonicalJson } from '../wireJson';
import type { JsonRecord } from '../wireJson';
import type { InterruptAnswer, InvokeCall } from './invokeCall';
import type { MediaFile } from './mediaStore';
import type { Session } from './session';

/** A file of a call, as the agent saw it. */
export interface SeenFile {
	url: string;
	name: string | null;
	mimeType: string | null;
	/** Null if the agent did not fetch the file, because the URL is not the platform's own. */
	bytes: number | null;
}

export interface InvocationEntry {
	agentId: string;
	sessionId: string;
	turn: number;
	message: string | null;
	files: SeenFile[];
	interruptAnswered: InterruptAnswer | null;
	/** The side effects that the call carried out. */
	effects: string[];
	extraBody: JsonRecord;
	body: JsonRecord;
	stream: boolean;
	startedAtMs: number;
	endedAtMs: number | null;
	answer: string;
	/** Whether the whole answer was sent; unknown as long as the connection is open. */
	answered: 'yes' | 'no' | 'unknown';
}

export interface SessionEntry {
	sessionId: string;
	agentId: string;
	turns: number;
	messages: string[];
	/** The ID of the interrupt that is waiting for its result. */
	pendingInterrupt: string | null;
}

export interface MediaEntry {
	agentId: string;
	name: string;
	mimeType: string;
	bytes: number;
	/** How often the whole file was fetched. */
	reads: number;
}

/** The record of what agents really did. */
export interface AgentRecords {
	/** One entry per call that an agent really ran, in the order of their starts. */
	invocations: InvocationEntry[];
	/** The number of invocations with the agent, requested session, message and interrupt answer of an earlier one. */
	duplicateInvocations: number;
	/** How often each side effect was carried out. */
	effects: Record<string, number>;
	/** The sessions that had at least one turn. */
	sessions: SessionEntry[];
	media: MediaEntry[];
	/** The number of refused calls by reason. */
	agentRefusals: Record<string, number>;
	/** The most calls of one session in flight at once, including those that were refused as busy. */
	concurrentPerSession: number;
	mostInvocationsAtOnce: number;
}

function sessionEntry(session: Session): SessionEntry {
	return {
		sessionId: session.id,
		agentId: session.agentId,
		turns: session.turns,
		messages: [...session.messages],
		pendingInterrupt: session.pending?.id ?? null,
	};
}

function mediaEntry({ agentId, name, mimeType, content, reads }: MediaFile): MediaEntry {
	return { agentId, name, mimeType, bytes: content.length, reads };
}

/** The part of the books that concerns agents. */
export class AgentBooks {
	#invocations: InvocationEntry[] = [];
	#duplicates = 0;
	#keys = new Set<string>();
	#sessions = new Set<Session>();
	#media: MediaFile[] = [];
	#refusals = new Map<string, number>();
	#concurrentPerSession = 0;
	#mostAtOnce = 0;
	// A reset does not clear this, because these calls go on.
	readonly #inFlight = new Map<Session, number>();
	#running = 0;

	/** Notes that a call has reached a session. The returned function is called when it leaves the session. */
	sessionEntered(session: Session): () => void {
		const calls = (this.#inFlight.get(session) ?? 0) + 1;
		this.#inFlight.set(session, calls);
		this.#concurrentPerSession = Math.max(this.#concurrentPerSession, calls);
		return () => {
			const left = (this.#inFlight.get(session) ?? 1) - 1;
			if (left === 0) this.#inFlight.delete(session);
			else this.#inFlight.set(session, left);
		};
	}

	/** Notes that the agent begins to run. */
	invocationStarted(session: Session, call: InvokeCall, files: SeenFile[], nowMs: number): InvocationEntry {
		// A call without a session opens a new one each time, so its repetition only shows in what it requested.
		const asked = call.sessionId ?? null;
		const key = canonicalJson([session.agentId, asked, call.message ?? null, { ...call.interruptAnswer }]);
		if (this.#keys.has(key)) this.#duplicates++;
		this.#keys.add(key);
		const entry: InvocationEntry = {
			agentId: session.agentId,
			sessionId: session.id,
			turn: session.turns,
			message: call.message ?? null,
			files,
			interruptAnswered: call.interruptAnswer ?? null,
			effects: [],
			extraBody: call.extraBody,
			body: call.body,
			stream: call.stream,
			startedAtMs: nowMs,
			endedAtMs: null,
			answer: '',
			answered: 'unknown',
		};
		this.#invocations.push(entry);
		this.#sessions.add(session);
		this.#running++;
		this.#mostAtOnce = Math.max(this.#mostAtOnce, this.#running);
		return entry;
	}

	invocationEnded(entry: InvocationEntry, nowMs: number): void {
		entry.endedAtMs = nowMs;
		this.#running--;
	}

	uploaded(file: MediaFile): void {
		this.#media.push(file);
	}

	refused(reason: string): void {
		this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
	}

	snapshot(): AgentRecords {
		const effects = new Map<string, number>();
		for (const effect of this.#invocations.flatMap((entry) => entry.effects)) {
			effects.set(effect, (effects.get(effect) ?? 0) + 1);
		}
		return {
			invocations: this.#invocations.map((entry) => ({ ...entry, effects: [...entry.effects] })),
			duplicateInvocations: this.#duplicates,
			effects: Object.fromEntries(effects),
			sessions: [...this.#sessions].map(sessionEntry),
			media: this.#media.map(mediaEntry),
			agentRefusals: Object.fromEntries(this.#refusals),
			concurrentPerSession: this.#concurrentPerSession,
			mostInvocationsAtOnce: this.#mostAtOnce,
		};
	}

	reset(): void {
		this.#invocations = [];
		this.#duplicates = 0;
		this.#keys = new Set();
		this.#sessions = new Set();
		this.#media = [];
		this.#refusals = new Map();
		this.#concurrentPerSession = Math.max(0, ...this.#inFlight.values());
		this.#mostAtOnce = this.#running;
	}
}
