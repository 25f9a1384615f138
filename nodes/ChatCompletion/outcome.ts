import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import type { ReadAnswer } from '../shared/http/answerStream';
import type { Clock } from '../shared/run/clock';
import type { Outcome } from '../shared/http/outcome';
import type { ChatAnswer } from '../shared/answer/answerBuilder';
import type { AnswerReader } from '../shared/answer/answerReader';
import type { ContentParts } from '../shared/answer/contentParts';
import type { JsonObject } from '../shared/text/json';
import { quote, type Redact } from '../shared/text/redact';
import { outcomeOfError } from './failures';

/** How long an answer may take, and what receives its pieces. */
export interface AnswerTerms {
	/** Called and awaited for each piece of the answer, in order. Text that arrived together is one piece. */
	readonly onPiece: (piece: ContentParts) => Promise<void>;
	/** The idle timeout: before the answer begins, and between two pieces that are not empty. */
	readonly idleMs: number;
	/** When the whole answer must have arrived, by the clock's `now()`. */
	readonly endByMs: number;
}

/** A whole answer, or a failure after which something may be billed. The question is not sent again after either. */
export type BilledAnswer = Result<ChatAnswer>;

/** The most characters that an error shows of a part that was cut off. */
const CUT_OFF_SHOWN = 2_000;

/**
 * Decides what becomes of a question whose answer was read to its end.
 * @param late the failure if no answer began in time
 */
export function outcomeOf(
	answer: AnswerReader,
	{ status, headers, broken }: ReadAnswer,
	redact: Redact,
	late: Failure,
): Outcome<BilledAnswer> {
	const { error } = answer;
	if (answer.isComplete) {
		const laterError = error ? quote(redact, error.text) : '';
		return { kind: 'answered', data: ok({ ...answer.builder.answer(), laterError }) };
	}
	if (answer.hasBegun) return failed(brokeOff(answer, broken?.code, redact));
	if (error) return outcomeOfError(error, status);
	if (broken?.isTimeout) return failed(late);
	if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
	if (answer.hasChoices) return failed(noChoice(partOf(answer, redact)));
	const isPage = /html/i.test(headers['content-type'] ?? '');
	const text = isPage ? 'a web page instead of an answer' : 'an answer without content';
	return { kind: 'unclear', status, text };
}

function noChoice(details: JsonObject): Failure {
	return {
		kind: 'unclear',
		message: 'The platform ended its response without an answer: "choices" is empty',
		advice:
			'The question was not sent again, because a second answer may be billed, too. A content filter may have removed the answer: check the messages, or choose another model.',
		details,
	};
}

/** For an answer whose HTTP status reports a failure. */
export function answerWithStatus(answer: AnswerReader, status: number, redact: Redact): Failure {
	return {
		kind: 'unclear',
		message: `The platform sent an answer, but with HTTP ${status}, which means a failure`,
		advice:
			"What arrived is in the error's details. The question was not sent again, because what was generated is billed.",
		details: { httpStatus: status, ...partOf(answer, redact) },
	};
}

/** @param code of the error that broke the connection */
function brokeOff(answer: AnswerReader, code: string | undefined, redact: Redact): Failure {
	const { builder, gap } = answer;
	const { content, reasoning } = builder.answer();
	const length = content.length + reasoning.length;
	const isIdle = code === 'ETIMEDOUT' && !builder.hasFailed;
	return {
		kind: isIdle || code === 'ERR_TOO_LATE' ? 'timedOut' : 'unclear',
		message: `The answer broke off after ${length} characters: ${answer.whyIncomplete(redact)}`,
		advice: `${isIdle ? 'Raise "Idle Timeout (Seconds)" under "Cost and Speed" if the model needs longer pauses. ' : ''}What arrived is in the error's details. The question was not sent again, because what was generated is billed.`,
		details: {
			...partOf(answer, redact),
			...(gap !== undefined && { cutOff: quote(redact, gap, CUT_OFF_SHOWN) }),
		},
	};
}

/** What arrived of a broken answer. The error includes it, because it is billed. */
function partOf({ builder }: AnswerReader, { known }: Redact): JsonObject {
	const { content, reasoning, finishReason, id, model, usage } = builder.answer();
	return {
		content: known(content),
		reasoning: known(reasoning),
		...(finishReason && { finishReason: known(finishReason) }),
		...(id && { id: known(id) }),
		...(model && { model: known(model) }),
		...(Object.keys(usage).length > 0 && { usage: { ...usage } }),
	};
}

/** A failure after which the question is not sent again. */
export function failed(failure: Failure): Outcome<BilledAnswer> {
	return { kind: 'answered', data: fail(failure) };
}

export function timedOut(clock: Clock, { idleMs, endByMs }: AnswerTerms): Failure {
	if (clock.now() >= endByMs) {
		return {
			kind: 'timedOut',
			message: 'The answer did not arrive before the timeout',
			advice: 'Raise "Timeout (Seconds)" under "Cost and Speed", or set it to 0 for no limit.',
		};
	}
	return {
		kind: 'timedOut',
		message: `No answer began within ${Math.round(idleMs / 1000)} seconds`,
		advice:
			'Raise "Idle Timeout (Seconds)" under "Cost and Speed" if the model needs more time to think. The question was not sent again, because it may still be answered and billed.',
	};
}
