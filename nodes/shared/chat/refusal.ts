import type { Exchange } from '../http/exchange';
import type { FailedOutcome } from '../http/outcome';
import { classify } from '../platform/envelope';
import { isJsonObject, parseJson } from '../text/json';
import { answerIn, errorIn } from '../answer/answerBody';
import { AnswerBuilder } from '../answer/answerBuilder';

/** The word, but not as a part of a path. */
const A_MODEL = /(?<![\w/.-])model(?![\w/.-]*\/)/i;

/** Whether a server says that it has read the question, but does not accept a part of it, or has no such model. */
function isOfBody({ status, text, wordless }: Extract<FailedOutcome, { kind: 'refused' }>): boolean {
	return !wordless && (status === 422 || (status === 404 && A_MODEL.test(text)));
}

/**
 * Classifies a response that has no success status. Errors of this interface have no envelope (§7.1), so an error in the
 * interface's own form gets the HTTP status as its code, which shows that the URL is right.
 */
export function classifyRefusal(exchange: Exchange): FailedOutcome {
	const outcome = classify(exchange);
	if (outcome.kind === 'answered') return { kind: 'unclear', status: 200, text: 'no answer' };
	if (exchange.kind !== 'reply') return outcome;
	const body = parseJson(exchange.text) ?? null;
	if (outcome.kind !== 'refused' || outcome.code !== null) return outcome;
	return isOfBody(outcome) || errorIn(body) ? { ...outcome, code: outcome.status } : outcome;
}

/** Matches messages of models that continue after a tool call only if their own reasoning is sent back. */
export const WANTS_REASONING =
	/missing\W{1,9}reasoning_content|reasoning_content\W.{0,200}\b(?:missing|must(?! not))\b/i;

/**
 * Whether the body of a response that has no success status is an answer all the same, which is billed. A choice alone
 * is none, because a refusal may contain one that is empty, or that says what failed.
 */
export function isAnswer(text: string): boolean {
	const body = parseJson(text);
	if (!isJsonObject(body) || errorIn(body)) return false;
	const answer = new AnswerBuilder();
	answer.add(answerIn(body));
	return answer.isBilled;
}

/**
 * Whether a code says that an answer came whose compression or HTTP header cannot be read: the next one would be billed
 * and just as useless. What is not HTTP at all comes from no model.
 */
export function isUnreadable(code: string): boolean {
	return /^(Z_|ZSTD_|ERR__ERROR_|HPE_(?!INVALID_CONSTANT)|UND_ERR_HEADERS_OVERFLOW)/.test(code);
}
