import { fail, type Result } from '../shared/errors/failure';
import { parseJson, type JsonObject } from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import { readAnswer, type AnswerConnection } from '../shared/http/answerStream';
import type { Exchange } from '../shared/http/exchange';
import type { Outcome } from '../shared/http/outcome';
import type { Retry } from '../shared/retry/retry';
import type { BusyTerms } from '../shared/platform/envelope';
import { classifyRefusal } from '../shared/chat/refusal';
import { isOutOfCredit } from '../shared/chat/credit';
import { explainChat } from './failures';
import { AnswerBuilder, type ChatAnswer } from './answer/answerBuilder';
import { AnswerReader, failed, timedOut, type AnswerTerms, type BilledAnswer } from './answer/answerReader';

export interface ChatCall extends AnswerTerms {
	readonly body: JsonObject;
	readonly tries: number;
}

export interface ChatConnection extends AnswerConnection {
	/** The base URL, without a trailing slash. */
	readonly baseUrl: string;
	readonly retry: Pick<Retry, 'run'>;
	readonly redact: Redact;
	readonly busyTerms: BusyTerms;
}

export type CompleteChat = (call: ChatCall) => Promise<Result<ChatAnswer>>;

/** Path of the chat endpoint (§4.5), below the base URL. */
export const CHAT_PATH = '/maas/v1/chat/completions';
/** The `Accept` header of the samples in §4.5. */
const ACCEPT = 'application/json, text/event-stream, */*';

/** The chat interface (§4.5). A question is sent again only if no part of an answer has arrived. */
export function createChatApi(connection: ChatConnection): CompleteChat {
	const { baseUrl, redact } = connection;
	return async (call) => {
		const { tries: mostTries, endByMs } = call;
		const terms = { repeatability: 'read', lane: 'work', tries: mostTries, endByMs } as const;
		const { outcome, tries } = await connection.retry.run(terms, async () => await askOnce(connection, call));
		if (outcome.kind === 'answered') return outcome.data;
		if (outcome.kind === 'cancelled' && connection.clock.now() >= endByMs) {
			return fail(timedOut(connection.clock, call));
		}
		const purpose = 'get an answer from the model';
		return fail(explainChat(outcome, { purpose, repeatability: 'read', baseUrl, tries, redact }));
	};
}

async function askOnce(connection: ChatConnection, call: ChatCall): Promise<Outcome<BilledAnswer>> {
	const { baseUrl, clock, redact, busyTerms } = connection;
	const { body: json, idleMs, endByMs } = call;
	const builder = new AnswerBuilder((json.n ?? 1) === 1);
	const reader = new AnswerReader(clock, redact, call, busyTerms, builder);
	const ended = await readAnswer(
		connection,
		{ url: `${baseUrl}${CHAT_PATH}`, json, accept: ACCEPT, idleMs, endByMs },
		(event) => reader.take(event),
		async () => await reader.tell(),
	);
	if (ended.kind === 'timedOut') return failed(timedOut(clock, call));
	return ended.kind === 'read' ? await reader.outcome(ended) : classifyError(ended);
}

function classifyError(exchange: Exchange): Outcome<BilledAnswer> {
	const outcome = classifyRefusal(exchange);
	if (outcome.kind === 'answered') return { kind: 'unclear', status: 200, text: 'no answer' };
	const body = exchange.kind === 'reply' ? parseJson(exchange.text) : undefined;
	if (outcome.kind === 'busy' && isOutOfCredit(body)) {
		return { kind: 'refused', status: 429, code: 429, text: outcome.text };
	}
	return outcome;
}
