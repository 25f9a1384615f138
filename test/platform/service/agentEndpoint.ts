import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { AgentRefusal, newRequestId } from '../agents/envelope';
import type { AgentInstance } from '../agents/instances';
import type { Fault } from '../faults/faultBoard';
import type { FaultTarget } from '../faults/rules';
import { agentWording, envelopeAnswer } from './agentDelivery';
import { deliver } from './delivery';
import { readToEnd, standInTheWay, trapUrl } from './endpoint';
import type { Parts } from './parts';

export interface AgentVisit {
	readonly agent: AgentInstance;
	readonly requestId: string;
	readonly request: FastifyRequest;
	readonly reply: FastifyReply;
	readonly faults: readonly Fault[];
}

/** Finds the agent of a request. Throws AgentRefusal. */
function agentOf(parts: Parts, { headers }: FastifyRequest): AgentInstance {
	const { agent, token } = parts.agents.fromHeader(headers.authorization);
	const seconds = parts.rateLimit.secondsToWait(token);
	if (seconds > 0) {
		throw new AgentRefusal('rate_limited', 'Too many requests', parts.retryAfterSeconds ?? seconds);
	}
	return agent;
}

async function refuse(
	parts: Parts,
	reply: FastifyReply,
	requestId: string,
	why: AgentRefusal,
): Promise<void> {
	if (why.status === 401) parts.books.count('unauthorized');
	if (why.reason === 'rate_limited') parts.books.count('rateLimited');
	parts.books.agents.refused(why.reason);
	const answer = envelopeAnswer(why.envelope(requestId), parts.agentOuterStatus);
	const { retryAfterSeconds: seconds } = why;
	const pace =
		seconds === undefined || !parts.tellsRetryAfter ? undefined : { 'retry-after': String(seconds) };
	await deliver(reply, { ...answer, headers: { ...answer.headers, ...pace } });
}

/** Handles one call of the agent service: token, request-frequency limit and faults around the work itself. */
export function agentEndpoint(
	parts: Parts,
	target: FaultTarget,
	work: (visit: AgentVisit) => Promise<void>,
): RouteHandlerMethod {
	return async (request, reply) => {
		const requestId = newRequestId();
		try {
			const agent = agentOf(parts, request);
			const faults = parts.faults.draw(target, () => JSON.stringify(request.body ?? request.url));
			const before = faults.find(({ phase }) => phase === 'before');
			if (before !== undefined) {
				return await standInTheWay(before, { request, faults }, reply, trapUrl(parts), agentWording);
			}
			if (faults.some(({ kind }) => kind === 'tokenExpired')) {
				throw new AgentRefusal('token_expired', 'The token has expired.');
			}
			await work({ agent, requestId, request, reply, faults });
		} catch (error) {
			if (!(error instanceof AgentRefusal)) throw error;
			await readToEnd(request.raw);
			await refuse(parts, reply, requestId, error);
		}
		return reply;
	};
}
