import { randomUUID } from 'crypto';

import { fail, ok, type Result } from '../../shared/errors/failure';
import { excerpt, jsonText } from '../../shared/text/json';
import { explainCall } from '../../shared/platform/failures';
import type { Outcome } from '../../shared/http/outcome';
import { concludeRefusal } from '../wire/conclusion';
import { valueAt } from '../../shared/form/expression';
import { idOf } from '../wire/answerValues';
import { WireReader } from '../wire/reader';
import { addressOf, openingRequest, type WireRequest } from '../wire/request';
import { explainRefusal } from './failures';
import { busyOutcome, isPassing, ofForeign } from './unanswered';
import type { CallConnection } from './upload';

interface OpeningTerms {
	readonly tries: number;
	readonly timeoutMs: number;
	readonly onSession: (sessionId: string) => void;
}

const NOT_SENT = 'The message was not sent.';
const ADVICE = { busy: `${NOT_SENT} Run the workflow later.`, rightful: NOT_SENT, check: NOT_SENT };

/**
 * Opens the session of a first message by the call that the description names, if it names one. Opening one twice does
 * no harm, because only the last is used.
 * @returns the session; empty if the message itself opens it
 */
export async function openSession(
	connection: CallConnection,
	{ tries, timeoutMs, onSession }: OpeningTerms,
): Promise<Result<string>> {
	const { account, clock, redact, retry } = connection;
	const request = openingRequest(account.wire, randomUUID());
	if (!request) return ok('');
	if (!request.ok) return request;
	const endByMs = clock.now() + timeoutMs;
	const ended = await retry.run(
		{ repeatability: 'read', lane: 'work', tries, endByMs },
		async () => await openOnce(connection, request.value, endByMs),
	);
	const facts = { purpose: 'open a session', repeatability: 'read', baseUrl: account.baseUrl } as const;
	if (ended.outcome.kind !== 'answered') {
		const failure = explainCall(ended.outcome, { ...facts, tries: ended.tries, redact }, ADVICE);
		// Whatever became of this call, the agent was not asked.
		return fail(
			failure.kind === 'unclear'
				? { ...failure, kind: 'unreachable', advice: `${NOT_SENT} ${failure.advice}` }
				: failure,
		);
	}
	if (ended.outcome.data.ok) onSession(ended.outcome.data.value);
	return ended.outcome.data;
}

async function openOnce(
	{ account, send, clock, redact }: CallConnection,
	{ path, headers, body: json, sessionId: chosenId }: WireRequest,
	endByMs: number,
): Promise<Outcome<Result<string>>> {
	const { wire } = account;
	const timeoutMs = Math.max(0, endByMs - clock.now());
	const exchange = await send({
		method: 'POST',
		url: addressOf(account, { path }),
		headers,
		json,
		timeoutMs,
	});
	if (exchange.kind !== 'reply') return exchange;
	const { status, text } = exchange;
	const reader = new WireReader(wire, redact.known);
	reader.read({ data: text, isWholeBody: true });
	if (status >= 200 && status < 300 && !reader.fault) {
		const id = idOf(valueAt(wire.request.open?.session, reader.raw)) || chosenId;
		return {
			kind: 'answered',
			data: id ? ok(id) : fail(withoutSession(excerpt(jsonText(reader.raw) ?? ''))),
		};
	}
	const failure = concludeRefusal(reader, { status, headers: exchange.headers, broken: '', sessionId: '' });
	if (!failure) return { kind: 'unclear', status, text: 'an answer that cannot be read' };
	if (isPassing(failure)) return busyOutcome(failure, exchange.headers);
	const foreign = ofForeign(exchange, failure);
	if (status >= 500 || foreign.kind === 'redirected') return foreign;
	// Whatever became of this call, the agent was not asked.
	const refused = explainRefusal({ ...failure, kind: 'refused' }, { account, redact, sessionId: '' });
	const advice = `This was the call of "request.open". ${NOT_SENT} ${refused.advice}`;
	return { kind: 'answered', data: fail({ ...refused, advice }) };
}

function withoutSession(answer: string) {
	return {
		kind: 'refused',
		message: 'The call that opens a session was answered without a session',
		advice: `${NOT_SENT} Check "request.open.session" of the description in the credential: the answer was ${answer}`,
	} as const;
}
