import { ok } from '../shared/errors/failure';
import { isJsonObject, parseJson, whyNotJson, type JsonObject } from '../shared/text/json';
import { redactJson } from '../shared/text/redact';
import { whyBroken, type BrokenOff, type EventMeaning, type ReadAnswer } from '../shared/http/answerStream';
import type { Outcome } from '../shared/http/outcome';
import type { StreamEvent } from '../shared/http/sse';
import { quote } from '../shared/platform/failures';
import { failed, timedOut, withoutEnvelope, type InvokeCall, type Turn } from './call';
import {
	failsIfEmpty,
	isPassing,
	isSessionBusy,
	provesNotRun,
	readEnvelope,
	readPlain,
	withStatus,
	wordsOf,
	type AgentReply,
	type Envelope,
	type Refusal,
} from './envelope';
import { detailsOf, explainRefusal } from './failures';
import { findFirst, textAt, textOf } from './paths';
import { askedIn, hintAtEmpty, mergeReadFrom, readReply, type ReadReply } from './reply';
import { StreamSteps } from './streamSteps';
import type { UploadParts } from './upload';

/** Of an answer in pieces. As much as one event may hold. */
const MOST_CHARS = 32 * 1024 * 1024;
/** Of `data`, for the hint at an empty answer. */
const MOST_KEYS = 1_000;
/** How much of an answer that broke off goes into the error, in characters. */
const CUT_OFF_SHOWN = 100_000;
/** What the standard calls an event without a name. */
const UNNAMED = 'message';

/** How an event bears on the end of its stream. */
interface Place {
	readonly name: string;
	/** Nothing follows it. */
	readonly isLast: boolean;
	/** It is an envelope of the interface, and not data alone. */
	readonly isWrapped: boolean;
}

/** One answer, as its events come, and what it means in the end. */
export class Reading {
	private deltas = '';
	private sessionId = '';
	private requestId = '';
	/** The keys that `data` held so far. */
	private readonly found = new Set<string>();
	private readFrom: JsonObject = {};
	private readonly steps = new StreamSteps();
	/** An event of a running agent came. */
	private started = false;
	/** The server said that this is all. */
	private closed = false;
	/** The envelope that ends the answer, or holds all of it, or the failure. */
	private last: Envelope | undefined;
	/** What events before the last one said beside pieces of text. */
	private earlier: ReadReply | undefined;
	/** Why a part of the answer is missing, though the body goes on. */
	private hole: string | undefined;
	/** Answers came in several events, and no one holds the others. */
	private scattered = false;
	/** A body that was not a stream. */
	private document: string | undefined;
	private httpStatus = 200;
	private isTooLong = false;
	/** The last event said that it is the last. */
	private isEndNamed = false;

	constructor(
		private readonly parts: UploadParts,
		private readonly call: InvokeCall,
	) {}

	/** The answer has begun. */
	opened(httpStatus: number): void {
		this.httpStatus = httpStatus;
	}

	async take(event: StreamEvent): Promise<EventMeaning> {
		const { data: text, isWholeBody } = event;
		const { deployment, known, httpStatus } = this.context;
		if (isWholeBody) this.document = text;
		if (text.trim() === '[DONE]') return this.close(this.last);
		const parsed = parseJson(text);
		if (!isJsonObject(parsed)) return this.takeWords(event);
		// Before anything is made of it, so that an echoed token gets nowhere: items, memory, ledger, chat.
		const json = redactJson(parsed, known);
		const envelope = readEnvelope(json, deployment, httpStatus);
		if (isWholeBody) {
			const place = { name: '', isLast: true, isWrapped: true };
			return envelope ? await this.takeEnvelope(envelope, place) : 'progress';
		}
		const name = textAt(json, deployment.paths.eventName) || event.name || UNNAMED;
		const { endEvents, errorEvents, toolEvents } = deployment.words;
		const isWrapped = deployment.hasEnvelope && envelope !== undefined;
		if (toolEvents.has(name) && (!isWrapped || envelope.succeeded)) return this.takeStep(name, json);
		const isFailure = errorEvents.has(name);
		const plain = { isFailure, ...(!deployment.hasEnvelope && { status: httpStatus }) };
		const isLast = !deployment.endsWithBody && endEvents.has(name);
		return await this.takeEnvelope(isWrapped ? envelope : readPlain(json, deployment, plain), {
			...{ name, isLast, isWrapped },
		});
	}

	private get context() {
		const { account, redact } = this.parts;
		return { deployment: account.deployment, known: redact.known, httpStatus: this.httpStatus };
	}

	/** An event that is not a JSON object. */
	private takeWords({ name = UNNAMED, data: text, isWholeBody }: StreamEvent): EventMeaning {
		const { deployment, known } = this.context;
		const { errorEvents, textEvents } = deployment.words;
		if (isWholeBody) return 'progress';
		if (errorEvents.has(name)) {
			const said = known(text);
			const failure = readPlain({}, deployment, { isFailure: true });
			return this.close({ ...failure, reason: said, said });
		}
		if (text.trim().startsWith('{')) this.hole = whyNotJson(text);
		else if (textEvents.has(name)) this.hole = `the data of an event "${name}" is not a JSON object`;
		return 'progress';
	}

	/** What a step says is never text, and never the end. */
	private takeStep(name: string, json: JsonObject): EventMeaning {
		this.started = true;
		this.steps.add(name, json);
		const { data } = readPlain(json, this.context.deployment, {});
		this.takeSession(data);
		return 'progress';
	}

	private async takeEnvelope(envelope: Envelope, place: Place): Promise<EventMeaning> {
		const { deployment } = this.context;
		const { data, reason } = envelope;
		const reply = readReply(envelope, deployment);
		const saysAll = holdsAnswer(reply);
		const isEmpty = place.isLast && !saysAll && this.deltas === '' && !this.holdsEarlier();
		const succeeded = envelope.succeeded && !(isEmpty && failsIfEmpty(reason, deployment));
		this.started ||= succeeded;
		this.requestId = envelope.requestId || this.requestId;
		for (const key of Object.keys(data).slice(0, MOST_KEYS - this.found.size)) this.found.add(key);
		this.takeSession(data);
		if (!succeeded) return this.close({ ...envelope, succeeded });
		const isHeard = await this.takeText(envelope, reply, place);
		if (this.isTooLong) return this.close();
		if (place.isLast) {
			this.isEndNamed = true;
			return this.close(envelope);
		}
		this.takeEarlier(isHeard ? { ...reply, answer: '' } : reply);
		if (isHeard) {
			// What seemed to be the whole was not.
			this.last = undefined;
			return 'progress';
		}
		if (!saysAll || deployment.endsWithBody || !place.isWrapped) return 'progress';
		if (deployment.words.textEvents.has(place.name)) return 'progress';
		this.last = envelope;
		return 'finished';
	}

	/** @returns whether the event held a piece of the answer */
	private async takeText({ data }: Envelope, reply: ReadReply, place: Place): Promise<boolean> {
		const { paths, words } = this.context.deployment;
		const piece = findFirst(data, paths.delta);
		if (!piece) return false;
		const isText = place.isLast || words.textEvents.isEmpty || words.textEvents.has(place.name);
		// Where pieces and answer have one path, the last event repeats all of it.
		const isRepeated = place.isLast && piece.path === reply.readFrom.answer && this.deltas !== '';
		const delta = isText && !isRepeated ? textOf(piece.value) : '';
		if (!delta) return false;
		if (this.deltas.length + delta.length > MOST_CHARS) {
			this.hole = `it contains more than ${MOST_CHARS} characters`;
			this.isTooLong = true;
			return false;
		}
		this.deltas += delta;
		this.readFrom = mergeReadFrom(this.readFrom, { delta: piece.path });
		await this.call.onDelta(delta);
		return true;
	}

	private takeSession(data: JsonObject): void {
		const session = findFirst(data, this.context.deployment.paths.session);
		const sessionId = textOf(session?.value);
		if (!session || sessionId === this.sessionId) return;
		this.sessionId = sessionId;
		this.readFrom = mergeReadFrom(this.readFrom, { session: session.path });
		this.call.onSession(sessionId);
	}

	/** Later events count, and what only earlier ones said stays. */
	private takeEarlier(reply: ReadReply): void {
		const { earlier } = this;
		if (reply.answer && earlier?.answer && !reply.answer.startsWith(earlier.answer)) this.scattered = true;
		this.earlier = earlier ? combine(earlier, reply) : reply;
	}

	private holdsEarlier(): boolean {
		return this.earlier !== undefined && holdsAnswer(this.earlier);
	}

	private close(last?: Envelope): EventMeaning {
		this.last = last;
		this.closed = true;
		return 'closed';
	}

	outcome(ended: ReadAnswer): Outcome<Turn> {
		const { status, headers, broken } = ended;
		const { last, started, hole, call } = this;
		const { deployment } = this.context;
		if (last && !last.succeeded) {
			const refusal = withStatus(last, status, deployment);
			return started ? this.failedMidway(refusal) : this.refused(refusal, ended);
		}
		const reply = this.reply();
		const isAllInLast = this.isEndNamed && last !== undefined && this.holdsAnswerItself(last);
		const isScattered = this.scattered && this.deltas === '' && !isAllInLast;
		if (isScattered) this.hole ??= SCATTERED;
		// The last event says all, whatever came before; without one, every piece must be there.
		const endsWell = this.closed || (deployment.endsWithBody && !broken && this.document === undefined);
		const isWhole = last
			? hole === undefined || this.holdsAnswerItself(last)
			: endsWell && started && hole === undefined;
		if (isWhole && !isScattered) return { kind: 'answered', data: ok(reply) };
		if (started || this.hole !== undefined) return this.brokeOff(broken);
		if (broken?.isTimeout) return failed(timedOut(call));
		if (broken) return { kind: 'unclear', code: broken.code, text: broken.reason };
		const exchange = { kind: 'reply', status, headers, text: this.document ?? '' } as const;
		return withoutEnvelope(exchange, call.sessionId, deployment);
	}

	private holdsAnswerItself(envelope: Envelope): boolean {
		return holdsAnswer(readReply(envelope, this.context.deployment));
	}

	private refused(refusal: Refusal, { status, headers }: ReadAnswer): Outcome<Turn> {
		const { account, redact } = this.parts;
		const { sessionId, retryAmbiguous } = this.call;
		const { saidStatus } = refusal;
		const facts = { account, redact, sessionId };
		const text = wordsOf(refusal);
		if (isPassing(refusal)) {
			if (provesNotRun(refusal, account.deployment, sessionId)) {
				const ofSession = { sparesOthers: true, details: detailsOf(refusal, facts) };
				const busy = { kind: 'busy', retryAfter: headers['retry-after'], text, status: saidStatus } as const;
				return isSessionBusy(refusal) ? { ...busy, ...ofSession } : busy;
			}
			if (retryAmbiguous) return { kind: 'unclear', status: saidStatus ?? status, text, inItsForm: true };
		}
		return failed(explainRefusal(refusal, facts));
	}

	private reply(): AgentReply {
		const { redact } = this.parts;
		const { deployment } = this.context;
		const { last, earlier, found, document } = this;
		const own = last && readReply(last, deployment);
		const said = own && earlier ? combine(earlier, own) : (own ?? earlier ?? NOTHING);
		// Once more: a token may have come in two pieces.
		const answer = (own?.answer ?? '') || redact.known(this.deltas) || said.answer;
		const { interrupt, interrupts } = said;
		const isEmpty = answer.trim() === '' && !interrupt;
		const readFrom = mergeReadFrom(this.readFrom, said.readFrom);
		const events = this.steps.all();
		return {
			...said,
			answer,
			reason: own?.reason ?? (deployment.endsWithBody ? said.reason : ''),
			// Of several the text does not say which one it is about.
			interrupt: interrupt && (interrupts.length > 0 ? interrupt : askedIn(answer, interrupt)),
			sessionId: said.sessionId || this.sessionId,
			requestId: said.requestId || this.requestId,
			hint: isEmpty ? hintAtEmpty([...found], document === undefined, deployment, readFrom) : '',
			readFrom,
			...(events.length > 0 && { events }),
		};
	}

	/** Whatever the reason: an agent that had begun to answer has run. */
	private failedMidway(refusal: Refusal): Outcome<Turn> {
		const { redact } = this.parts;
		return failed({
			kind: 'agentFailed',
			message: `The agent failed while it answered: ${quote(redact, wordsOf(refusal))}`,
			advice:
				"What had arrived is in the error's details. The agent was not asked again, because what it did up to then is done.",
			details: this.partial(detailsOf(refusal, { redact, sessionId: this.call.sessionId })),
		});
	}

	private brokeOff(broken: BrokenOff | undefined): Outcome<Turn> {
		const why = (!broken && this.hole) || whyBroken(broken, this.parts.redact);
		return failed({
			kind: 'unclear',
			message: `The agent's answer broke off after ${this.deltas.length} characters: ${why}`,
			advice:
				"What had arrived is in the error's details. The agent was not asked again, because it has run at least in part.",
			details: this.partial(),
		});
	}

	/** What there is of an answer that never became whole. */
	private partial(told: JsonObject = {}): JsonObject {
		const { requestId } = this;
		const sessionId = this.sessionId || this.call.sessionId;
		// Hidden first: a cut may leave a part of a token.
		const answer = this.parts.redact.known(this.deltas) || (this.earlier?.answer ?? '');
		return {
			mayHaveRun: true,
			...(requestId && { requestId }),
			...told,
			...(sessionId && { sessionId }),
			answer: answer.length <= CUT_OFF_SHOWN ? answer : `${answer.slice(0, CUT_OFF_SHOWN)}…`,
		};
	}
}

const SCATTERED =
	'several events hold text at "Answer Path" and none at "Delta Path", so that nobody knows whether it is all. Check both in the FlowAgent credential';

const NOTHING: ReadReply = {
	...{ answer: '', sessionId: '', interrupt: undefined, interrupts: [], reason: '', requestId: '' },
	...{
		usage: null,
		hint: '',
		raw: {},
		readFrom: { answer: null, session: null, usage: null, interrupt: null },
	},
};

function holdsAnswer({ answer, interrupt }: AgentReply): boolean {
	return answer !== '' || interrupt !== undefined;
}

/** Two events of one answer: what the later one says, and what only the earlier one said. */
function combine(earlier: ReadReply, later: ReadReply): ReadReply {
	const waits = later.interrupt ? later : earlier;
	return {
		answer: later.answer || earlier.answer,
		sessionId: later.sessionId || earlier.sessionId,
		interrupt: waits.interrupt,
		interrupts: waits.interrupts,
		reason: later.reason || earlier.reason,
		requestId: later.requestId || earlier.requestId,
		usage: later.usage ?? earlier.usage,
		hint: '',
		raw: later.raw,
		readFrom: mergeReadFrom(earlier.readFrom, later.readFrom),
	};
}
