import type { FastifyInstance, FastifyReply } from 'fastify';
import { chunksOf, completionOf } from '../chat/completion';
import { replyTo } from '../chat/composer';
import type { ModelReply } from '../chat/composer';
import { chatRefusal, errorBody } from '../chat/errors';
import type { ChatError } from '../chat/errors';
import type { ChatEnd } from '../chat/ledger';
import { CHAT_MODELS } from '../chat/models';
import { readChatRequest } from '../chat/request';
import type { ChatRequest } from '../chat/request';
import { brokenOff, scriptOf } from '../chat/script';
import type { Fault } from '../faults/faultBoard';
import { pause } from '../time';
import { spoilData } from './answerFaults';
import { playScript } from './chatStream';
import type { ChatLine } from './chatStream';
import { deliver, faultAnswer, jsonAnswer, resetConnection } from './delivery';
import { admit, trapUrl } from './endpoint';
import type { Visit } from './endpoint';
import type { Parts } from './parts';

const BASE = '/maas/v1';
/** The creation time of all models; any constant will do. */
const MODELS_MADE_AT = 1_760_000_000;

/** How the client sees an answer with these faults end. */
function endBy(faults: readonly Fault[]): ChatEnd {
	switch (faults.find(({ phase }) => phase === 'delivery')?.kind) {
		case undefined:
			return 'done';
		case 'resetAfter':
		case 'truncatedJson':
			return 'cut';
		case 'hang':
			return 'silent';
		default:
			return 'error';
	}
}

/** Sends a fault's own answer, if there is one, once the work is done. @returns whether there was one */
async function giveWay(reply: FastifyReply, line: ChatLine, trap: string): Promise<boolean> {
	const fault = line.faults.find(({ phase }) => phase === 'delivery');
	if (fault === undefined || fault.kind === 'resetAfter' || fault.kind === 'truncatedJson') return false;
	line.record.ended(endBy(line.faults));
	const answer = faultAnswer(fault, trap, chatRefusal);
	if (answer === undefined) reply.hijack();
	else await deliver(reply, answer);
	return true;
}

/** Sends half an answer and ends it, without a length, so that only its content shows that it is incomplete. */
function sendHalf(reply: FastifyReply, text: string, isReset: boolean): void {
	const response = reply.hijack().raw;
	response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
	response.write(text.slice(0, Math.floor(text.length / 2)));
	if (isReset) setImmediate(() => resetConnection(response));
	else response.end();
}

async function answerWhole(
	reply: FastifyReply,
	line: ChatLine,
	request: ChatRequest,
	told: ModelReply,
): Promise<FastifyReply> {
	const { record, faults, gone, holds } = line;
	const { takesMs = 0, pauseMs = 0, holds: ordered, breaks } = told.directives;
	if (takesMs + pauseMs > 0) await pause(takesMs + pauseMs, gone);
	for (const _hold of ordered) await holds.pass(gone);
	if (gone.aborted) return reply.hijack();
	const completion = spoilData(completionOf(request, told), faults);
	switch (breaks[0]?.kind) {
		case 'silent':
			record.ended('silent');
			return reply.hijack();
		case 'cut':
		case 'end':
			record.ended('cut');
			sendHalf(reply, JSON.stringify(completion), breaks[0].kind === 'cut');
			return reply;
		case 'error':
			return deliver(reply, jsonAnswer(200, brokenOff()), faults, '', () => record.ended('error'));
		case undefined: {
			const ended = endBy(faults);
			if (ended !== 'done') record.ended(ended);
			return deliver(reply, jsonAnswer(200, completion), faults, '', () => record.ended('done'));
		}
	}
}

function lineTo(
	parts: Parts,
	reply: FastifyReply,
	visit: Visit,
	request: ChatRequest,
	told: ModelReply,
): ChatLine {
	const record = parts.books.chats.begin({
		owner: visit.owner.name,
		body: request.body,
		model: request.modelName,
		reasoned: request.reasons,
		stream: request.stream,
	});
	const holds = parts.holds.begin(told.directives.holds.length);
	const gone = new AbortController();
	const response = reply.raw;
	response.once('close', () => {
		parts.holds.end(holds);
		if (!response.writableFinished) record.hungUp();
		gone.abort();
	});
	return { response, record, holds, faults: visit.faults, gone: gone.signal };
}

function prepare(body: unknown): { request: ChatRequest; told: ModelReply } | ChatError {
	const request = readChatRequest(body);
	if ('status' in request) return request;
	const told = replyTo(request);
	return 'status' in told ? told : { request, told };
}

function chatRoute(app: FastifyInstance, parts: Parts): void {
	app.post(`${BASE}/chat/completions`, { config: { kind: 'chat' } }, async (received, reply) => {
		const visit = await admit(parts, 'chat', received, reply, chatRefusal);
		if (visit === undefined) return reply;
		const trap = trapUrl(parts);
		const prepared = prepare(received.body);
		if ('status' in prepared) {
			const { status, message, code } = prepared;
			return deliver(reply, jsonAnswer(status, errorBody(status, message, code)), visit.faults, trap);
		}
		const { request, told } = prepared;
		const line = lineTo(parts, reply, visit, request, told);
		if (await giveWay(reply, line, trap)) return reply;
		if (!request.stream) return answerWhole(reply, line, request, told);
		reply.hijack();
		await playScript(line, scriptOf(chunksOf(request, told), told.directives, visit.faults));
		return reply;
	});
}

function modelRoute(app: FastifyInstance, parts: Parts): void {
	app.get(`${BASE}/models`, { config: { kind: 'models' } }, async (request, reply) => {
		const visit = await admit(parts, 'models', request, reply, chatRefusal);
		if (visit === undefined) return reply;
		const data = CHAT_MODELS.map(({ id }) => ({
			id,
			object: 'model',
			created: MODELS_MADE_AT,
			owned_by: id.split('-', 1)[0],
		}));
		const answer = jsonAnswer(200, spoilData({ object: 'list', data }, visit.faults));
		return deliver(reply, answer, visit.faults, trapUrl(parts));
	});
}

/** The chat service, with OpenAI's interface and error format. */
export async function chatService(app: FastifyInstance, { parts }: { parts: Parts }): Promise<void> {
	app.setErrorHandler(async (error, _request, reply) => {
		const told = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
		const status = typeof told === 'number' ? told : 500;
		const message = error instanceof Error ? error.message : 'Internal error';
		const code = status < 500 ? 'invalid_body' : 'internal_error';
		return reply.code(status).send(errorBody(status, message, code));
	});
	chatRoute(app, parts);
	modelRoute(app, parts);
}
