import { fail, type Failure, type Result } from '../../shared/errors/failure';
import type { Outcome } from '../../shared/http/outcome';
import type { AgentReply } from './agentReply';
import type { AgentFailure } from './failures';
import type { AgentRequest } from '../wire/request';
import type { TurnCalls } from './callLimit';

export interface InvokeCall {
	/** With the session in it, where it goes on with one. */
	readonly request: AgentRequest;
	/** The session in the request; empty where a new one is opened. */
	readonly sessionId: string;
	readonly timeoutMs: number;
	/** In all where the agent cannot have run, the first included. */
	readonly tries: number;
	/** Whether to ask again where it may have run, too. */
	readonly retryAmbiguous: boolean;
	/** Told of each piece of the answer as it comes. */
	readonly onDelta: (text: string) => Promise<void>;
	/** Told of the session as soon as it is known. */
	readonly onSession: (sessionId: string) => void;
	/** Counts the requests of a turn, and is asked before one is repeated. */
	readonly calls?: TurnCalls | undefined;
}

/** An answer that says no settles a call as much as one that says yes. */
export type Turn = Result<AgentReply, AgentFailure>;

export function failed(failure: AgentFailure): Outcome<Turn> {
	return { kind: 'answered', data: fail(failure) };
}

/** Its turn came too late: there are too many requests for the rate. */
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
