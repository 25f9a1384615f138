import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';

import { TEST_HOST } from '../../../platform/host';
import type { AskedTurn, Dialect, OpenAsk, TurnFacts } from './dialect';
import type { Plan, RefusalKind } from './plan';

export const TOKEN = 'agt_dialect-0123456789abcdef';

export interface SeenRequest {
	readonly body: unknown;
	/** `ran`, or why the agent did not run. */
	verdict: 'ran' | RefusalKind;
	/** What was wrong with the call's format. */
	problem: string;
	/** The answer, event by event, as it would have been without a cut. */
	answer: readonly string[];
}

export interface Conversation {
	/** The messages, in the order in which the agent ran; `results` likewise. */
	readonly turns: readonly string[];
	readonly results: ReadonlyArray<{ readonly id: string; readonly output: string }>;
}

interface Talk {
	turns: string[];
	results: Array<{ id: string; output: string }>;
	asks: OpenAsk[];
}

interface Answer {
	readonly status: number;
	readonly type: string;
	readonly turn: TurnFacts;
	readonly texts: readonly string[];
}

const PIECES = 3;

/**
 * A small real server with a product's public API, which shares no code with the local platform. It refuses
 * anything that the product does not know, and records its calls for assertions.
 */
export class StandIn {
	/** What the agent does with a message; results of tools are passed as their texts. */
	plan: (said: string, turn: number) => Plan = () => ({});
	baseUrl = '';
	private seen: SeenRequest[] = [];
	private talks: Talk[] = [];
	/** The conversation of each ID and its length then; if answers have their own IDs, an older one branches off. */
	private sessions = new Map<string, { readonly talk: Talk; readonly length: number }>();
	private lastNumber = 0;

	private constructor(
		private readonly app: FastifyInstance,
		private readonly dialect: Dialect,
	) {}

	static async open(dialect: Dialect): Promise<StandIn> {
		const app = fastify({ forceCloseConnections: true });
		const server = new StandIn(app, dialect);
		const refuse = async (reply: FastifyReply, kind: RefusalKind, detail = ''): Promise<void> => {
			const [status, message, code = ''] = dialect.refusals[kind];
			await reply.code(status).send(dialect.refusalBody(message || detail, code, status));
		};
		app.setNotFoundHandler(async (_request, reply) => await refuse(reply, 'noSuchPath'));
		app.setErrorHandler(async (error, _request, reply) => await refuse(reply, 'malformed', String(error)));
		for (const path of dialect.paths) {
			app.post(path, async (request, reply) => {
				await server.receive(request, reply, refuse);
				return reply;
			});
		}
		const { opening } = dialect;
		if (opening) {
			app.post(opening.path, async ({ headers }, reply) => {
				if (headers.authorization !== `Bearer ${TOKEN}`) await refuse(reply, 'token');
				return opening.body(server.openSession());
			});
		}
		server.baseUrl = await app.listen({ port: 0, host: TEST_HOST });
		return server;
	}

	/** The calls, in order of arrival. */
	get requests(): readonly SeenRequest[] {
		return this.seen;
	}

	/** The conversations, in the order in which they were opened. */
	get conversations(): Conversation[] {
		return this.talks.map(({ turns, results }) => ({ turns: [...turns], results: [...results] }));
	}

	private openSession(): string {
		const id = this.dialect.sessionId(String(++this.lastNumber).padStart(12, '0'));
		this.sessions.set(id, { talk: { turns: [], results: [], asks: [] }, length: 0 });
		return id;
	}

	/** Makes the server forget all its sessions. */
	forgetSessions(): void {
		this.sessions = new Map();
	}

	reset(): void {
		this.plan = () => ({});
		this.seen = [];
		this.talks = [];
		this.forgetSessions();
	}

	async close(): Promise<void> {
		await this.app.close();
	}

	private async receive(
		request: FastifyRequest,
		reply: FastifyReply,
		refuse: (reply: FastifyReply, kind: RefusalKind, detail?: string) => Promise<void>,
	): Promise<void> {
		const { body } = request;
		const seen: SeenRequest = { body, verdict: 'ran', problem: '', answer: [] };
		this.seen.push(seen);
		const asked = this.dialect.read(request);
		const isKnown = request.headers.authorization === `Bearer ${TOKEN}`;
		const planned = typeof asked === 'string' ? {} : this.planOf(asked);
		const why = isKnown ? this.whyNot(asked, planned) : ({ kind: 'token' } as const);
		if (why || typeof asked === 'string') {
			seen.verdict = why?.kind ?? 'malformed';
			seen.problem = why?.problem ?? '';
			await refuse(reply, seen.verdict, seen.problem);
			return;
		}
		await this.run(asked, planned, seen, reply);
	}

	private planOf({ session, said, results }: AskedTurn): Plan {
		const turns = this.sessions.get(session)?.length ?? 0;
		return this.plan(said ?? results.map(({ output }) => output).join(', '), turns + 1);
	}

	private whyNot(
		asked: AskedTurn | string,
		{ refuses }: Plan,
	): { readonly kind: RefusalKind; readonly problem?: string } | undefined {
		if (typeof asked === 'string') return { kind: 'malformed', problem: asked };
		const talk = this.sessions.get(asked.session)?.talk;
		if (asked.session !== '' && !talk) return { kind: 'sessionUnknown' };
		if (refuses) return { kind: refuses };
		const open = (talk?.asks ?? []).filter((ask) => !this.dialect.isAnsweredByMessage(ask));
		const given = asked.results.map(({ id }) => id);
		const missing = open.find(({ id }) => !given.includes(id));
		if (missing) return { kind: 'malformed', problem: `no result for ${missing.id}` };
		const unknown = given.find((id) => !open.some((ask) => ask.id === id));
		return unknown === undefined ? undefined : { kind: 'malformed', problem: `nothing waits for ${unknown}` };
	}

	private async run(asked: AskedTurn, plan: Plan, seen: SeenRequest, reply: FastifyReply): Promise<void> {
		const turn = this.take(this.talkOf(asked), asked, plan);
		const isStreamed = plan.form ? plan.form === 'streamed' : asked.isStreamed;
		if (!isStreamed) {
			const whole = plan.fails && this.dialect.failedWhole(turn, plan.fails);
			const text = JSON.stringify(whole?.body ?? this.dialect.whole(turn));
			const head = { status: whole?.status ?? 200, type: 'application/json' };
			await this.write(reply, { ...head, turn, texts: [text] }, plan, seen);
			return;
		}
		const { fails } = plan;
		const events = fails ? this.dialect.failedEvents(turn, fails) : this.dialect.events(turn);
		const { streamType: type = 'text/event-stream; charset=utf-8' } = this.dialect;
		await this.write(reply, { status: 200, type, turn, texts: events }, plan, seen);
	}

	private talkOf({ session }: AskedTurn): Talk {
		const found = this.sessions.get(session);
		if (found && !this.talks.includes(found.talk)) this.talks.push(found.talk);
		if (found && (!this.dialect.renewsSession || found.length === lengthOf(found.talk))) return found.talk;
		// A call that continues from an older answer starts another conversation.
		const turns = found?.talk.turns.slice(0, found.length) ?? [];
		const talk: Talk = { turns, results: [], asks: [] };
		this.talks.push(talk);
		return talk;
	}

	private take(talk: Talk, { session: named, said, results }: AskedTurn, plan: Plan): TurnFacts {
		const number = String(++this.lastNumber).padStart(12, '0');
		const [waiting] = talk.asks;
		const given = said !== undefined && waiting ? [{ id: waiting.id, output: said }] : results;
		talk.results.push(...given);
		if (said !== undefined && !waiting) talk.turns.push(said);
		talk.asks = (plan.asks ?? []).map((ask, index) => ({ ...ask, id: `ask_${number}_${index}` }));
		const session = named !== '' && !this.dialect.renewsSession ? named : this.dialect.sessionId(number);
		this.sessions.set(session, { talk, length: lengthOf(talk) });
		const outputs = given.map(({ output }) => output).join(', ');
		const usual = given.length > 0 ? `given ${outputs}` : `${talk.turns.length}: ${said ?? ''}`;
		const text = plan.says ?? (talk.asks.length > 0 ? '' : usual);
		const { preamble = '', draft = '' } = plan;
		const tokens = { tokensIn: said?.length ?? 0, tokensOut: preamble.length + text.length };
		return { number, session, pieces: piecesOf(text), text, preamble, draft, asks: talk.asks, ...tokens };
	}

	private async write(
		reply: FastifyReply,
		{ status, type, turn, texts }: Answer,
		{ cut }: Plan,
		seen: SeenRequest,
	): Promise<void> {
		const { raw } = reply.hijack();
		raw.on('error', () => undefined);
		raw.writeHead(status, { ...this.dialect.headers?.(turn), 'content-type': type });
		raw.flushHeaders();
		let left = cut?.afterBytes ?? Infinity;
		let length = 0;
		seen.answer = texts;
		for (const text of texts) {
			const bytes = Buffer.from(text);
			length += bytes.length;
			const part = bytes.subarray(0, left);
			left -= part.length;
			if (part.length > 0) await new Promise<void>((resolve) => raw.write(part, () => resolve()));
		}
		if (cut?.how === 'broken' && cut.afterBytes < length) raw.destroy();
		else raw.end();
	}
}

function lengthOf({ turns, results }: Talk): number {
	return turns.length + results.length;
}

function piecesOf(text: string): string[] {
	const letters = [...text];
	const size = Math.max(1, Math.ceil(letters.length / PIECES));
	const starts = Array.from({ length: Math.ceil(letters.length / size) }, (_, index) => index * size);
	return starts.map((at) => letters.slice(at, at + size).join(''));
}
