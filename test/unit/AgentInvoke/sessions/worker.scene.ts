import type { InvokeCall } from '../../../../nodes/AgentInvoke/api/api';
import { InterruptLimit } from '../../../../nodes/AgentInvoke/turns/interruptLimit';
import type { SessionSettings } from '../../../../nodes/AgentInvoke/sessions/sessionRows';
import { KnownSessions, SessionStore } from '../../../../nodes/AgentInvoke/sessions/sessionStore';
import { KeyedQueue } from '../../../../nodes/shared/time/keyedQueue';
import { runTurns, type TurnOutcome, type TurnSettings } from '../../../../nodes/AgentInvoke/turns/turn';
import { Liveness } from '../../../../nodes/shared/dataTable/claims';
import type { DataTable } from '../../../../nodes/shared/dataTable/table';
import type { LockParts } from '../../../../nodes/shared/dataTable/claimLock';
import { fail, ok } from '../../../../nodes/shared/errors/failure';
import type { Clock } from '../../../../nodes/shared/time/clock';
import { createRetryMemory } from '../../../../nodes/shared/run/retryMemory';
import { guardedTable } from '../../shared/guardedTable';
import type { MemoryTable } from '../../shared/memoryTable';
import type { TestClock } from '../../testClock';
import { replyOf } from '../agentReply.builder';
import { wireRequest } from '../../../../nodes/AgentInvoke/wire/request';
import { wireWith } from '../wire/wire.fixture';
import { valueOf } from '../../results';

const wire = wireWith();

/** One turn as the agent saw it. */
export interface Heard {
	readonly said: string;
	readonly sessionId: string;
	readonly fromMs: number;
}

/** An agent whose sessions accept one call at a time; it forgets sessions only through `expire`. */
export class OneAtATime {
	readonly heard: Heard[] = [];
	readonly opened: string[] = [];
	refusedAsBusy = 0;
	takesMs: (said: string) => number = () => 1_000;
	/** Whether a call is refused without running the agent. */
	refuses: (said: string) => boolean = () => false;
	/** How long after its start a stream reports its session; if undefined, only the answer reports it. */
	tellsAfterMs: number | undefined;
	/** The ID of all sessions that it opens, if they are one. */
	onlySession: string | undefined;
	private readonly busy = new Set<string>();
	private readonly gone = new Set<string>();

	constructor(private readonly clock: TestClock) {}

	expire(): void {
		for (const id of this.opened) this.gone.add(id);
	}

	readonly invoke = async ({ request, sessionId, onSession }: InvokeCall) => {
		const { body } = valueOf(request(sessionId));
		const said = typeof body.message === 'string' ? body.message : '';
		const refused = { kind: 'refused', message: 'No', advice: '' } as const;
		await this.clock.sleep(5);
		if (this.gone.has(sessionId)) return fail({ ...refused, isSessionUnknown: true });
		if (this.busy.has(sessionId)) {
			this.refusedAsBusy++;
			return fail({ ...refused, busySession: { retryAfter: undefined } });
		}
		if (this.refuses(said)) return fail(refused);
		const id = sessionId || (this.onlySession ?? `s${this.opened.length + 1}`);
		if (!sessionId) this.opened.push(id);
		this.busy.add(id);
		this.heard.push({ said, sessionId: id, fromMs: this.clock.elapsedMs });
		const takesMs = this.takesMs(said);
		const tellMs = Math.min(this.tellsAfterMs ?? takesMs, takesMs);
		await this.clock.sleep(tellMs);
		if (this.tellsAfterMs !== undefined) onSession(id);
		await this.clock.sleep(takesMs - tellMs);
		this.busy.delete(id);
		onSession(id);
		return ok(replyOf(`re ${said}`, id));
	};
}

/** A store of the agent "a" that is alone in its process, unless told otherwise. */
export function openStore(
	settings: Partial<SessionSettings>,
	table: DataTable,
	clock: Clock,
	{ known = new KnownSessions(), ...parts }: Partial<LockParts> & { known?: KnownSessions } = {},
): SessionStore {
	const { signal } = new AbortController();
	const alone = { table, clock, random: Math.random, signal, liveness: new Liveness() };
	const usual = { agent: 'a', workflowId: 'w', executionId: 'e', ttlMs: 0 };
	return new SessionStore({ ...usual, ...settings }, { ...alone, ...parts }, known);
}

export interface Ask {
	readonly key: string;
	readonly said: string;
	/** Which agent is called if a credential has several. */
	readonly agent?: string;
}

/** One n8n process, with what its executions share and its own clocks, which can die. */
export class WorkerProcess {
	readonly queue = new KeyedQueue();
	private readonly liveness = new Liveness();
	private readonly known = new KnownSessions();
	private readonly death = Promise.withResolvers<'died'>();
	private readonly clock: Clock;
	private isAlive = true;
	private calls = 0;
	/** The number of the table call at which the process dies, whether or not that call takes effect. */
	diesAt = Infinity;

	constructor(
		time: TestClock,
		private readonly table: MemoryTable,
		private readonly agent: OneAtATime,
		private readonly random: () => number = () => 0,
		skewMs = 0,
	) {
		this.clock = {
			now: () => time.now() + skewMs,
			wallNow: () => time.wallNow() + skewMs,
			sleep: async (ms, signal) => {
				await time.sleep(ms, signal);
				if (this.isDead()) await new Promise<never>(() => undefined);
			},
		};
	}

	private isDead(): boolean {
		return !this.isAlive;
	}

	die(): void {
		this.isAlive = false;
		this.death.resolve('died');
	}

	/** Runs one execution. */
	async run(
		asks: readonly Ask[],
		settings: Partial<TurnSettings> = {},
		signal: AbortSignal = new AbortController().signal,
	): Promise<TurnOutcome[] | 'died'> {
		return await Promise.race([this.work(asks, settings, signal), this.death.promise]);
	}

	private async work(
		asks: readonly Ask[],
		settings: Partial<TurnSettings>,
		signal: AbortSignal,
	): Promise<TurnOutcome[]> {
		const { clock, random, liveness, known, queue } = this;
		const owner = Symbol('run');
		const sinceMs = clock.now();
		const slots = asks.map(({ key }) => queue.enter(key, owner));
		const stores = new Map<string, SessionStore>();
		for (const { agent = 'a' } of asks) {
			const parts = { random, liveness, known, signal };
			const own = stores.get(agent) ?? openStore({ agent }, this.mortal(this.table.open()), clock, parts);
			stores.set(agent, own);
		}
		const isStrict = settings.turnOrder === 'strict';
		for (const [name, sessions] of isStrict ? [] : stores) {
			const keys = asks.flatMap(({ key, agent = 'a' }) => (agent === name ? [key] : []));
			valueOf(await sessions.load(keys));
		}
		const clientOf = ({ agent = 'a' }: Ask) => {
			const sessions = stores.get(agent);
			if (!sessions) throw new Error(`There is no agent ${agent}`);
			return { agent, sessions, api: { invoke: async (call: InvokeCall) => await this.invoke(call) } };
		};
		const outcomes = await runTurns(
			asks.map((ask, itemIndex) => ({
				...{ itemIndex, isResume: false, idempotencyKey: undefined, fingerprint: 'f', simplify: true },
				said: ask.said,
				client: clientOf(ask),
				session: { kind: 'mapped', key: ask.key } as const,
				...{ slot: slots[itemIndex], sinceMs },
			})),
			{
				...{ concurrency: 8, timeoutMs: 600_000, attempts: 1, sendAgain: false, renewExpired: false },
				maxInvocations: 0,
				...{ idempotencyAnswers: 'keep' as const, stopAtFailure: false, turnOrder: 'arrival' as const },
				...settings,
			},
			{
				...{ clock, random, signal, ledger: undefined },
				memory: createRetryMemory({}, { node: 'n', run: 0, part: 'turns' }),
				interruptLimit: new InterruptLimit({}, 0),
				payloadOf: async () => await Promise.resolve(ok('')),
				prepare: async ({ said: message }) => {
					const turn = { kind: 'message', message, files: [] } as const;
					return await Promise.resolve(
						ok((sessionId) => wireRequest(wire, turn, { sessionId, stream: false, uuid: 'u' })),
					);
				},
				onDelta: async () => undefined,
				received: async () => undefined,
			},
		);
		for (const sessions of stores.values()) {
			valueOf(await sessions.flush());
		}
		return outcomes;
	}

	/** Calls the agent; a dead process gets no answer. */
	private async invoke(call: InvokeCall): ReturnType<OneAtATime['invoke']> {
		if (this.isDead()) return await new Promise<never>(() => undefined);
		const answer = await this.agent.invoke({
			...call,
			onSession: (id) => (this.isDead() ? undefined : call.onSession(id)),
		});
		return this.isDead() ? await new Promise<never>(() => undefined) : answer;
	}

	private mortal(table: DataTable): DataTable {
		const live = async <T>(work: () => Promise<T>): Promise<T> => {
			if (this.isDead()) return await new Promise<never>(() => undefined);
			this.calls++;
			if (this.calls < this.diesAt) {
				const done = await work();
				return this.isDead() ? await new Promise<never>(() => undefined) : done;
			}
			// This is the last call that the process makes.
			void work();
			this.die();
			return await new Promise<never>(() => undefined);
		};
		return guardedTable(table, live);
	}
}
