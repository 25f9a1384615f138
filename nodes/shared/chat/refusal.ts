import type { Exchange } from '../http/exchange';
import type { Outcome } from '../http/outcome';
import { classify } from '../platform/envelope';
import { parseJson, type Json } from '../text/json';
import { errorIn } from './answerBody';

/** The status with which a server says that it has read the question, but does not accept a part of it. */
const UNPROCESSABLE = 422;

/**
 * Classifies a response that has no success status. Errors of this interface have no envelope (§7.1), so an error in the
 * interface's own form gets the HTTP status as its code, which shows that the URL is right.
 */
export function classifyRefusal(exchange: Exchange): Outcome<Json | undefined> {
	const outcome = classify(exchange);
	if (exchange.kind !== 'reply' || outcome.kind !== 'refused' || outcome.code !== null) return outcome;
	const isOfBody = outcome.status === UNPROCESSABLE && !outcome.wordless;
	const isChatError = isOfBody || errorIn(parseJson(exchange.text) ?? null) !== undefined;
	return isChatError ? { ...outcome, code: outcome.status } : outcome;
}
