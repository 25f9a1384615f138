import { AnswerBuilder, type ChatAnswer } from '../shared/answer/answerBuilder';
import { AnswerReader } from '../shared/answer/answerReader';
import type { ContentParts } from '../shared/answer/contentParts';
import { strayWords } from '../shared/answer/strayEvent';
import { answerTerms } from '../shared/chat/answerTerms';
import { classifyRefusal, isAnswer, isUnreadable } from '../shared/chat/refusal';
import { fail, ok, type Failure, type Result } from '../shared/errors/failure';
import { errorWords } from '../shared/errors/serviceMessage';
import { isPage } from '../shared/files/fileType';
import { readAnswer, whyBroken, type AnswerConnection, type ReadAnswer } from '../shared/http/answerStream';
import type { Outcome } from '../shared/http/outcome';
import type { BusyTerms } from '../shared/platform/envelope';
import { explainHeldBack } from '../shared/platform/failures';
import type { Retry } from '../shared/retry/retry';
import type { Clock } from '../shared/time/clock';
import { parseJson, type JsonObject } from '../shared/text/json';
import { quote, type Redact } from '../shared/text/redact';
import { explainChat, outcomeOfError } from './failures';

export interface ChatCall {
	readonly body: JsonObject;
	readonly tries: number;
	/** Called and awaited for each piece of the answer, in order. Text that arrived together is one piece. */
	readonly onPiece: (piece: ContentParts) => Promise<void>;
	/** The idle timeout: before the answer begins, and between two pieces that are not empty. */
	readonly idleMs: number;
	/** When the whole answer must have arrived, by the clock's `now()`. */
	readonly endByMs: number;
}

interface ChatConnection extends AnswerConnection {
	/** The base URL, without a trailing slash. */
	readonly baseUrl: string;
	readonly retry: Pick<Retry, 'run' | 'pausedMs'>;
	readonly redact: Redact;
	readonly busyTerms: BusyTerms;
}

/** A whole answer, or a failure after which something may be billed. The question is not sent again after either. */
type BilledAnswer = Result<ChatAnswer>;

export type CompleteChat = (call: ChatCall) => Promise<BilledAnswer>;

/** Path of the chat endpoint (§4.5), below the base URL. */
export const CHAT_PATH = '/maas/v1/chat/completions';
/** The `Accept` header of the samples in §4.5. */
const ACCEPT = 'application/json, text/event-stream, */*';

/** The chat interface (§4.5). A question is sent again only if no part of an answer has arrived. */
export function createChatApi(connection: ChatConnection): CompleteChat {
	const { baseUrl, clock, redact, retry } = connection;
	return async (call) => {
		const { tries: mostTries, endByMs } = call;
		const terms = { repeatability: 'read', lane: 'work', tries: mostTries, endByMs } as const;
		const { outcome, tries } = await retry.run(terms, async () => await askOnce(connection, call));
		if (outcome.kind === 'answered') return outcome.data;
		if (outcome.kind === 'cancelled' && clock.now() >= endByMs) {
			// The last try was given up before it was sent.
			const isUnsent = tries <= 1;
			return fail(isUnsent ? explainHeldBack('the model', retry.pausedMs) : timedOut(clock, call));
		}
		const purpose = 'get an answer from the model';
		return fail(explainChat(outcome, { purpose, repeatability: 'read', baseUrl, tries, redact }, call.body));
	};
}

async function askOnce(connection: ChatConnection, call: ChatCall): Promise<Outcome<BilledAnswer>> {
	const { baseUrl, clock, redact, busyTerms } = connection;
	const { body: json, idleMs, endByMs } = call;
	const answer = new AnswerReader(busyTerms, new AnswerBuilder(answerTerms(json)));
	const pieces = new PieceQueue(call.onPiece);
	const ended = await readAnswer(
		connection,
		{ url: `${baseUrl}${CHAT_PATH}`, json, accept: ACCEPT, idleMs, endByMs, hasLines: true },
		(event) => {
			const { meaning, ...piece } = answer.take(event);
			pieces.add(piece);
			return meaning;
		},
		async () => await pieces.passOn(),
	);
	if (ended.kind === 'timedOut') return failed(timedOut(clock, call));
	if (ended.kind === 'reply' && isAnswer(ended.text)) {
		answer.take({ data: ended.text, isWholeBody: true });
		return failed(answerWithStatus(answer, ended.status, redact));
	}
	// If a body had arrived, it is that of a failure, of which nothing is billed.
	if (ended.kind === 'unclear' && ended.arrived === undefined && isUnreadable(ended.code))
		return failed(unreadable(ended.text, ended.code, redact));
	if (ended.kind !== 'read') return classifyRefusal(ended);
	if (ended.broken) answer.broken = whyBroken(ended.broken, redact);
	pieces.add(answer.builder.end());
	await pieces.passOn();
	return outcomeOf(answer, ended, redact, timedOut(clock, call));
}

/** The most characters that an error shows of a part that was cut off. */
const CUT_OFF_SHOWN = 2_000;

/**
 * Decides what becomes of a question whose answer was read to its end.
 * @param late the failure if no answer began in time
 */
function outcomeOf(
	answer: AnswerReader,
	{ status, headers, broken }: ReadAnswer,
	redact: Redact,
	late: Failure,
): Outcome<BilledAnswer> {
	const { error } = answer;
	if (answer.isComplete) {
		return { kind: 'answered', data: ok({ ...answer.builder.answer(), aside: answer.aside(redact) }) };
	}
	if (answer.hasBegun) return failed(brokeOff(answer, broken?.code, redact));
	if (error) return outcomeOfError(error, status);
	if (broken?.isTimeout) return failed(late);
	if (broken && isUnreadable(broken.code)) return failed(unreadable(broken.reason, broken.code, redact));
	if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
	if (answer.hasChoices && answer.stray === undefined) return failed(noChoice(partOf(answer, redact)));
	const { stray = '' } = answer;
	// A model's words may begin with "<", too.
	const saysPage = /html/i.test(headers['content-type'] ?? '') && stray.startsWith('<');
	if (saysPage || isPage(stray)) return { kind: 'unclear', status, text: 'a web page instead of an answer' };
	return failed(noContent(answer, status, redact));
}

const CHECK_BEFORE_ASKING =
	'The question was not sent again, because it may have been processed and billed. Check the model, and the Base URL in the credential, before you run the node again.';

function unreadable(reason: string, networkCode: string, redact: Redact): Failure {
	return {
		kind: 'unclear',
		message: `The platform sent an answer that cannot be read: ${quote(redact, reason)}`,
		advice: CHECK_BEFORE_ASKING,
		details: { networkCode },
	};
}

function noContent({ stray = '' }: AnswerReader, status: number, redact: Redact): Failure {
	const isText = !stray.slice(0, LOOKED_AT_CHARS).includes('\uFFFD');
	const said = stray && isText ? `: ${quote(redact, strayWords(stray))}` : '';
	const what = isText ? whatCame(stray) : 'bytes that are not text, such as a compressed answer';
	return {
		kind: 'unclear',
		message: `The platform sent ${what} (HTTP ${status})${said}`,
		advice: CHECK_BEFORE_ASKING,
		details: { httpStatus: status },
	};
}

const LOOKED_AT_CHARS = 200;
/** Keys under which a failure is reported, in errors of any form. */
const FAILURE_KEY = /"\w*(?:err|fault|fail)\w*"\s*:/i;

/** What arrived instead of an answer. */
function whatCame(stray: string): string {
	const json = parseJson(stray);
	if (typeof json !== 'object' || json === null) return 'an answer without content';
	return errorWords(json) || FAILURE_KEY.test(stray.slice(0, LOOKED_AT_CHARS))
		? 'an error instead of an answer'
		: 'an answer in another form than that of chat completions';
}

function noChoice(details: JsonObject): Failure {
	return {
		kind: 'unclear',
		message: 'The platform ended its response without an answer: "choices" is empty',
		advice:
			'The question was not sent again, because a second answer may also be billed. A content filter may have removed the answer: check the messages, or choose another model.',
		details,
	};
}

/** For an answer whose HTTP status reports a failure. */
function answerWithStatus(answer: AnswerReader, status: number, redact: Redact): Failure {
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
		advice: `${isIdle ? "Raise 'Idle Timeout (Seconds)' under 'Cost and Speed' if the model needs longer pauses. " : ''}What arrived is in the error's details. The question was not sent again, because what was generated is billed.`,
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
function failed(failure: Failure): Outcome<BilledAnswer> {
	return { kind: 'answered', data: fail(failure) };
}

function timedOut(clock: Clock, { idleMs, endByMs }: ChatCall): Failure {
	if (clock.now() >= endByMs) {
		return {
			kind: 'timedOut',
			message: 'The answer did not arrive before the timeout',
			advice: "Raise 'Timeout (Seconds)' under 'Cost and Speed', or set it to 0 for no limit.",
		};
	}
	return {
		kind: 'timedOut',
		message: `The answer did not begin within ${Math.round(idleMs / 1000)} seconds`,
		advice:
			"Raise 'Idle Timeout (Seconds)' under 'Cost and Speed' if the model needs more time to think. The question was not sent again, because it may still be answered and billed.",
	};
}

/** Collects pieces of an answer until they are passed on. */
export class PieceQueue {
	private waiting: ContentParts[] = [];

	constructor(private readonly onPiece: ChatCall['onPiece']) {}

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
