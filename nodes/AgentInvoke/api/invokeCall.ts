import { fail, type Failure, type Result } from '../../shared/errors/failure';
import type { Outcome } from '../../shared/http/outcome';
import type { AgentReply } from './agentReply';
import type { AgentFailure } from './failures';
import type { AgentRequest } from '../wire/request';
import type { TurnCalls } from './callLimit';

export interface InvokeCall {
	/** The request, including the session if there is one. */
	readonly request: AgentRequest;
	/** The session in the request; empty if the call opens one. */
	readonly sessionId: string;
	readonly timeoutMs: number;
	/** Tries in all, including the first, as long as the agent cannot have run. */
	readonly tries: number;
	/** Whether to ask again even if the agent may have run. */
	readonly retryAmbiguous: boolean;
	/** Receives each piece of the answer as it arrives. */
	readonly onDelta: (text: string) => Promise<void>;
	/** Called as soon as the session is known. */
	readonly onSession: (sessionId: string) => void;
	/** Counts the requests of a turn, and is asked before each repeat. */
	readonly calls?: TurnCalls | undefined;
}

/** The outcome of a call. A refusal settles it just as an answer does. */
export type Turn = Result<AgentReply, AgentFailure>;

export function failed(failure: AgentFailure): Outcome<Turn> {
	return { kind: 'answered', data: fail(failure) };
}

/** The rate limiter's turn came too late, because too many requests were waiting. */
export function notAskedInTime({ timeoutMs }: InvokeCall): Failure {
	return {
		kind: 'notSubmitted',
		message: `The agent was not asked for this item, because other requests took more than ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			'Nothing was sent for it. Raise "Requests per Second" or "Timeout" in the options, or run fewer items at once.',
	};
}

export function timedOut({ timeoutMs, sessionId }: InvokeCall): Failure {
	return {
		kind: 'timedOut',
		message: `The agent gave no answer within ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			'It may still be running, and was not asked again. Raise "Timeout" in the options if it needs longer.',
		details: { mayHaveRun: true, ...(sessionId && { sessionId }) },
	};
}
