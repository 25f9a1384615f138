import { ok } from '../shared/errors/failure';
import { whyBroken, type BrokenOff, type ReadAnswer } from '../shared/http/answerStream';
import type { Outcome } from '../shared/http/outcome';
import { quote } from '../shared/platform/failures';
import type { JsonObject } from '../shared/text/json';
import { replyOf } from './agentReply';
import { failed, timedOut, type InvokeCall, type Turn } from './call';
import { detailsOf, explainRefusal, isPassing, type RefusalFacts } from './failures';
import { isOwnWord, ofForeign } from './foreign';
import { concludeAnswer, type WireFailure } from './wire/conclusion';
import type { ReadingOf, WireState } from './wire/reader';

/** How much of an answer that broke off goes into the error, in characters. */
const CUT_OFF_SHOWN = 100_000;

/** An answer whose events were all read. */
export interface WholeReading {
	readonly of: ReadingOf;
	readonly state: WireState;
	/** The body, where it was no stream. */
	readonly body: string;
	readonly ended: ReadAnswer;
}

/** What an answer came to, for whoever decides whether to ask again. */
export function outcomeOf(reading: WholeReading, call: InvokeCall, facts: RefusalFacts): Outcome<Turn> {
	const { of, state, body, ended } = reading;
	const { status, headers, broken } = ended;
	const { sessionId } = call;
	// Who waits for more after the end has waited for nothing.
	const isOver = state.endedBy !== '' && broken?.isTimeout === true;
	const why = broken && !isOver ? whyBroken(broken, facts.redact) : '';
	const concluded = concludeAnswer(of, state, { status, headers, broken: why, sessionId });
	if (concluded.ok) {
		call.onSession(concluded.value.sessionId);
		return { kind: 'answered', data: ok(replyOf(concluded.value)) };
	}
	const { failure } = concluded;
	if (state.hasBegun || (state.gap !== '' && !state.isWholeBody))
		return failed(unfinished(failure, state, facts));
	if (isOwnWord(failure, state, of)) {
		return failure.kind === 'notAnAnswer' || failure.kind === 'brokeOff'
			? failed(unfinished(failure, state, facts))
			: refused(failure, reading, call, facts);
	}
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
		const text = failure.why || 'no reason was given';
		const told = status >= 300 ? status : undefined;
		if (!failure.mayHaveRun) {
			const busy = { kind: 'busy', retryAfter: headers['retry-after'], text, status: told } as const;
			return meaning === 'busy' ? { ...busy, sparesOthers: true, details: detailsOf(failure, facts) } : busy;
		}
		if (retryAmbiguous) return { kind: 'unclear', status, text, inItsForm: true };
	}
	return failed(explainRefusal(failure, facts));
}

/** The agent has begun, and no whole answer came of it: whatever the reason, it is not asked again. */
function unfinished(failure: WireFailure, state: WireState, facts: RefusalFacts) {
	const { redact } = facts;
	const said = quote(redact, failure.why || 'no reason was given');
	const expected = quote(redact, failure.expected);
	const details = partial(failure, facts);
	switch (failure.kind) {
		case 'brokeOff':
			return {
				...({ kind: 'unclear', details } as const),
				message: `The agent's answer broke off after ${state.text.length} characters: ${said}`,
				advice: `What had arrived is in the error's details. The agent was not asked again, because it has run at least in part. ${expected}`,
			};
		case 'notAnAnswer': {
			const reason = failure.code && ` (${quote(redact, failure.code)})`;
			return {
				...({ kind: 'unclear', details } as const),
				message: `The agent's answer is empty${reason}: ${whatCameIn(expected)}`,
				advice: `The agent was not asked again, because it has run. Compare the entry with what came, which "Preview Response" and "Simplify" turned off show.`,
			};
		}
		default: {
			const when = state.isWholeBody ? '' : ' while it answered';
			return {
				...({ kind: 'agentFailed', details } as const),
				message: `The agent failed${when}: ${said}`,
				advice: `What had arrived is in the error's details. The agent was not asked again, because what it did up to then is done. ${expected}`,
			};
		}
	}
}

/** As it reads within a sentence, without a full stop. */
function whatCameIn(expected: string): string {
	return expected.replace(/^E/, 'e').replace(/\.$/, '');
}

/** What there is of an answer that never became whole. */
function partial(failure: WireFailure, facts: RefusalFacts): JsonObject {
	const answer = facts.redact.known(failure.text);
	return {
		mayHaveRun: true,
		...detailsOf(failure, facts),
		...(failure.sessionId && { sessionId: failure.sessionId }),
		answer: answer.length <= CUT_OFF_SHOWN ? answer : `${answer.slice(0, CUT_OFF_SHOWN)}…`,
	};
}
