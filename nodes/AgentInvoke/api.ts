import { fail, ok, type Result } from '../shared/errors/failure';
import { readAnswer, type AnswerStreamParts } from '../shared/http/answerStream';
import type { Outcome } from '../shared/http/outcome';
import { failed, notAskedInTime, timedOut, withoutEnvelope, type InvokeCall, type Turn } from './call';
import type { AgentReply } from './envelope';
import { explainCall, type AgentFailure } from './failures';
import { Reading } from './reading';
import { uploadMedia, type UploadedMedia, type UploadParts } from './upload';

export type { InvokeCall } from './call';

export interface Invoked {
	readonly reply: AgentReply;
	readonly tries: number;
}

/** The calls of an agent instance; they never throw. */
export interface AgentApi {
	/** `POST …/Invoke` (§4.6), in one piece or as a stream. */
	invoke(call: InvokeCall): Promise<Result<Invoked, AgentFailure>>;
	/**
	 * Uploads a file that an Invoke call names by its address (§4.8).
	 * @param endByMs when nobody waits for it any more, by the clock's `now()`
	 */
	upload(media: File, endByMs: number): Promise<Result<UploadedMedia>>;
}

export interface AgentApiParts extends UploadParts, AnswerStreamParts {}

export function createAgentApi(parts: AgentApiParts): AgentApi {
	return {
		invoke: async (call) => {
			const { calls } = call;
			const heldBack = calls?.begin();
			if (heldBack) return fail(heldBack);
			const invoked = await invokeWithTries(parts, call);
			return invoked.ok || !calls ? invoked : fail(calls.failed(invoked.failure));
		},
		upload: async (media, endByMs) => await uploadMedia(parts, media, endByMs),
	};
}

async function invokeWithTries(
	parts: AgentApiParts,
	call: InvokeCall,
): Promise<Result<Invoked, AgentFailure>> {
	const { account, redact, retry } = parts;
	const { calls } = call;
	const repeatability = call.retryAmbiguous ? 'read' : 'write';
	const { outcome, tries } = await retry(
		{
			...{ repeatability, lane: 'work', tries: call.tries, endByMs: parts.clock.now() + call.timeoutMs },
			mayRepeat: () => calls?.mayRepeat() ?? true,
		},
		async () => {
			calls?.sent();
			const answer = await invokeOnce(parts, call);
			if (answer.kind === 'unclear') calls?.unclear();
			return answer;
		},
	);
	if (outcome.kind === 'cancelled' && !parts.signal?.aborted) return fail(notAskedInTime(call));
	if (outcome.kind !== 'answered') {
		const facts = { account, redact, sessionId: call.sessionId };
		const failure = explainCall(outcome, { repeatability, tries }, facts);
		if (outcome.kind !== 'busy' || !outcome.sparesOthers) return fail(failure);
		return fail({ ...failure, busySession: { retryAfter: outcome.retryAfter, tries } });
	}
	return outcome.data.ok ? ok({ reply: outcome.data.value, tries }) : outcome.data;
}

async function invokeOnce(parts: AgentApiParts, call: InvokeCall): Promise<Outcome<Turn>> {
	const { account, clock, open } = parts;
	const reading = new Reading(parts, call);
	const request = {
		url: `${account.baseUrl}${account.invokePath}`,
		json: call.body,
		accept: 'application/json, text/event-stream',
		idleMs: Infinity,
		endByMs: clock.now() + call.timeoutMs,
		hasErrorEvents: true,
	};
	const opening: typeof open = async (asked) => {
		const opened = await open(asked);
		// Where there is no envelope the status has to be known before the first event is read.
		if (opened.kind === 'open') reading.opened(opened.reply.status);
		return opened;
	};
	const ended = await readAnswer(
		{ ...parts, open: opening },
		request,
		async (event) => await reading.take(event),
	);
	if (ended.kind === 'timedOut') return failed(timedOut(call));
	if (ended.kind === 'read') return reading.outcome(ended);
	return withoutEnvelope(ended, call.sessionId, account.deployment);
}
