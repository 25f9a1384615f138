import { randomBytes } from 'node:crypto';
import { AgentRefusal } from './envelope';
import { noInterrupt, Session } from './session';
import type { InvokeCall } from './invokeCall';

const AGENT_RIGHTS = ['invoke', 'stream', 'media'] as const;
export type AgentRight = (typeof AGENT_RIGHTS)[number];

export interface AgentOptions {
	name?: string;
	/** The agent's token, which begins with `agt_`; default: a new one. */
	token?: string;
	/** What the agent's tokens may do; default: everything. */
	rights?: readonly AgentRight[];
}

/** One agent instance, as tests control it. */
export interface Agent {
	readonly agentId: string;
	readonly name: string;
	readonly token: string;
	/** Creates a temporary token that stops working after this time; with 0, it is expired from the start. */
	debugToken(validMs: number): string;
	/** Makes the instance forget all its sessions, or this one. */
	expireSessions(sessionId?: string): void;
	/** Lets the runs that `[hold]` has halted go on. */
	release(): void;
	/** The number of runs that `[hold]` is halting. */
	readonly held: number;
}

export class AgentInstance implements Agent {
	readonly agentId = `agent_${randomBytes(6).toString('hex')}`;
	readonly name: string;
	readonly token: string;
	readonly #rights: ReadonlySet<AgentRight>;
	readonly #sessions = new Map<string, Session>();
	readonly #debugTokens = new Map<string, number>();
	#held: Array<() => void> = [];

	constructor(
		{ name, token, rights = AGENT_RIGHTS }: AgentOptions,
		private readonly now: () => number,
		private readonly knowToken: (token: string, agent: AgentInstance) => void,
	) {
		this.token = token ?? `agt_${randomBytes(24).toString('hex')}`;
		if (!this.token.startsWith('agt_')) throw new Error('An agent token begins with agt_.');
		this.name = name ?? this.agentId;
		this.#rights = new Set(rights);
		knowToken(this.token, this);
	}

	get held(): number {
		return this.#held.length;
	}

	debugToken(validMs: number): string {
		const token = `dbg_${randomBytes(24).toString('hex')}`;
		this.#debugTokens.set(token, this.now() + validMs);
		this.knowToken(token, this);
		return token;
	}

	isExpired(token: string): boolean {
		return this.now() >= (this.#debugTokens.get(token) ?? Infinity);
	}

	mustAllow(right: AgentRight): void {
		if (!this.#rights.has(right)) {
			throw new AgentRefusal('forbidden', `The token has no right to ${right} at ${this.name}.`);
		}
	}

	expireSessions(sessionId?: string): void {
		const ids = sessionId === undefined ? [...this.#sessions.keys()] : [sessionId];
		for (const id of ids) {
			const session = this.#sessions.get(id);
			if (session !== undefined) session.gone = true;
			this.#sessions.delete(id);
		}
	}

	/** Finds or opens the session of a call; a new one is kept only once it has had a turn. Throws AgentRefusal. */
	sessionFor(call: InvokeCall): Session {
		const { sessionId, interruptAnswer } = call;
		if ((sessionId ?? '') === '' || sessionId === undefined) {
			if (interruptAnswer !== undefined) throw noInterrupt(interruptAnswer);
			return new Session(this.agentId);
		}
		const session = this.#sessions.get(sessionId);
		if (session === undefined) {
			throw new AgentRefusal('session_not_found', `There is no session ${sessionId}, or it has expired.`);
		}
		return session;
	}

	keep(session: Session): void {
		if (!session.gone) this.#sessions.set(session.id, session);
	}

	async untilReleased(): Promise<void> {
		await new Promise<void>((resolve) => {
			this.#held.push(resolve);
		});
	}

	release(): void {
		const held = this.#held;
		this.#held = [];
		for (const go of held) go();
	}
}

/** All instances, found by their tokens. */
export class AgentInstances {
	readonly #byToken = new Map<string, AgentInstance>();
	readonly #byId = new Map<string, AgentInstance>();

	constructor(private readonly now: () => number) {}

	create(options: AgentOptions = {}): AgentInstance {
		const agent = new AgentInstance(options, this.now, (token, owner) => this.#byToken.set(token, owner));
		this.#byId.set(agent.agentId, agent);
		return agent;
	}

	/** Finds the instance that an `Authorization` header names. Throws AgentRefusal. */
	fromHeader(authorization: string | undefined): { agent: AgentInstance; token: string } {
		const token = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1];
		if (token === undefined)
			throw new AgentRefusal('token_invalid', 'The Authorization header has no token.');
		if (!/^(agt|dbg)_/.test(token)) {
			const prefix = /^[a-z]+[-_]/i.exec(token)?.[0] ?? 'this kind';
			throw new AgentRefusal('token_kind', `A token ${prefix} does not open an agent: agt_ or dbg_ does.`);
		}
		const agent = this.#byToken.get(token);
		if (agent === undefined) throw new AgentRefusal('token_invalid', 'The token is unknown.');
		if (agent.isExpired(token)) throw new AgentRefusal('token_expired', 'The debug token has expired.');
		return { agent, token };
	}

	/** Releases all runs, because no test can once the platform has closed. */
	releaseAll(): void {
		for (const agent of this.#byId.values()) agent.release();
	}
}
