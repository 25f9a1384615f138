import { isJsonObject, type Json } from '../text/json';

export const PAYMENT_REQUIRED = 402;

export const CREDIT_ADVICE =
	'Check the credit and the limits of the account, or use a key of another account.';

/** Codes that servers send with HTTP 429 for an account without credit, for which waiting does not help. */
const OUT_OF_CREDIT: ReadonlySet<Json | undefined> = new Set([
	'insufficient_quota',
	'billing_hard_limit_reached',
	'exceeded_current_quota_error',
]);

export function isOutOfCredit(body: Json | undefined): boolean {
	const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {};
	return OUT_OF_CREDIT.has(error.code) || OUT_OF_CREDIT.has(error.type);
}
