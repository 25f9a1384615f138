import { ok } from '../../shared/errors/failure';
import { whyBroken, type BrokenOff, type ReadAnswer } from '../../shared/http/answerStream';
import type { Outcome } from '../../shared/http/outcome';
import { replyOf } from './agentReply';
import { failed, timedOut, type InvokeCall, type Turn } from './invokeCall';
import { detailsOf, explainRefusal, explainRun, isPassing, NO_REASON, type RefusalFacts } from './failures';
import { isOwnWord, ofForeign } from '../wire/foreign';
import { concludeAnswer, type WireFailure } from '../wire/conclusion';
import type { ReadingOf, WireState } from '../wire/reader';

/** An answer whose events have all been read. */
export interface WholeReading {
	readonly of: ReadingOf;
	readonly state: WireState;
	/** The body, if it was not a stream. */
	readonly body: string;
	readonly ended: ReadAnswer;
}

/** The outcome of an answer, which decides whether the agent is asked again. */
export function outcomeOf(reading: WholeReading, call: InvokeCall, facts: RefusalFacts): Outcome<Turn> {
	const { of, state, body, ended } = reading;
	const { status, headers, broken } = ended;
	const { sessionId } = call;
	// After a final event, waiting for more in vain is no error.
	const isOver = state.endedBy !== '' && broken?.isTimeout === true;
	const why = broken && !isOver ? whyBroken(broken, facts.redact) : '';
	const concluded = concludeAnswer(of, state, { status, headers, broken: why, sessionId });
	if (concluded.ok) {
		call.onSession(concluded.value.sessionId);
		return { kind: 'answered', data: ok(replyOf(concluded.value)) };
	}
	const { failure } = concluded;
	const isOwn = isOwnWord(failure, state, of);
	const isBegun = state.hasBegun || (state.gap !== '' && !state.isWholeBody);
	if (isBegun || (isOwn && ['notAnAnswer', 'brokeOff'].includes(failure.kind)))
		return failed(explainRun(failure, facts, !state.isWholeBody));
	if (isOwn) return refused(failure, reading, call, facts);
	if (broken) return ofBroken(broken, call);
	return ofForeign({ kind: 'reply', status, headers, text: body }, failure);
}

function ofBroken({ isTimeout, code, reason }: BrokenOff, call: InvokeCall): Outcome<Turn> {
	return isTimeout ? failed(timedOut(call)) : { kind: 'unclear', code, text: reason };
}

function refused(
	failure: WireFailure,
	{ ended: { headers } }: WholeReading,
	{ retryAmbiguous }: InvokeCall,
	facts: RefusalFacts,
): Outcome<Turn> {
	if (isPassing(failure)) {
		const { status, meaning } = failure;
		const text = failure.why || NO_REASON;
		const told = status >= 300 ? status : undefined;
		if (!failure.mayHaveRun) {
			const busy = { kind: 'busy', retryAfter: headers['retry-after'], text, status: told } as const;
			return meaning === 'busy' ? { ...busy, sparesOthers: true, details: detailsOf(failure, facts) } : busy;
		}
		if (retryAmbiguous) return { kind: 'unclear', status, text, inItsForm: true };
	}
	return failed(explainRefusal(failure, facts));
}
