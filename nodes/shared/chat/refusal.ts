import type { Exchange } from '../http/exchange';
import type { FailedOutcome } from '../http/outcome';
import { classify } from '../platform/envelope';
import { isJsonObject, parseJson, type Json } from '../text/json';
import { answerIn, errorIn } from '../answer/answerBody';
import { AnswerBuilder } from '../answer/answerBuilder';
import { TOO_MANY } from '../answer/answerReader';

/** The status with which a server says that it has read the question, but does not accept a part of it. */
const UNPROCESSABLE = 422;
const PAYMENT_REQUIRED = 402;

/** Codes that servers send with HTTP 429 for an account without credit, for which waiting does not help. */
const OUT_OF_CREDIT: ReadonlySet<Json | undefined> = new Set([
	'insufficient_quota',
	'billing_hard_limit_reached',
	'exceeded_current_quota_error',
]);

export const CREDIT_ADVICE =
	'Check the credit and the limits of the account, or use a key from another account.';

/**
 * Classifies a response that has no success status. Errors of this interface have no envelope (§7.1), so an error in the
 * interface's own form gets the HTTP status as its code, which shows that the URL is right.
 */
export function classifyRefusal(exchange: Exchange): FailedOutcome {
	const outcome = classify(exchange);
	if (outcome.kind === 'answered') return { kind: 'unclear', status: 200, text: 'no answer' };
	if (exchange.kind !== 'reply') return outcome;
	const body = parseJson(exchange.text) ?? null;
	if (outcome.kind === 'busy' && isOutOfCredit(body)) {
		return { kind: 'refused', status: TOO_MANY, code: TOO_MANY, text: outcome.text };
	}
	if (outcome.kind !== 'refused' || outcome.code !== null) return outcome;
	const isOfBody = outcome.status === UNPROCESSABLE && !outcome.wordless;
	return isOfBody || errorIn(body) ? { ...outcome, code: outcome.status } : outcome;
}

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

function isOutOfCredit(body: Json): boolean {
	const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
	return OUT_OF_CREDIT.has(error.code) || OUT_OF_CREDIT.has(error.type);
}

/** Whether a question was refused because the account has no credit. */
export function isForCredit(outcome: FailedOutcome): boolean {
	return outcome.kind === 'refused' && (outcome.status === PAYMENT_REQUIRED || outcome.status === TOO_MANY);
}
