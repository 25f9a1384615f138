import { fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import {
	readAnswer,
	whyBroken,
	type AnswerConnection,
	type ReadAnswer,
} from '../../shared/http/answerStream';
import { ofWrite, type Outcome } from '../../shared/http/outcome';
import { explainHeldBack } from '../../shared/platform/failures';
import type { Headers } from '../../shared/http/exchange';
import type { Retry } from '../../shared/retry/retry';
import type { Redact } from '../../shared/text/redact';
import { concludeAnswer, type AgentReply, type WireFailure } from '../wire/conclusion';
import { WireReader } from '../wire/reader';
import { addressOf, type OpenRequest, type WireRequest } from '../wire/request';
import type { TurnCalls } from './callLimit';
import {
	arrivedOf,
	explainBusySession,
	explainRefusal,
	explainRun,
	NO_REASON,
	type AgentFailure,
	type RefusalFacts,
} from './failures';
import { busyOutcome, explainAgentCall, isPassing, ofForeign } from './unanswered';
import { openSession } from './openSession';
import { uploadMedia, type CallConnection, type UploadedMedia } from './upload';

export interface InvokeCall {
	/** Makes the request in a session. */
	readonly request: OpenRequest;
	/** The session in the request; empty if the call opens one. */
	readonly sessionId: string;
	readonly timeoutMs: number;
	/** See `RetryTerms`. */
	readonly tries: number;
	/** Whether to ask again even if the agent may have run. */
	readonly sendAgain: boolean;
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

interface AgentConnection extends CallConnection, AnswerConnection {
	readonly retry: Pick<Retry, 'run' | 'pausedMs'>;
}

const CLAIM_STALE: AgentFailure = {
	kind: 'notSubmitted',
	message:
		'Nothing was sent to the agent for this item, because the Data Table did not confirm in time that its key is still claimed',
	advice: 'Run the node again with this item. If this happens often, check the database of n8n.',
};

/** Calls an agent instance. Its methods never throw. */
export class AgentApi {
	constructor(private readonly connection: AgentConnection) {}

	/** `POST …/Invoke` (§4.6), answered whole or as a stream. */
	async invoke(call: InvokeCall): Promise<Result<AgentReply, AgentFailure>> {
		const { account, clock, redact, retry } = this.connection;
		const { calls } = call;
		const sessionId = call.sessionId ? ok(call.sessionId) : await openSession(this.connection, call);
		const request = sessionId.ok ? call.request(sessionId.value) : sessionId;
		if (!request.ok) return request;
		const repeatability = call.sendAgain ? 'read' : 'write';
		const endByMs = clock.now() + call.timeoutMs;
		let unclear: InvokeOutcome | undefined;
		const { outcome: last, tries } = await retry.run(
			{
				repeatability,
				lane: 'work',
				tries: call.tries,
				endByMs,
				maySend: call.maySend,
				mayRepeat: () => calls.mayRepeat(),
			},
			async (): Promise<InvokeOutcome> => {
				calls.sent();
				const answer = await invokeOnce(this.connection, call, request.value);
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
			return fail(explainHeldBack('the agent', retry.pausedMs));
		if (outcome.kind === 'cancelled' && !call.maySend()) return fail(CLAIM_STALE);
		if (outcome.kind !== 'answered') {
			// A call that may have arrived may have begun the session that the request names.
			const { sessionId: named } = outcome.kind === 'unclear' ? request.value : call;
			const facts = { account, redact, sessionId: named };
			return fail(explainAgentCall(outcome, { repeatability, tries }, facts));
		}
		return outcome.data;
	}

	async upload(media: File, endByMs: number): Promise<Result<UploadedMedia>> {
		return await uploadMedia(this.connection, media, endByMs);
	}
}

async function invokeOnce(
	connection: AgentConnection,
	call: InvokeCall,
	{ path, headers, body: json, sessionId: asked }: WireRequest,
): Promise<InvokeOutcome> {
	const { account, clock, redact } = connection;
	const reader = new WireReader(account.wire, redact.known, call.sessionId ? '' : asked);
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
		// An ID that only the request has named is kept once the agent has begun.
		const hasBegun = reader.hasBegun && !reader.isWholeBody;
		if (hasBegun || reader.sessionId !== reader.chosenId) report(reader.sessionId);
		// A body that came whole was not streamed, so there is no progress to report.
		if (event.isWholeBody) body = event.data;
		else if (reader.delta !== '') await call.onDelta(reader.delta);
		if (reader.isClosed || reader.fault) return 'closed';
		return reader.isFinished ? 'finished' : 'progress';
	});
	if (ended.kind === 'timedOut') return failed(timedOut(call, asked));
	// A stopped execution does not stop an agent that was asked, so that call is unclear, not cancelled.
	if (ended.kind !== 'read') return ended.kind === 'reply' ? NO_EVENTS : ofWrite(ended);
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
function brokenBy({ isFinished }: WireReader, { broken }: ReadAnswer, redact: Redact): string {
	// After a final event, it is not an error to time out while waiting for more.
	const isOver = isFinished && broken?.isTimeout === true;
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
	{ reader, body, ended }: WholeReading,
	call: InvokeCall,
	facts: RefusalFacts,
): InvokeOutcome {
	const { status, headers, broken } = ended;
	if (failure.kind === 'refused') return refused(failure, headers, facts);
	if (reader.isInForm) {
		const mayPass = failure.kind === 'failed' && !reader.hasBegun && isPassing(failure);
		return mayPass && call.sendAgain
			? { kind: 'unclear', status: failure.status, text: failure.why || NO_REASON, inItsForm: true }
			: failed(explainRun(failure, facts, reader.hasBegun && !reader.isWholeBody));
	}
	if (broken?.isTimeout) return failed(timedOut(call, failure.sessionId));
	const outcome = broken
		? ({ kind: 'unclear', code: broken.code, text: broken.reason } as const)
		: ofForeign({ kind: 'reply', status, headers, text: body }, failure);
	return outcome.kind === 'unclear' ? { ...outcome, details: arrivedOf(failure, facts) } : outcome;
}

function refused(failure: WireFailure, headers: Headers, facts: RefusalFacts): InvokeOutcome {
	if (failure.meaning === 'busy') return failed(explainBusySession(failure, headers['retry-after'], facts));
	return isPassing(failure) ? busyOutcome(failure, headers) : failed(explainRefusal(failure, facts));
}

/** Never happens, because error statuses are read as events, too. */
const NO_EVENTS: InvokeOutcome = { kind: 'unclear', code: '', text: 'an answer that was not read' };

function failed(failure: AgentFailure): InvokeOutcome {
	return { kind: 'answered', data: fail(failure) };
}

function timedOut({ timeoutMs }: InvokeCall, sessionId: string): Failure {
	return {
		kind: 'timedOut',
		message: `The agent gave no answer within ${Math.round(timeoutMs / 1000)} seconds`,
		advice:
			"The agent may still be running, and was not asked again. Raise 'Timeout (Seconds)' in the options if it needs longer.",
		details: { mayHaveRun: true, ...(sessionId && { sessionId }) },
	};
}
