import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { CODES, refusal } from '../codes';
import type { Envelope } from '../codes';
import type { Fault } from '../faults/faultBoard';
import { leavesUnclear, type FaultTarget } from '../faults/rules';
import type { Owner } from '../owners';
import { spoilEnvelope } from './answerFaults';
import { deliver, faultAnswer, jsonAnswer, resetConnection } from './delivery';
import type { HttpAnswer, Wording } from './delivery';
import type { Parts } from './parts';

export interface Visit {
	readonly owner: Owner;
	readonly request: FastifyRequest;
	readonly faults: readonly Fault[];
}

export interface WorkDone {
	readonly envelope: Envelope;
	/** Called once the whole answer was sent. */
	readonly delivered?: () => void;
}

/** Reads a request to its end, because an earlier answer would look like a broken connection. */
export async function readToEnd(request: IncomingMessage): Promise<void> {
	if (request.readableEnded || request.complete) return;
	request.resume();
	await finished(request, { writable: false }).catch(() => undefined);
}

/** Carries out a fault in place of the work. */
export async function standInTheWay(
	fault: Fault,
	visit: Pick<Visit, 'request' | 'faults'>,
	reply: FastifyReply,
	trap: string,
	wording: Wording,
): Promise<FastifyReply> {
	if (fault.kind === 'resetBefore') {
		reply.hijack();
		resetConnection(reply.raw);
		return reply;
	}
	const answer = faultAnswer(fault, trap, wording);
	if (answer === undefined) return reply.hijack();
	await readToEnd(visit.request.raw);
	const pace = visit.faults.filter(({ phase }) => phase === 'pace');
	return deliver(reply, answer, pace);
}

function unauthorized(authorization: string | undefined, wording: Wording): HttpAnswer {
	const why = authorization === undefined ? 'Authorization header missing' : 'API key invalid';
	return jsonAnswer(401, wording(CODES.unauthorized, why));
}

function tooMany(seconds: number | undefined, wording: Wording): HttpAnswer {
	const answer = jsonAnswer(429, wording(CODES.tooManyRequests, 'Too many requests'));
	if (seconds === undefined) return answer;
	return { ...answer, headers: { ...answer.headers, 'retry-after': String(seconds) } };
}

/** Checks key and request-frequency limit, and applies faults, before any work. Undefined: the request was answered. */
export async function admit(
	parts: Parts,
	target: FaultTarget,
	request: FastifyRequest,
	reply: FastifyReply,
	wording: Wording = refusal,
): Promise<Visit | undefined> {
	const { books, faults, owners, rateLimit } = parts;
	const owner = owners.fromHeader(request.headers.authorization);
	if (owner === undefined) {
		books.count('unauthorized');
		await readToEnd(request.raw);
		await deliver(reply, unauthorized(request.headers.authorization, wording));
		return undefined;
	}
	const seconds = rateLimit.secondsToWait(owner.apiKey);
	if (seconds > 0) {
		books.count('rateLimited');
		await readToEnd(request.raw);
		await deliver(
			reply,
			tooMany(parts.tellsRetryAfter ? (parts.retryAfterSeconds ?? seconds) : undefined, wording),
		);
		return undefined;
	}
	const drawn = faults.draw(target, () => JSON.stringify(request.body ?? request.url));
	const visit = { owner, request, faults: drawn };
	const before = drawn.find(({ phase }) => phase === 'before');
	const effective = before ?? drawn.find(({ phase }) => phase === 'delivery');
	if (target === 'submit' && effective && leavesUnclear(effective.rule)) books.count('unclearSubmits');
	if (before === undefined) return visit;
	await standInTheWay(before, visit, reply, trapUrl(parts), wording);
	return undefined;
}

/** The address to which redirects lead, at another origin, which records the keys that arrive there. */
export function trapUrl(parts: Parts): string {
	return `${parts.addresses.fileUrl}/trap`;
}

/** Handles one call of the workflow service. */
export function endpoint(
	parts: Parts,
	target: FaultTarget,
	work: (visit: Visit) => Promise<WorkDone>,
): RouteHandlerMethod {
	return async (request, reply) => {
		const visit = await admit(parts, target, request, reply);
		if (visit === undefined) return reply;
		if (!request.headers.accept?.includes('application/json')) {
			await readToEnd(request.raw);
			const refused = refusal(CODES.badBody, 'Send the header Accept: application/json.');
			return deliver(reply, jsonAnswer(200, refused));
		}
		const { envelope, delivered } = await work(visit);
		const answer = jsonAnswer(200, spoilEnvelope(envelope, visit.faults));
		return deliver(reply, answer, visit.faults, trapUrl(parts), delivered);
	};
}
