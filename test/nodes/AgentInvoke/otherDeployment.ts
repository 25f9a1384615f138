import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Ask, OtherOptions, Plan } from './otherDeployment.plan';
import {
	readPart,
	readTurn,
	type AskedTurn,
	type Attachment,
	type UploadedPart,
} from './otherDeployment.request';
import { OtherReply } from './otherDeployment.reply';

/*
 * An agent deployment of another make than the local platform, which it shares no code with: it asks for a nested body,
 * numbers its sessions beyond 2^53, words its reasons, its usage and its interrupts in its own way, and names the events
 * of a stream in their data. Where it agrees with the interface it does so on what §4.6 and §4.8 show, and on no more.
 */

export const TURNS_PATH = '/v3/desk/7/turns';
export const BLOBS_PATH = '/v3/blobs';
export const TOKEN = 'agt_other-0123456789abcdef';

export interface OtherCall {
	readonly atMs: number;
	readonly body: unknown;
	/** The session that the call named; empty where it named none. */
	readonly session: string;
	/** `ran`, or the code of the refusal. */
	verdict: string;
}

export interface OtherSession {
	readonly id: string;
	/** What was said in it, in the order in which the agent ran. */
	readonly said: readonly string[];
	readonly attachments: ReadonlyArray<Attachment & { readonly bytes: number | undefined }>;
	/** Tickets in the order in which they were answered. */
	readonly answered: ReadonlyArray<{ readonly ticket: string; readonly value: unknown }>;
}

interface Talk {
	readonly no: bigint;
	readonly said: string[];
	readonly attachments: Array<Attachment & { bytes: number | undefined }>;
	readonly answered: Array<{ ticket: string; value: unknown }>;
	/** Tickets that wait, and what is said once none does. */
	readonly open: Map<string, Ask>;
	sayAtLast: string;
	underWay: number;
}

const FIRST_TALK = 7_300_000_000_000_000_017n;
const FIRST_TICKET = 40;

export class OtherDeployment {
	/** What the agent does with what is said to it. */
	plan: (said: string, turn: number) => Plan = () => ({});
	private talks = new Map<string, Talk>();
	private readonly blobs = new Map<string, number>();
	private callsMade: OtherCall[] = [];
	private uploadsMade: UploadedPart[] = [];
	private overlapping = 0;
	private running = 0;
	private mostRunning = 0;
	private lastTalk = FIRST_TALK;
	private lastTicket = FIRST_TICKET;
	private lastTrace = 0;

	private constructor(
		private readonly server: Server,
		readonly options: OtherOptions,
	) {}

	static async open(options: OtherOptions = {}): Promise<OtherDeployment> {
		const server = createServer();
		const deployment = new OtherDeployment(server, options);
		server.on('request', (request, response) => {
			void deployment.receive(request, response).catch((error: unknown) => response.destroy(error as Error));
		});
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		return deployment;
	}

	get baseUrl(): string {
		return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
	}

	/** In the order in which they came. */
	get calls(): readonly OtherCall[] {
		return this.callsMade;
	}

	get sessions(): OtherSession[] {
		return [...this.talks.values()].map(({ no, said, attachments, answered }) => ({
			id: String(no),
			said: [...said],
			attachments: [...attachments],
			answered: [...answered],
		}));
	}

	get uploads(): readonly UploadedPart[] {
		return this.uploadsMade;
	}

	/** Calls that came for a session while a turn of it was under way, and the most runs at once. */
	get overlaps(): { readonly calls: number; readonly mostAtOnce: number } {
		return { calls: this.overlapping, mostAtOnce: this.mostRunning };
	}

	/** How many calls ended so. */
	verdicts(): Record<string, number> {
		const counts: Record<string, number> = {};
		for (const { verdict } of this.callsMade) counts[verdict] = (counts[verdict] ?? 0) + 1;
		return counts;
	}

	/** From now on it knows none of its sessions. */
	forgetSessions(): void {
		this.talks = new Map();
	}

	reset(): void {
		this.plan = () => ({});
		this.forgetSessions();
		this.callsMade = [];
		this.uploadsMade = [];
		this.overlapping = 0;
		this.mostRunning = this.running;
	}

	async close(): Promise<void> {
		this.server.closeAllConnections();
		await new Promise((resolve) => this.server.close(resolve));
	}

	private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk as Buffer);
		const body = Buffer.concat(chunks);
		const reply = new OtherReply(response, this.options, `trace-${++this.lastTrace}`);
		if (request.headers.authorization !== `Bearer ${TOKEN}`) reply.refuse(401, 'BADGE_INVALID');
		else if (request.method !== 'POST') reply.refuse(405, 'ONLY_POST');
		else if (request.url === BLOBS_PATH) this.store(request.headers['content-type'] ?? '', body, reply);
		else if (request.url === TURNS_PATH) await this.take(body, reply);
		else reply.refuse(404, 'NO_SUCH_DESK');
	}

	private store(contentType: string, body: Buffer, reply: OtherReply): void {
		const file = readPart(contentType, body, 'payload');
		if (!file) {
			reply.refuse(422, 'NO_PAYLOAD');
			return;
		}
		const at = `${this.baseUrl}/blobs/${this.blobs.size + 1}`;
		this.blobs.set(at, file.bytes);
		this.uploadsMade.push(file);
		reply.answer({ blob: { at, good_until: '2031-01-01T00:00:00Z' } }, 'STORED', 201);
	}

	private async take(body: Buffer, reply: OtherReply): Promise<void> {
		const turn = readTurn(body.toString());
		const call: OtherCall = {
			...{ atMs: Date.now(), body: turn.body, session: turn.session },
			verdict: 'ran',
		};
		this.callsMade.push(call);
		const refusal = this.whyNot(turn);
		if (refusal) {
			call.verdict = refusal.code;
			reply.refuse(refusal.status, refusal.code);
			return;
		}
		const talk = this.talks.get(turn.session) ?? this.newTalk();
		if (talk.underWay > 0) this.overlapping++;
		if (talk.underWay > 0 && this.options.guarded !== false) {
			call.verdict = 'LINE_TAKEN';
			reply.refuse(423, 'LINE_TAKEN');
			return;
		}
		const plan = turn.said === undefined ? {} : this.plan(turn.said, talk.said.length + 1);
		if (plan.refuses) {
			call.verdict = plan.refuses.code;
			if (turn.session === '') this.talks.delete(String(talk.no));
			reply.refuse(plan.refuses.status, plan.refuses.code);
			return;
		}
		await this.run(talk, turn, plan, reply);
	}

	private whyNot({ session, said, answerTo, why }: AskedTurn): { status: number; code: string } | undefined {
		if (why) return { status: 422, code: why };
		const talk = this.talks.get(session);
		if (session !== '' && !talk) return { status: 404, code: 'NO_SUCH_TALK' };
		if (answerTo && !talk?.open.has(answerTo.ticket)) return { status: 410, code: 'TICKET_UNKNOWN' };
		if (said !== undefined && talk && talk.open.size > 0) return { status: 422, code: 'TICKETS_OPEN' };
		return undefined;
	}

	private newTalk(): Talk {
		const talk: Talk = {
			...{ no: ++this.lastTalk, said: [], attachments: [], answered: [], open: new Map() },
			...{ sayAtLast: '', underWay: 0 },
		};
		this.talks.set(String(talk.no), talk);
		return talk;
	}

	private async run(talk: Talk, turn: AskedTurn, plan: Plan, reply: OtherReply): Promise<void> {
		talk.underWay++;
		this.mostRunning = Math.max(this.mostRunning, ++this.running);
		try {
			this.note(talk, turn, plan);
			if (turn.isLive) reply.openStream();
			await reply.tell('opened', { talk: { no: talk.no } }, plan);
			if (plan.takesMs) await new Promise((resolve) => setTimeout(resolve, plan.takesMs));
			for (const tool of plan.tools ?? []) {
				// The name of the tool stands where text of the answer does.
				await reply.tell('tool_use', { tool, bit: { text: tool.fn } }, plan);
				await reply.tell('result', { tool: { fn: tool.fn, gave: 'ok' }, bit: { text: 'ok' } }, plan);
			}
			const says = talk.open.size > 0 ? '' : talk.sayAtLast;
			await reply.tellText(says, plan);
		} finally {
			// Free before the answer leaves: whoever has it may go on at once.
			talk.underWay--;
			this.running--;
		}
		this.end(talk, plan, reply);
	}

	private note(talk: Talk, { said, answerTo, attachments }: AskedTurn, plan: Plan): void {
		if (answerTo) {
			talk.open.delete(answerTo.ticket);
			talk.answered.push(answerTo);
			talk.sayAtLast += ` (${JSON.stringify(answerTo.value)})`;
			return;
		}
		talk.said.push(said ?? '');
		talk.sayAtLast = plan.says ?? `${talk.said.length}: ${said}`;
		talk.attachments.push(...attachments.map((one) => ({ ...one, bytes: this.blobs.get(one.at) })));
		for (const ask of plan.asks ?? []) talk.open.set(String(++this.lastTicket), ask);
	}

	private end(talk: Talk, plan: Plan, reply: OtherReply): void {
		if (plan.fails) {
			reply.fail(plan.fails.status, plan.fails.code, plan);
			return;
		}
		const tickets = [...talk.open].map(([ticket, { fn, with: input, title }]) => ({
			ticket: Number(ticket),
			...(title !== undefined && { ask: { title } }),
			...(fn !== undefined && { wants: { fn, with: JSON.stringify(input ?? {}) } }),
		}));
		const words = talk.sayAtLast.split(' ').length;
		const data = {
			talk: { no: talk.no },
			...(tickets.length > 0
				? { open_tickets: tickets }
				: { outcome: { blocks: [{ kind: 'speech', text: talk.sayAtLast }] } }),
			cost: { tok_in: talk.said.length, tok_out: words, tok_all: talk.said.length + words },
		};
		reply.finish(data, tickets.length > 0 ? 'TICKETS_OPEN' : 'TURN_OVER', plan);
	}
}
