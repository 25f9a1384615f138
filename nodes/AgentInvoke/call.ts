import { fail, type Failure, type Result } from '../shared/errors/failure';
import { parseJson, type JsonObject } from '../shared/text/json';
import type { Exchange } from '../shared/http/exchange';
import { ofUnanswered, ofWrite, type Outcome } from '../shared/http/outcome';
import { classify } from '../shared/platform/envelope';
import type { Deployment } from './deployment';
import { notOfAnAgent, saysNoMore, type AgentReply } from './envelope';
import type { AgentFailure } from './failures';
import type { TurnCalls } from './turnCalls';

export interface InvokeCall {
	/** With the session in it, where it goes on with one. */
	readonly body: JsonObject;
	/** The session in the body; empty where a new one is opened. */
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

/** An envelope that failed settles a call as much as one that succeeded. */
export type Turn = Result<AgentReply, AgentFailure>;

/** No answer, or one that does not come from an agent: a plain client error says that there is none here. */
export function withoutEnvelope(
	exchange: Exchange,
	sessionId: string,
	deployment: Deployment,
): Outcome<Turn> {
	// An agent that was asked does not stop with the execution.
	if (exchange.kind !== 'reply') return ofWrite(ofUnanswered(exchange));
	const outcome = classify(exchange);
	if (outcome.kind !== 'answered' && outcome.kind !== 'refused' && outcome.kind !== 'busy') return outcome;
	const { status } = exchange;
	// One that says more than a refusal may be that of an agent that has run.
	if (!saysNoMore(parseJson(exchange.text) ?? '', sessionId, deployment)) return notOfAnAgent(status);
	if (outcome.kind === 'busy') return { ...outcome, status };
	return outcome.kind === 'refused' && status >= 400
		? { kind: 'refused', status, code: null, text: outcome.text }
		: notOfAnAgent(status);
}

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
