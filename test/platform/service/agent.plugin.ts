import multipart from '@fastify/multipart';
import type { FastifyInstance } from 'fastify';
import type { InvocationEntry } from '../agents/agentBooks';
import type { Script } from '../agents/directives';
import { AgentRefusal, agentFailure, agentSuccess, newRequestId } from '../agents/envelope';
import type { AgentEnvelope } from '../agents/envelope';
import { readFiles } from '../agents/fileReader';
import type { AgentInstance } from '../agents/instances';
import { readCall } from '../agents/invokeCall';
import type { InvokeCall } from '../agents/invokeCall';
import type { MediaFile } from '../agents/mediaStore';
import type { Session } from '../agents/session';
import { FAILED_STATUS, performTurn, scriptOf, turnData } from '../agents/turn';
import type { TurnResult } from '../agents/turn';
import { isRecord, parseWireJson } from '../wireJson';
import { spoilData } from './answerFaults';
import { answerInstead, deliverAnswer, envelopeAnswer } from './agentDelivery';
import { agentEndpoint } from './agentEndpoint';
import type { AgentVisit } from './agentEndpoint';
import { deliverStream, piecesOf } from './agentStream';
import { deliver, jsonAnswer, resetConnection } from './delivery';
import { trapUrl } from './endpoint';
import type { Parts } from './parts';

const BASE = '/api/agents';

/** A call's use of a session, from its arrival until the session is free again. */
interface Seat {
	readonly session: Session;
	leave(): void;
}

/** Takes the session for a call. Throws AgentRefusal. */
function takeSeat(parts: Parts, agent: AgentInstance, call: InvokeCall): Seat {
	const session = agent.sessionFor(call);
	const left = parts.books.agents.sessionEntered(session);
	try {
		session.check(call);
	} catch (error) {
		left();
		throw error;
	}
	session.busy = true;
	let seated = true;
	return {
		session,
		leave: () => {
			if (!seated) return;
			seated = false;
			session.busy = false;
			left();
		},
	};
}

/** A turn that the agent has run. */
interface DoneTurn {
	readonly call: InvokeCall;
	readonly script: Script;
	readonly session: Session;
	readonly entry: InvocationEntry;
	readonly result: TurnResult;
	/** Frees the session. */
	settled(): void;
}

async function runTurn(parts: Parts, visit: AgentVisit, call: InvokeCall, seat: Seat): Promise<DoneTurn> {
	const { agenda, books, addresses } = parts;
	const { agent, reply } = visit;
	const { session } = seat;
	const script = scriptOf(call);
	if (script.refuse !== undefined) throw new AgentRefusal('overloaded', script.refuse);
	const files = await readFiles(call.files, addresses.fileUrl);
	session.turns++;
	agent.keep(session);
	const entry = books.agents.invocationStarted(session, call, files, agenda.now());
	const response = reply.raw;
	if (response.destroyed) entry.answered = 'no';
	response.once('close', () => {
		if (entry.answered === 'unknown') entry.answered = 'no';
	});
	const result = await performTurn(session, entry, script, async () => agent.untilReleased());
	let running = true;
	const settled = (): void => {
		if (!running) return;
		running = false;
		books.agents.invocationEnded(entry, agenda.now());
		seat.leave();
	};
	return { call, script, session, entry, result, settled };
}

function endOf(visit: AgentVisit, { session, entry, result }: DoneTurn): AgentEnvelope {
	const data = turnData(session, entry, result);
	return result.outcome === 'failed'
		? agentFailure(visit.requestId, FAILED_STATUS, data)
		: agentSuccess(visit.requestId, data);
}

async function answerWhole(parts: Parts, visit: AgentVisit, turn: DoneTurn): Promise<void> {
	const { reply, faults } = visit;
	turn.settled();
	const end = turn.script.streamEnd;
	if (end !== undefined) {
		reply.hijack();
		if (end.how !== 'silent') resetConnection(reply.raw);
		return;
	}
	const envelope = endOf(visit, turn);
	const { status, headers } = envelopeAnswer(envelope, parts.agentOuterStatus);
	const answer = { status, headers, body: JSON.stringify(spoilData(envelope, faults)) };
	await deliverAnswer(reply, answer, faults, trapUrl(parts), () => {
		turn.entry.answered = 'yes';
	});
}

async function answerInPieces(parts: Parts, visit: AgentVisit, turn: DoneTurn): Promise<void> {
	const { agent, reply, faults, requestId } = visit;
	const { script, session, result, entry, settled } = turn;
	const instead = answerInstead(faults, trapUrl(parts));
	if (instead !== undefined) {
		settled();
		await deliver(reply, instead);
		return;
	}
	await deliverStream(reply, {
		pieces: script.deltas ? piecesOf(result.answer, script.chunks) : [],
		pauseMs: script.pauseMs,
		end: script.streamEnd,
		faults,
		between: async (sent) => {
			if (sent === script.holdAfter) await agent.untilReleased();
		},
		piece: (delta) => agentSuccess(requestId, { reason: 'delta', delta, session_id: session.id }),
		last: endOf(visit, turn),
		settled,
		whenWhole: () => {
			entry.answered = 'yes';
		},
	});
}

async function invoke(parts: Parts, visit: AgentVisit): Promise<void> {
	const { agent, request, faults } = visit;
	agent.mustAllow('invoke');
	const { body } = request;
	if (faults.some(({ kind }) => kind === 'sessionGone') && isRecord(body)) {
		const { session_id: id } = body;
		if (typeof id === 'string') agent.expireSessions(id);
	}
	const call = readCall(body);
	if (call.stream) agent.mustAllow('stream');
	const seat = takeSeat(parts, agent, call);
	try {
		const turn = await runTurn(parts, visit, call, seat);
		// A failure before the first piece is reported in a plain envelope, like any refusal.
		const streams = call.stream && (turn.result.outcome !== 'failed' || turn.script.deltas);
		await (streams ? answerInPieces(parts, visit, turn) : answerWhole(parts, visit, turn));
	} finally {
		seat.leave();
	}
}

async function receive(parts: Parts, visit: AgentVisit): Promise<MediaFile> {
	const { agent, request } = visit;
	const missing = new AgentRefusal('file_missing', 'file is required: a form part of type file.');
	if (!request.isMultipart()) throw missing;
	let file: MediaFile | undefined;
	let refusal: AgentRefusal | undefined;
	for await (const part of request.parts()) {
		if (part.type !== 'file') continue;
		// A part that is not read to its end would block the parts that follow.
		if (part.fieldname !== 'file' || file !== undefined || refusal !== undefined) {
			part.file.resume();
			continue;
		}
		const { filename, mimetype } = part;
		const content = await part.toBuffer();
		try {
			if (part.file.truncated) throw new AgentRefusal('file_too_large', 'file is too large.');
			parts.media.mustAccept(mimetype);
			file = parts.media.save(agent.agentId, filename || 'file', mimetype, content, parts.agenda.now());
		} catch (error) {
			if (!(error instanceof AgentRefusal)) throw error;
			refusal = error;
		}
	}
	if (file === undefined) throw refusal ?? missing;
	return file;
}

async function uploadMedia(parts: Parts, visit: AgentVisit): Promise<void> {
	const { agent, reply, faults, requestId } = visit;
	agent.mustAllow('media');
	const file = await receive(parts, visit);
	parts.books.agents.uploaded(file);
	const expired = faults.some(({ kind }) => kind === 'expiredLink');
	const untilMs = expired ? parts.agenda.now() - 60_000 : file.expiresAtMs;
	const envelope = agentSuccess(requestId, {
		reason: 'uploaded',
		url: parts.media.url(file, untilMs),
		expires_at: new Date(untilMs).toISOString(),
		name: file.name,
		mime_type: file.mimeType,
		size: file.content.length,
	});
	await deliverAnswer(reply, jsonAnswer(200, spoilData(envelope, faults)), faults, trapUrl(parts));
}

/** Reads the body; a broken one remains text, because an invalid token is reported first. */
function readBody(text: string): unknown {
	if (text.trim() === '') return undefined;
	try {
		return parseWireJson(text);
	} catch {
		return text;
	}
}

/** The agent service, whose envelope reports the outcome of a call, whatever the outer HTTP status is. */
export async function agentService(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	const { maxBytes } = parts.media.limits;
	await app.register(multipart, { limits: { fileSize: maxBytes }, throwFileSizeLimit: false });
	app.removeContentTypeParser('application/json');
	app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
		done(null, readBody(body.toString()));
	});
	app.setErrorHandler(async (error, _request, reply) => {
		const known = error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
		const status = known ? Number(error.statusCode) : 500;
		const detail = error instanceof Error ? error.message : 'Internal error';
		const reason = status < 500 ? 'body_invalid' : 'internal_error';
		const { headers, ...answer } = envelopeAnswer(
			agentFailure(newRequestId(), status, { reason, detail }),
			parts.agentOuterStatus,
		);
		return reply.code(answer.status).headers(headers).send(answer.body);
	});
	app.post(
		`${BASE}/Invoke`,
		{ config: { kind: 'invoke' } },
		agentEndpoint(parts, 'invoke', async (visit) => invoke(parts, visit)),
	);
	app.post(
		`${BASE}/media`,
		{ config: { kind: 'media' } },
		agentEndpoint(parts, 'media', async (visit) => uploadMedia(parts, visit)),
	);
}
