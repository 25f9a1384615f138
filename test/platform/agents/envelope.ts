import { randomBytes } from 'node:crypto';
import type { JsonRecord } from '../wireJson';

/**
 * Why a call was not carried out or failed, with the status in the envelope. The interface shows that there is a reason,
 * but none of its values, so all of these are invented; a client must not rely on them.
 */
export const REASONS = {
	token_invalid: 401,
	token_expired: 401,
	token_kind: 401,
	forbidden: 403,
	message_required: 400,
	body_invalid: 400,
	session_not_found: 404,
	session_busy: 409,
	interrupt_pending: 409,
	interrupt_not_found: 404,
	file_expired: 400,
	file_unreadable: 400,
	file_missing: 400,
	file_empty: 400,
	file_too_large: 413,
	file_type_refused: 415,
	rate_limited: 429,
	overloaded: 503,
	agent_failed: 500,
	internal_error: 500,
} as const;

export type Reason = keyof typeof REASONS;

/** The answer body of every HTTP call of the agent service. */
export interface AgentEnvelope {
	success_response: boolean;
	http_status_code: number;
	request_id: string;
	data: JsonRecord;
}

export function newRequestId(): string {
	return `req_${randomBytes(8).toString('hex')}`;
}

export function agentSuccess(requestId: string, data: JsonRecord): AgentEnvelope {
	return { success_response: true, http_status_code: 200, request_id: requestId, data };
}

export function agentFailure(requestId: string, status: number, data: JsonRecord): AgentEnvelope {
	return { success_response: false, http_status_code: status, request_id: requestId, data };
}

/** Thrown for a call that the service answers without carrying it out. */
export class AgentRefusal extends Error {
	readonly status: number;

	constructor(
		readonly reason: Reason,
		detail: string,
		readonly retryAfterSeconds?: number,
	) {
		super(detail);
		this.status = REASONS[reason];
	}

	envelope(requestId: string): AgentEnvelope {
		return agentFailure(requestId, this.status, { reason: this.reason, detail: this.message });
	}
}
