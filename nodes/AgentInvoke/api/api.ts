import { fail, ok, type Result } from '../../shared/errors/failure';
import { readAnswer, type AnswerConnection } from '../../shared/http/answerStream';
import type { Outcome } from '../../shared/http/outcome';
import type { AgentReply } from './agentReply';
import { outcomeOf } from './answer';
import { failed, notAskedInTime, timedOut, type InvokeCall, type Turn } from './invokeCall';
import { explainCall, type AgentFailure } from './failures';
import { ofForeign } from '../wire/foreign';
import { addressOf } from '../wire/request';
import { uploadMedia, type UploadedMedia, type UploadConnection } from './upload';
import { NOTHING_READ, readEvent } from '../wire/reader';

export type { InvokeCall } from './invokeCall';

export interface Invoked {
	readonly reply: AgentReply;
	readonly tries: number;
}

/** The calls of an agent instance; they never throw. */
export interface AgentApi {
	/** `POST …/Invoke` (§4.6), answered whole or as a stream. */
	invoke(call: InvokeCall): Promise<Result<Invoked, AgentFailure>>;
	/**
	 * Uploads a file that an Invoke call names by its address (§4.8).
	 * @param endByMs when to give up, by the clock's `now()`
	 */
	upload(media: File, endByMs: number): Promise<Result<UploadedMedia>>;
}

/** The way to the agent of an account. */
export interface AgentConnection extends UploadConnection, AnswerConnection {}

export function createAgentApi(connection: AgentConnection): AgentApi {
	return {
		invoke: async (call) => {
			const { calls } = call;
			const heldBack = calls?.begin();
			if (heldBack) return fail(heldBack);
			const invoked = await invokeWithTries(connection, call);
			return invoked.ok || !calls ? invoked : fail(calls.failed(invoked.failure));
		},
		upload: async (media, endByMs) => await uploadMedia(connection, media, endByMs),
	};
}

async function invokeWithTries(
	connection: AgentConnection,
	call: InvokeCall,
): Promise<Result<Invoked, AgentFailure>> {
	const { account, clock, redact, retry } = connection;
	const { calls } = call;
	const repeatability = call.retryAmbiguous ? 'read' : 'write';
	const endByMs = clock.now() + call.timeoutMs;
	let unclear: Outcome<Turn> | undefined;
	const { outcome: last, tries } = await retry.run(
		{
			repeatability,
			lane: 'work',
			tries: call.tries,
			endByMs,
			mayRepeat: () => calls?.mayRepeat() ?? true,
		},
		async (): Promise<Outcome<Turn>> => {
			// Even if asking twice does no harm, its turn in the rate limiter may come too late.
			if (clock.now() >= endByMs) return { kind: 'cancelled' };
			calls?.sent();
			const answer = await invokeOnce(connection, call);
			if (answer.kind === 'unclear') {
				calls?.unclear();
				unclear = answer;
			}
			return answer;
		},
	);
	// Cancelling a repeat changes nothing about the calls before it: the agent may have run.
	const outcome = last.kind === 'cancelled' ? (unclear ?? last) : last;
	if (outcome.kind === 'cancelled' && clock.now() >= endByMs) return fail(notAskedInTime(call));
	if (outcome.kind !== 'answered') {
		const facts = { account, redact, sessionId: call.sessionId };
		const failure = explainCall(outcome, { repeatability, tries }, facts);
		if (outcome.kind !== 'busy' || !outcome.sparesOthers) return fail(failure);
		return fail({ ...failure, busySession: { retryAfter: outcome.retryAfter, tries } });
	}
	return outcome.data.ok ? ok({ reply: outcome.data.value, tries }) : outcome.data;
}

async function invokeOnce(connection: AgentConnection, call: InvokeCall): Promise<Outcome<Turn>> {
	const { account, clock, redact } = connection;
	const { path, headers, body: json } = call.request;
	const of = { wire: account.wire, hide: redact.known };
	let state = NOTHING_READ;
	let body = '';
	const request = {
		url: addressOf(account, { path }),
		headers,
		json,
		accept: 'application/json, text/event-stream',
		idleMs: Infinity,
		endByMs: clock.now() + call.timeoutMs,
		hasErrorEvents: true,
		hasLines: of.wire.stream.format === 'jsonLines',
		// The agent keeps running after a stop, and its answer names the session.
		outlivesStop: true,
	};
	const told = tellOnce(call);
	const ended = await readAnswer(connection, request, async (event) => {
		state = readEvent(of, state, event);
		told.onSession(state.sessionId);
		// A body that came whole was not streamed, so there is no progress to report.
		if (event.isWholeBody) body = event.data;
		else if (state.delta !== '') await call.onDelta(state.delta);
		if ((state.isClosed && !state.endedBare) || state.fault) return 'closed';
		return state.endedBy === '' ? 'progress' : 'finished';
	});
	if (ended.kind === 'timedOut') return failed(timedOut(call));
	if (ended.kind !== 'read') return ofForeign(ended);
	return outcomeOf({ of, state, body, ended }, told, { account, redact, sessionId: call.sessionId });
}

/** A call that reports each session only once. */
function tellOnce(call: InvokeCall): InvokeCall {
	let told = '';
	return {
		...call,
		onSession: (sessionId) => {
			if (sessionId === '' || sessionId === told) return;
			told = sessionId;
			call.onSession(sessionId);
		},
	};
}
