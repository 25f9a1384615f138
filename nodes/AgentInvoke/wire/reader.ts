import {
	excerpt,
	isJsonObject,
	parseJson,
	whyNotJson,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { MOST_ANSWER_CHARS } from '../../shared/answer/answerReader';
import { isKeepAlive, strayWords } from '../../shared/answer/strayEvent';
import type { StreamEvent } from '../../shared/http/sse';
import { redactJson } from '../../shared/text/redact';
import {
	argumentsOf,
	dataOf,
	faultOf,
	idOf,
	interruptsIn,
	isOdd,
	listAt,
	saidSuccess,
	statusIn,
	whatFails,
	type WireFault,
	type WireInterrupt,
} from './answerValues';
import type { StreamRule, Wire } from './description';
import { isThere, MOST_PATH_CHARS, pathsIn, textAt, valueAt, wordOf } from '../../shared/form/expression';
import { isBroken, isUnread, marksEvent, nameOf, ruleFor } from './rules';

interface Waiting {
	readonly interrupt: WireInterrupt;
	readonly pieces: string;
	readonly chars: number;
}

const MOST_NAMES = 20;
/** An agent that works for hours reports many steps; the first ones are enough to see what it does. */
const MOST_STEPS = 1_000;
const MOST_STEP_CHARS = 1_000_000;
const MOST_INTERRUPTS = 100;

/** Reads an answer event by event. Its fields are everything known about the answer so far. */
export class WireReader {
	text = '';
	/** The texts that together are the text, in the order in which they began, and which of them is the last. */
	private readonly parts = new Map<string, string>();
	private lastPart = '';
	/** The entry that gave the text; empty if none did. */
	textFrom = '';
	/**
	 * Set if the text came as a whole before the end: a draft, which later pieces replace. `scattered`: it did not
	 * continue the draft before it.
	 */
	draft: 'none' | 'growing' | 'scattered' = 'none';
	/** What the last event added to the text, as a stream shows it. */
	delta = '';
	/** Whether the deltas do not end with the text, because it replaced another. */
	private isBehind = false;
	sessionId: string;
	requestId = '';
	usage: Json = null;
	/** Whether the text is a question. */
	waits = false;
	/** Name and data of the first steps that a stream reported; the rest are only counted, in `stepsOmitted`. */
	readonly steps: JsonObject[] = [];
	stepsOmitted = 0;
	/** Whether the agent says that its answer is incomplete. */
	isIncomplete = false;
	/** What ended the answer; empty until then. */
	endedBy = '';
	/** Whether an event said in its envelope that the call succeeded. */
	saysSuccess = false;
	/** Whether what ended the answer says more than that nothing follows, as `[DONE]` does. */
	isSureEnd = false;
	/** The words of the first event of which the description makes nothing; empty if there is none. */
	odd = '';
	/** Whether all further events are ignored. */
	isClosed = false;
	/** The first thing that makes the answer a failure. */
	fault: WireFault | undefined;
	/** Why part of the answer is missing; empty if nothing is, or if the final event contained the whole text. */
	gap = '';
	isWholeBody = false;
	/** The first `MOST_NAMES` names of events. */
	readonly names = new Set<string>();
	/** The paths to the first `MOST_NAMES` values that arrived. */
	readonly keys = new Set<string>();
	raw: Json = null;
	/** What the agent waits for, with arguments that came in pieces, and the length of all that in characters. */
	private waiting: readonly Waiting[] = [];
	/** Whether the stream sends its texts as JSON strings; undefined until one has come. */
	private quotesText: boolean | undefined;
	/** The total length of the kept steps, in characters. */
	private stepChars = 0;
	/** Whether an event arrived that reports no failure: whatever it says, an agent that sends events is running. */
	private hasEvents = false;

	/**
	 * @param hide hides the token; applied to everything that is kept of an answer
	 * @param chosenId the ID that the request gave to its new session; empty if it gave none
	 */
	constructor(
		readonly wire: Wire,
		readonly hide: (text: string) => string,
		readonly chosenId = '',
	) {
		this.sessionId = chosenId;
	}

	get interrupts(): readonly WireInterrupt[] {
		return this.waiting.map(({ interrupt, pieces }) =>
			pieces ? { ...interrupt, arguments: argumentsOf(this.hide(pieces)) } : interrupt,
		);
	}

	/** Whether anything arrived from a running agent. */
	get hasBegun(): boolean {
		return this.hasEvents || this.text !== '' || this.steps.length > 0 || this.waiting.length > 0;
	}

	/** Whether anything arrived in the described form; a gateway's page or words are in none. */
	get isInForm(): boolean {
		if (this.names.size > 0) return true;
		if (!isJsonObject(this.raw) || !this.wire.answer.envelope) return isJsonObject(this.raw);
		return saidSuccess(this.raw) !== undefined || statusIn(this.raw) !== undefined;
	}

	/** Whether nothing that matters can follow, so that a connection that breaks now has lost nothing. */
	get isFinished(): boolean {
		return this.isClosed || (this.endedBy !== '' && this.wire.stream.end !== 'both');
	}

	private get isOver(): boolean {
		return this.isClosed || this.fault !== undefined;
	}

	/** Reads one more event. After a fault, or once the reader is closed, events change nothing. */
	read(event: StreamEvent): void {
		this.delta = '';
		if (this.isOver) return;
		if (event.isWholeBody && !this.isLine(event.data)) this.readBody(event.data);
		else this.readPart(event);
	}

	/** Whether a single line, which may be a whole answer, is an event. */
	private isLine(text: string): boolean {
		if (this.wire.stream.format !== 'jsonLines') return false;
		const json = parseJson(text) ?? text;
		return marksEvent(this.wire, text, json, dataOf(this.wire, json));
	}

	private readBody(text: string): void {
		const { wire, hide } = this;
		const parsed = parseJson(text);
		this.isWholeBody = true;
		// Only an envelope has to be an object.
		if (parsed === undefined || (wire.answer.envelope && !isJsonObject(parsed))) {
			const why = parsed === undefined ? `is not JSON: ${whyNotJson(text)}` : 'is JSON, but not an object';
			this.gap = `the body ${why}`;
			this.raw = hide(text);
			return;
		}
		const json = redactJson(parsed, hide);
		this.readShared(json, text.length);
		this.raw = json;
		if (this.isOver) return;
		if (wire.answer.envelope && saidSuccess(json) === undefined) {
			this.gap = '"success_response" is missing';
			return;
		}
		const found = textAt(wire.answer.text, dataOf(wire, json));
		if (found) this.replaceText(found, 'answer.text');
		this.endedBy = 'the whole body';
		this.isClosed = true;
	}

	private readPart({ name: given, data, isCutOff }: StreamEvent): void {
		const { wire, hide } = this;
		const parsed = parseJson(data);
		const json = parsed === undefined ? hide(data) : redactJson(parsed, hide);
		const name = nameOf(wire, json, given);
		const shown = hide(name);
		if (this.names.size < MOST_NAMES) this.names.add(excerpt(shown, MOST_PATH_CHARS));
		const rule = ruleFor(wire, name, data, json);
		const isPlain = rule?.takesText === true && this.isPlainText(parsed);
		if (isBroken(data, parsed) && !rule?.data && !isPlain) {
			this.gap = isCutOff
				? `the connection ended in the middle of an event "${excerpt(shown, 40)}"`
				: `the data of an event "${excerpt(shown, 40)}" could not be read: ${whyNotJson(data)}`;
			return;
		}
		this.readShared(json, data.length);
		if (rule?.fail) this.fault = faultOf(json, `${rule.entry}.fail`, 'no matching event', rule.fail);
		if (this.isOver) return;
		this.hasEvents ||= isJsonObject(json);
		if (this.odd === '' && !isKeepAlive({ name, data }) && isOdd(wire, rule, name, json))
			this.odd = excerpt(hide(strayWords(data)), 200);
		if (!rule) return;
		const settled = new Set(listAt(rule.settles, dataOf(wire, json)).map(wordOf));
		this.waiting = this.waiting.filter(({ interrupt: { id } }) => !settled.has(id));
		// What an agent that waits has done before it stopped may be told afterwards.
		const isAside = rule.step && this.waiting.length > 0;
		if (wire.stream.end === 'both' && this.endedBy !== '' && !isAside) this.goOn();
		if (rule.step) this.addStep({ name: shown, data: json }, data.length);
		else this.readText(rule, shown, isPlain ? hide(data) : json);
		// Some answers come only in the last event, in the form of an answer without a stream.
		if (rule.end === true && this.text === '' && this.waiting.length === 0 && isJsonObject(json))
			this.replaceText(textAt(wire.answer.text, dataOf(wire, json)), 'answer.text');
		if (rule.end && !this.isClosed) {
			this.endedBy = rule.entry;
			this.isClosed = rule.end === true;
			this.isSureEnd = wire.answer.envelope ? saidSuccess(json) === true : rule.data === '';
		}
	}

	/** What had ended the answer was the end of an earlier agent's part: the text of the next one replaces it. */
	private goOn(): void {
		this.endedBy = '';
		if (this.text !== '') this.draft = 'growing';
	}

	/** Whether data is the text itself. A stream that puts its first text in quotation marks sends all of them as JSON. */
	private isPlainText(parsed: Json | undefined): boolean {
		if (parsed === undefined) this.quotesText = false;
		if (typeof parsed === 'string') this.quotesText ??= true;
		return this.quotesText !== true && !isJsonObject(parsed);
	}

	private addStep(step: JsonObject, chars: number): void {
		if (this.steps.length >= MOST_STEPS || this.stepChars + chars > MOST_STEP_CHARS) {
			this.stepsOmitted++;
			return;
		}
		this.steps.push(step);
		this.stepChars += chars;
	}

	/** Reads what a rule says about the text. @param name of the event */
	private readText(rule: StreamRule, name: string, json: Json): void {
		const data = dataOf(this.wire, json);
		const whole = textAt(rule.whole, data);
		const replaced = textAt(rule.replace, data);
		const delta = textAt(rule.delta, data);
		const part = textAt(rule.part, data);
		const pieces = textAt(rule.argumentsDelta, data);
		if (pieces !== '') this.addArguments(part, pieces);
		else if (whole !== '') this.takeWhole(whole, rule, part);
		else if (replaced !== '') this.replaceText(replaced, `${rule.entry}.replace`, part);
		else if (delta !== '') this.addText(delta, `${rule.entry}.delta`, part);
		else if (isUnread(rule, json)) this.gap = `the data of an event "${excerpt(name, 40)}" is not JSON`;
	}

	private addText(delta: string, entry: string, part: string): void {
		const isDraft = this.draft !== 'none';
		if (isDraft) this.parts.clear();
		const before = isDraft ? '' : this.text;
		if (before.length + delta.length > MOST_ANSWER_CHARS) {
			this.giveUp(`${MOST_ANSWER_CHARS} characters`);
			return;
		}
		if (this.endedBy !== '') this.gap = `more text came after "${this.endedBy}" had ended the answer`;
		this.draft = 'none';
		this.setPart(part, (this.parts.get(part) ?? '') + delta);
		const isAtEnd = part === this.lastPart;
		this.isBehind ||= isDraft || !isAtEnd;
		this.text = isAtEnd ? before + delta : [...this.parts.values()].join('');
		this.textFrom = entry;
		this.show(delta);
	}

	private setPart(part: string, text: string): void {
		if (!this.parts.has(part)) this.lastPart = part;
		this.parts.set(part, text);
	}

	/** @param id of the interrupt; empty for the newest */
	private addArguments(id: string, pieces: string): void {
		const at = id ? this.waiting.findIndex(({ interrupt }) => interrupt.id === id) : this.waiting.length - 1;
		const waiting = this.waiting[at];
		if (!waiting) return;
		const more = { pieces: waiting.pieces + pieces, chars: waiting.chars + pieces.length };
		this.keepWaiting(this.waiting.with(at, { ...waiting, ...more }));
	}

	private giveUp(most: string): void {
		this.gap = `it contains more than ${most}`;
		this.isClosed = true;
	}

	private takeWhole(whole: string, { entry, end }: StreamRule, part: string): void {
		const isLast = end === true || (end === 'unlessMore' && this.endedBy === '');
		if (isLast) {
			// A final event with the whole text proves that nothing is missing, whatever came before.
			this.gap = '';
			this.draft = 'none';
		} else if (part === '') {
			// If the text has already arrived in pieces, the pieces are kept until the end.
			if (this.text !== '' && this.draft === 'none' && this.endedBy === '') return;
			const isLonger = this.draft !== 'scattered' && whole.startsWith(this.text);
			this.draft = isLonger ? 'growing' : 'scattered';
		}
		this.replaceText(whole, `${entry}.whole`, isLast ? '' : part);
	}

	/** Replaces the text, or a part of it; what the new text adds to the old one becomes the delta. */
	private replaceText(replaced: string, entry: string, part = ''): void {
		const before = this.text;
		if (part === '') this.parts.clear();
		this.setPart(part, replaced);
		const text = [...this.parts.values()].join('');
		this.text = text;
		this.textFrom = entry;
		if (text.startsWith(before)) this.show(text.slice(before.length));
		else this.isBehind ||= !before.endsWith(text);
	}

	/** A text that replaced another is shown in a new paragraph, once more of it comes: the next may replace it, too. */
	private show(more: string): void {
		if (more === '') return;
		this.delta = this.isBehind ? `\n\n${this.text}` : more;
		this.isBehind = false;
	}

	/** Reads what any event may contain, whatever its rule. @param chars the event's length */
	private readShared(json: Json, chars: number): void {
		const { answer } = this.wire;
		const data = dataOf(this.wire, json);
		this.fault = whatFails(this.wire, json);
		this.saysSuccess ||= saidSuccess(json) === true;
		// Some deployments put the session beside the envelope's data, under the interface's name (§4.6).
		const beside = answer.envelope && answer.session && isJsonObject(json) ? json.session_id : undefined;
		this.sessionId = idOf(valueAt(answer.session, data)) || this.sessionId || idOf(beside);
		this.requestId = textAt(answer.requestId, json) || this.requestId;
		const usage = valueAt(answer.usage, data);
		if (isThere(usage)) this.usage = usage;
		if (!this.fault) this.addInterrupts(interruptsIn(this.wire, data), chars);
		this.waits ||= isThere(valueAt(answer.interrupt.waits, data));
		this.isIncomplete ||= isThere(valueAt(answer.incomplete, data));
		this.addKeys(isThere(data) ? data : json);
		if (isJsonObject(json)) this.raw = json;
	}

	/**
	 * A stream may report each interrupt in an event of its own, or repeat one with the same ID. One without an ID is
	 * replaced by any newer one, and replaces all earlier ones.
	 */
	private addInterrupts(newer: readonly WireInterrupt[], chars: number): void {
		if (newer.length === 0) return;
		const ids = new Set(newer.map(({ id }) => id));
		const kept = this.waiting.filter(({ interrupt: { id } }) => id !== '' && !ids.has('') && !ids.has(id));
		const added = newer.map((interrupt) => ({ interrupt, pieces: '', chars: chars / newer.length }));
		this.keepWaiting([...kept, ...added]);
	}

	private keepWaiting(waiting: readonly Waiting[]): void {
		this.waiting = waiting;
		if (waiting.length > MOST_INTERRUPTS) this.giveUp(`${MOST_INTERRUPTS} interrupts`);
		const keptChars = waiting.reduce((sum, one) => sum + one.chars, 0);
		if (keptChars > MOST_ANSWER_CHARS) this.giveUp(`${MOST_ANSWER_CHARS} characters of interrupts`);
	}

	private addKeys(json: Json): void {
		for (const path of pathsIn(json)) {
			if (this.keys.size >= MOST_NAMES) return;
			this.keys.add(excerpt(path, MOST_PATH_CHARS));
		}
	}
}
