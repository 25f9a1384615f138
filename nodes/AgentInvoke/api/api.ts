import { fail, type Failure, type Result } from '../../shared/errors/failure';
import {
	readAnswer,
	whyBroken,
	type AnswerConnection,
	type ReadAnswer,
} from '../../shared/http/answerStream';
import type { FailedOutcome, Outcome } from '../../shared/http/outcome';
import { explainHeldBack } from '../../shared/platform/failures';
import type { Retry } from '../../shared/retry/retry';
import type { Redact } from '../../shared/text/redact';
import { concludeAnswer, type AgentReply, type WireFailure } from '../wire/conclusion';
import { isOwnWord, ofForeign } from '../wire/foreign';
import { WireReader } from '../wire/reader';
import { addressOf, type WireRequest } from '../wire/request';
import type { TurnCalls } from './callLimit';
import {
	arrivedOf,
	busyOutcome,
	explainBusySession,
	explainCall,
	explainRefusal,
	explainRun,
	isPassing,
	NO_REASON,
	type AgentFailure,
	type RefusalFacts,
} from './failures';
import { uploadMedia, type UploadConnection, type UploadedMedia } from './upload';

export interface InvokeCall {
	/** The request, including the session if there is one. */
	readonly request: WireRequest;
	/** The session in the request; empty if the call opens one. */
	readonly sessionId: string;
	readonly timeoutMs: number;
	/** See `RetryTerms`. */
	readonly tries: number;
	/** Whether to ask again even if the agent may have run. */
	readonly retryAmbiguous: boolean;
	readonly onDelta: (text: string) => Promise<void>;
	/** Called as soon as the session is known, and again if its ID changes. */
	readonly onSession: (sessionId: string) => void;
	/** Asked before each attempt: if false, nothing is sent. */
	readonly maySend: () => boolean;
	/** Counts the requests of a turn, and decides before each retry whether it is allowed. */
	readonly calls: TurnCalls;
}

/** The outcome of a call. A refusal that is final counts as answered, just as a reply does. */
type InvokeOutcome = Outcome<Result<AgentReply, AgentFailure>>;

interface AgentConnection extends UploadConnection, AnswerConnection {
	readonly retry: Pick<Retry, 'run' | 'pausedMs'>;
}

const CLAIM_STALE: AgentFailure = {
	kind: 'notSubmitted',
	message:
		'The agent was not asked for this item, because the Data Table did not confirm in time that its key is still claimed',
	advice: 'Nothing was sent for this item. Run it again. If this happens often, check the database of n8n.',
};

/** Calls an agent instance. Its methods never throw. */
export class AgentApi {
	constructor(private readonly connection: AgentConnection) {}

	/** `POST …/Invoke` (§4.6), answered whole or as a stream. */
	async invoke(call: InvokeCall): Promise<Result<AgentReply, AgentFailure>> {
		const { account, clock, redact, retry } = this.connection;
		const { calls } = call;
		const repeatability = call.retryAmbiguous ? 'read' : 'write';
		const endByMs = clock.now() + call.timeoutMs;
		let unclear: InvokeOutcome | undefined;
		const { outcome: last, tries } = await retry.run(
			{
				...{ repeatability, lane: 'work', tries: call.tries, endByMs, maySend: call.maySend },
				mayRepeat: () => calls.mayRepeat(),
			},
			async (): Promise<InvokeOutcome> => {
				calls.sent();
				const answer = await invokeOnce(this.connection, call);
				if (answer.kind === 'unclear') {
					calls.wasUnclear = true;
					unclear = answer;
				}
				return answer;
			},
		);
		// Cancelling a retry does not undo the calls before it: the agent may have run.
		const outcome = last.kind === 'cancelled' ? (unclear ?? last) : last;
		if (outcome.kind === 'cancelled' && clock.now() >= endByMs)
			return fail(explainHeldBack('The agent', retry.pausedMs));
		if (outcome.kind === 'cancelled' && !call.maySend()) return fail(CLAIM_STALE);
		if (outcome.kind !== 'answered') {
			const facts = { account, redact, sessionId: call.sessionId };
			return fail(explainCall(outcome, { repeatability, tries }, facts));
		}
		return outcome.data;
	}

	async upload(media: File, endByMs: number): Promise<Result<UploadedMedia>> {
		return await uploadMedia(this.connection, media, endByMs);
	}
}

async function invokeOnce(connection: AgentConnection, call: InvokeCall): Promise<InvokeOutcome> {
	const { account, clock, redact } = connection;
	const { path, headers, body: json } = call.request;
	const reader = new WireReader(account.wire, redact.known);
	let body = '';
	const request = {
		url: addressOf(account, { path }),
		headers,
		json,
		accept: 'application/json, text/event-stream',
		idleMs: Infinity,
		endByMs: clock.now() + call.timeoutMs,
		hasErrorEvents: true,
		hasLines: account.wire.stream.format === 'jsonLines',
		// The agent keeps running after the execution is stopped, and its answer names the session.
		outlivesStop: true,
	};
	let reported = '';
	const report = (sessionId: string): void => {
		if (sessionId === '' || sessionId === reported) return;
		reported = sessionId;
		call.onSession(sessionId);
	};
	const ended = await readAnswer(connection, request, async (event) => {
		reader.read(event);
		report(reader.sessionId);
		// A body that came whole was not streamed, so there is no progress to report.
		if (event.isWholeBody) body = event.data;
		else if (reader.delta !== '') await call.onDelta(reader.delta);
		if (reader.isClosed || reader.fault) return 'closed';
		return reader.endedBy === '' ? 'progress' : 'finished';
	});
	if (ended.kind === 'timedOut') return failed(timedOut(call, call.sessionId));
	if (ended.kind !== 'read') return ofForeign(ended);
	const { sessionId } = call;
	const broken = brokenBy(reader, ended, redact);
	const concluded = concludeAnswer(reader, { ...ended, broken, sessionId });
	if (concluded.ok) {
		report(concluded.value.sessionId);
		return { kind: 'answered', data: concluded };
	}
	const { failure } = concluded;
	// An agent that ran and failed keeps its session, which a header may name.
	if (failure.kind !== 'refused') report(failure.sessionId);
	return outcomeOf(failure, { reader, body, ended }, call, { account, redact, sessionId });
}

/** Why an answer broke off, as a clause; empty if it did not. */
function brokenBy({ endedBy }: WireReader, { broken }: ReadAnswer, redact: Redact): string {
	// After a final event, it is not an error to time out while waiting for more.
	const isOver = endedBy !== '' && broken?.isTimeout === true;
	return broken && !isOver ? whyBroken(broken, redact) : '';
}

/** An answer whose events have all been read. */
interface WholeReading {
	readonly reader: WireReader;
	/** The body, if it was not a stream. */
	readonly body: string;
	readonly ended: ReadAnswer;
}

/** The outcome of an unsuccessful answer; it decides whether the agent is asked again. */
function outcomeOf(
	failure: WireFailure,
	reading: WholeReading,
	call: InvokeCall,
	facts: RefusalFacts,
): InvokeOutcome {
	const { reader, body, ended } = reading;
	const { status, headers, broken } = ended;
	const isOwn = isOwnWord(failure, reader);
	const isBegun = reader.hasBegun || (reader.gap !== '' && !reader.isWholeBody);
	const isOfAgent = isOwn || reader.names.size > 0;
	if (isBegun || (isOfAgent && ['notAnAnswer', 'brokeOff'].includes(failure.kind)))
		return failed(explainRun(failure, facts, !reader.isWholeBody));
	if (isOwn) return refused(failure, reading, call, facts);
	if (broken?.isTimeout) return failed(timedOut(call, failure.sessionId));
	const outcome: FailedOutcome = broken
		? { kind: 'unclear', code: broken.code, text: broken.reason }
		: ofForeign({ kind: 'reply', status, headers, text: body }, failure);
	return outcome.kind === 'unclear' ? { ...outcome, details: arrivedOf(failure, facts) } : outcome;
}

function refused(
	failure: WireFailure,
	{ ended: { headers } }: WholeReading,
	{ retryAmbiguous }: InvokeCall,
	facts: RefusalFacts,
): InvokeOutcome {
	if (isPassing(failure)) {
		const { status, meaning, kind } = failure;
		if (kind === 'refused' && meaning !== 'busy') return busyOutcome(failure, headers);
		if (kind === 'refused') return failed(explainBusySession(failure, headers['retry-after'], facts));
		if (retryAmbiguous) return { kind: 'unclear', status, text: failure.why || NO_REASON, inItsForm: true };
	}
	return failed(explainRefusal(failure, facts));
}

function failed(failure: AgentFailure): InvokeOutcome {
	return { kind: 'answered', data: fail(failure) };
}

function timedOut({ timeoutMs }: InvokeCall, sessionId: string): Failure {
	return {
		kind: 'timedOut',
		message: `The agent gave no answer within ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			'The agent may still be running, and was not asked again. Raise "Timeout (Seconds)" in the options if it needs longer.',
		details: { mayHaveRun: true, ...(sessionId && { sessionId }) },
	};
}
