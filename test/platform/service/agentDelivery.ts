import type { FastifyReply } from 'fastify';
import { agentFailure, newRequestId } from '../agents/envelope';
import type { AgentEnvelope, Reason } from '../agents/envelope';
import type { Fault } from '../faults/faultBoard';
import { deliver, faultAnswer, jsonAnswer } from './delivery';
import type { HttpAnswer } from './delivery';

/** The outer HTTP status of a failure: always 200, or the one in the envelope. */
export type OuterStatus = 'always200' | 'same';

export function envelopeAnswer(envelope: AgentEnvelope, outer: OuterStatus): HttpAnswer {
	return jsonAnswer(outer === 'same' ? envelope.http_status_code : 200, envelope);
}

const FAULT_REASONS: Readonly<Record<number, Reason>> = {
	400: 'body_invalid',
	401: 'token_invalid',
	403: 'forbidden',
	404: 'session_not_found',
	409: 'session_busy',
	429: 'rate_limited',
	503: 'overloaded',
};

/** Words a fault as the agent service does; the code begins with the status. */
export function agentWording(code: number, detail: string): AgentEnvelope {
	const status = Math.floor(code / 100);
	return agentFailure(newRequestId(), status, { reason: FAULT_REASONS[status] ?? 'internal_error', detail });
}

/** The answer that a fault sends in place of the real one after the work was done. */
export function answerInstead(faults: readonly Fault[], trapUrl: string): HttpAnswer | undefined {
	const delivery = faults.find(({ phase }) => phase === 'delivery');
	if (delivery === undefined) return undefined;
	// A gateway that gave up does not send envelopes: a refusal in one would say that the agent did not run.
	const rule = { ...delivery.rule, body: delivery.rule.body ?? ('html' as const) };
	return faultAnswer({ ...delivery, rule }, trapUrl, agentWording);
}

/** Sends an answer and applies the faults of its delivery. */
export async function deliverAnswer(
	reply: FastifyReply,
	answer: HttpAnswer,
	faults: readonly Fault[],
	trapUrl: string,
	whenWhole?: () => void,
): Promise<FastifyReply> {
	const instead = answerInstead(faults, trapUrl);
	if (instead === undefined) return deliver(reply, answer, faults, trapUrl, whenWhole);
	const pace = faults.filter(({ phase }) => phase === 'pace');
	return deliver(reply, instead, pace);
}
