import { fail, type Result } from '../shared/errors/failure';
import type { JsonObject } from '../shared/text/json';
import type { Redact } from '../shared/text/redact';
import { readAnswer, whyBroken, type AnswerConnection } from '../shared/http/answerStream';
import type { Outcome } from '../shared/http/outcome';
import type { Retry } from '../shared/retry/retry';
import type { BusyTerms } from '../shared/platform/envelope';
import { classifyRefusal } from '../shared/chat/refusal';
import { explainChat } from './failures';
import { AnswerBuilder, type ChatAnswer } from '../shared/answer/answerBuilder';
import { AnswerReader } from '../shared/answer/answerReader';
import type { ContentParts } from '../shared/answer/contentParts';
import { failed, outcomeOf, timedOut, type AnswerTerms, type BilledAnswer } from './outcome';

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
	const answer = new AnswerReader(busyTerms, new AnswerBuilder((json.n ?? 1) === 1));
	const pieces = new PieceQueue(call.onPiece);
	const ended = await readAnswer(
		connection,
		{ url: `${baseUrl}${CHAT_PATH}`, json, accept: ACCEPT, idleMs, endByMs },
		(event) => {
			const { meaning, ...piece } = answer.take(event);
			pieces.add(piece);
			return meaning;
		},
		async () => await pieces.passOn(),
	);
	if (ended.kind === 'timedOut') return failed(timedOut(clock, call));
	if (ended.kind !== 'read') return classifyRefusal(ended);
	if (ended.broken) answer.broken = whyBroken(ended.broken, redact);
	pieces.add(answer.builder.end());
	await pieces.passOn();
	return outcomeOf(answer, ended, redact, timedOut(clock, call));
}

/** Collects pieces of an answer until they are passed on. */
export class PieceQueue {
	private waiting: ContentParts[] = [];

	constructor(private readonly onPiece: AnswerTerms['onPiece']) {}

	/** Joins pieces that arrived together, because passing a piece on through n8n costs more than reading it. */
	add({ content, reasoning }: ContentParts): void {
		if (!content && !reasoning) return;
		const last = this.waiting.at(-1);
		// Within a piece, the reasoning comes before the content.
		if (!last || (last.content && reasoning)) this.waiting.push({ content, reasoning });
		else {
			const joined = { content: last.content + content, reasoning: last.reasoning + reasoning };
			this.waiting.splice(-1, 1, joined);
		}
	}

	async passOn(): Promise<void> {
		for (const piece of this.waiting.splice(0)) await this.onPiece(piece);
	}
}
