import { WIRE } from '../../../credentials/standardWire';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { lostDigits, parsePasted } from '../../shared/form/pastedJson';
import {
	excerpt,
	isJsonObject,
	isTooDeep,
	jsonText,
	sentence,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { compileExpression, type Expression } from './expression';
import { hasBrokenChoice, TEMPLATES } from './templates';

/** What an event of a stream means. The first rule that fits an event decides. */
export interface StreamRule {
	/** Where it stands in the description: `stream.rules[2]`. */
	readonly place: string;
	/** Names of events; a `*` stands for any characters, so each is the parts between them. Undefined where any name fits. */
	readonly on: ReadonlyArray<readonly string[]> | undefined;
	/** The text that the data must be equal to. */
	readonly data: string | undefined;
	readonly when: Expression | undefined;
	/** A piece of the text. */
	readonly delta: Expression | undefined;
	/** All of the text up to here, which goes on from what came before. */
	readonly whole: Expression | undefined;
	/** All of the text up to here, whatever came before. */
	readonly replace: Expression | undefined;
	/** The agent failed, in these words. */
	readonly fail: Expression | undefined;
	readonly step: boolean;
	/** `open`: more may follow, but no other text. */
	readonly end: 'closed' | 'open' | undefined;
}

/** A checked description of how a deployment is asked and what its answers mean. */
export interface Wire {
	readonly request: {
		/** Empty where the credential's Invoke Path counts. */
		readonly path: string;
		readonly headers: JsonObject;
		readonly message: JsonObject;
		readonly resume: JsonObject;
		readonly file: Json;
		/** One of several results. */
		readonly result: Json;
	};
	readonly answer: {
		readonly envelope: boolean;
		readonly text: Expression | undefined;
		readonly session: Expression | undefined;
		/** Lower case; empty where no header tells the session. */
		readonly sessionHeader: string;
		readonly usage: Expression | undefined;
		readonly requestId: Expression | undefined;
		readonly error: Expression | undefined;
		readonly incomplete: Expression | undefined;
		readonly interrupt: Readonly<
			Record<'at' | 'id' | 'tool' | 'arguments' | 'question' | 'waits', Expression | undefined>
		>;
	};
	readonly stream: {
		readonly format: 'sse' | 'jsonLines';
		readonly event: Expression | undefined;
		readonly end: 'event' | 'body';
		readonly rules: readonly StreamRule[];
	};
	readonly refusal: {
		readonly code: Expression | undefined;
		readonly detail: Expression | undefined;
		/** Words; spelling does not matter, and a `*` stands for any characters. */
		readonly busy: readonly string[];
		readonly notRun: readonly string[];
		readonly sessionUnknown: readonly string[];
		readonly tokenRefused: readonly string[];
		/** Of an agent that has run, whatever the status. */
		readonly failed: readonly string[];
		/** Fields that a refusal may contain where the agent has not run. */
		readonly only: readonly string[];
	};
	readonly upload: {
		readonly part: string;
		readonly url: Expression | undefined;
		readonly id: Expression | undefined;
		readonly expires: Expression | undefined;
	};
}

const OF_A_PATH = ['session'];
const OF_A_MESSAGE = ['message', 'session', 'sessionNumber', 'files', 'stream', 'streamBoolean', 'uuid'];
const OF_A_RESUME = [
	...['interruptId', 'result', 'resultText', 'results', 'session', 'sessionNumber'],
	...['stream', 'streamBoolean', 'uuid'],
];
const OF_A_RESULT = ['interruptId', 'result', 'resultText'];
const OF_A_FILE = ['url', 'name', 'mimeType', 'id'];

/** What the ready descriptions leave to the operator: a deployment may answer green without it, as somebody else's bot. */
const TO_FILL_IN = /\bYOUR-[A-Z]+(?:-[A-Z]+)*\b/;

const MOST_LEVELS = 100;
const MOST_RULES = 100;

/** @returns or else a sentence that names the place and what is accepted there */
export function readWire(text: string): Result<Wire, string> {
	const pasted = parsePasted(text);
	const parsed = pasted.ok ? pasted.value : undefined;
	if (!isJsonObject(parsed)) {
		const why = pasted.ok || pasted.failure === '' ? '' : ` ${sentence(pasted.failure)}`;
		return fail(`The description is not a JSON object.${why}`);
	}
	const lost = lostDigits(text);
	if (lost !== undefined) {
		return fail(
			`The description contains the number ${excerpt(lost, 40)}, which would lose digits. Put it in quotation marks.`,
		);
	}
	if (isTooDeep(parsed, MOST_LEVELS)) return fail('The description is nested too deeply.');
	const check = new Check();
	const root = check.section(parsed, '');
	const wire: Wire = {
		request: readRequest(root.inner('request')),
		answer: readAnswer(root.inner('answer')),
		stream: readStream(root.inner('stream')),
		refusal: readRefusal(root.inner('refusal')),
		upload: readUpload(root.inner('upload')),
	};
	const complaint = check.whyNot();
	return complaint === undefined ? ok(wire) : fail(complaint);
}

/** Keeps the first complaint; what could not be read is absent. */
class Check {
	private complaint: string | undefined;
	private readonly sections: Section[] = [];

	refuse(place: string, why: string): void {
		this.complaint ??= `"${place}" ${why}.`;
	}

	section(value: Json, place: string): Section {
		if (!isJsonObject(value)) this.refuse(place, 'must be a JSON object');
		const section = new Section(isJsonObject(value) ? value : {}, place, this);
		this.sections.push(section);
		return section;
	}

	/** What is misspelt comes first: it may be what is missing. */
	whyNot(): string | undefined {
		return this.sections.map((section) => section.whyUnknown()).find(Boolean) ?? this.complaint;
	}
}

class Section {
	/** All that were asked for. */
	private readonly known = new Set<string>();

	constructor(
		private readonly fields: JsonObject,
		readonly place: string,
		private readonly check: Check,
	) {}

	whyUnknown(): string | undefined {
		const unknown = Object.keys(this.fields).find((key) => !this.known.has(key));
		if (unknown === undefined) return undefined;
		return `"${this.at(excerpt(unknown, 40))}" is not known. Known entries are ${[...this.known].join(', ')}.`;
	}

	private value(name: string): Json | undefined {
		this.known.add(name);
		return Object.hasOwn(this.fields, name) ? (this.fields[name] ?? undefined) : undefined;
	}

	private at(name: string): string {
		return this.place ? `${this.place}.${name}` : name;
	}

	refuse(name: string, why: string): void {
		this.check.refuse(this.at(name), why);
	}

	inner(name: string): Section {
		return this.check.section(this.value(name) ?? {}, this.at(name));
	}

	list(name: string): Section[] {
		const value = this.value(name) ?? [];
		if (!Array.isArray(value) || value.length > MOST_RULES) {
			this.refuse(name, `must be a list of at most ${MOST_RULES} objects`);
			return [];
		}
		return value.map((one, index) => this.check.section(one, `${this.at(name)}[${index}]`));
	}

	text(name: string): string {
		const value = this.value(name) ?? '';
		if (typeof value === 'string') return value;
		this.refuse(name, 'must be text');
		return '';
	}

	texts(name: string): string[] | undefined {
		const value = this.value(name);
		if (value === undefined) return undefined;
		const list = Array.isArray(value) ? value : [value];
		const texts = list.filter((one) => typeof one === 'string');
		if (texts.length < list.length) this.refuse(name, 'must be a list of texts');
		return texts;
	}

	/** One of several values; the first is the usual one. */
	choice<T extends string | boolean>(name: string, known: readonly [T, ...T[]]): T {
		const value = this.value(name) ?? known[0];
		const found = known.find((one) => one === value);
		if (found === undefined) {
			this.refuse(name, `has to be ${known.map((one) => JSON.stringify(one)).join(' or ')}`);
		}
		return found ?? known[0];
	}

	expression(name: string): Expression | undefined {
		const text = this.text(name).trim();
		if (text === '') return undefined;
		const compiled = compileExpression(text);
		if (compiled.ok) return compiled.value;
		this.refuse(name, `("${excerpt(text, 60)}") must be a JMESPath expression: ${compiled.failure}`);
		return undefined;
	}

	template(name: string, known: readonly string[], needed: readonly string[] = []): Json {
		const value = this.value(name) ?? null;
		const names = TEMPLATES.placeholdersIn(value).map((one) => one.name);
		const unknown = names.find((one) => !known.includes(one));
		if (unknown !== undefined) {
			const list = known.map((one) => `$${one}`).join(', ');
			this.refuse(
				name,
				`contains "$${excerpt(unknown, 40)}". Known entries are ${list}; "$$" is a dollar sign`,
			);
		}
		if (hasBrokenChoice(value)) {
			this.refuse(name, 'contains a "$stream(…)" without two words');
		}
		const [unfilled] = TO_FILL_IN.exec(jsonText(value) ?? '') ?? [];
		if (unfilled !== undefined) this.refuse(name, `still contains "${unfilled}". Put your own there`);
		if (needed.length > 0 && !needed.some((one) => names.includes(one))) {
			this.refuse(name, `must contain ${needed.map((one) => `"$${one}"`).join(' or ')}`);
		}
		return value;
	}

	body(name: string, known: readonly string[], needed: readonly string[] = []): JsonObject {
		const value = this.template(name, known, needed);
		if (isJsonObject(value)) return value;
		if (value !== null) this.refuse(name, 'must be a JSON object');
		return {};
	}

	bodyIfAny(name: string, known: readonly string[], needed: readonly string[]): JsonObject {
		return this.value(name) === undefined ? {} : this.body(name, known, needed);
	}
}

function readRequest(at: Section): Wire['request'] {
	const path = at.template('path', OF_A_PATH) ?? '';
	if (typeof path !== 'string') at.refuse('path', 'must be text');
	const headers = at.body('headers', OF_A_PATH);
	for (const [name, value] of Object.entries(headers)) {
		const isName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name);
		if (!isName || typeof value !== 'string' || /[\r\n\0]/.test(value)) {
			at.refuse(`headers.${excerpt(name, 40)}`, 'must be a header and its text on one line');
		}
		if (/^authorization$/i.test(name)) {
			at.refuse(`headers.${name}`, 'is set by the node, from the token of the credential');
		}
	}
	return {
		path: typeof path === 'string' ? path : '',
		headers,
		message: at.body('message', OF_A_MESSAGE, ['message']),
		resume: at.bodyIfAny('resume', OF_A_RESUME, ['result', 'resultText', 'results']),
		file: at.template('file', OF_A_FILE),
		result: at.template('result', OF_A_RESULT),
	};
}

function readAnswer(at: Section): Wire['answer'] {
	const interrupt = at.inner('interrupt');
	const text = at.expression('text');
	if (!text) at.refuse('text', 'must be a JMESPath expression');
	return {
		envelope: at.choice('envelope', [false, true]),
		text,
		session: at.expression('session'),
		sessionHeader: at.text('sessionHeader').trim().toLowerCase(),
		usage: at.expression('usage'),
		requestId: at.expression('requestId'),
		error: at.expression('error'),
		incomplete: at.expression('incomplete'),
		interrupt: {
			at: interrupt.expression('at'),
			id: interrupt.expression('id'),
			tool: interrupt.expression('tool'),
			arguments: interrupt.expression('arguments'),
			question: interrupt.expression('question'),
			// There, the text itself is the question.
			waits: interrupt.expression('waits'),
		},
	};
}

function readStream(at: Section): Wire['stream'] {
	const end = at.choice('end', ['event', 'body']);
	const rules = at.list('rules').map(readRule);
	if (end === 'event' && rules.length > 0 && !rules.some((rule) => rule.end)) {
		at.refuse('rules', 'must contain a rule with "end": true, or "stream.end" must be "body"');
	}
	return { format: at.choice('format', ['sse', 'jsonLines']), event: at.expression('event'), end, rules };
}

function readRule(at: Section): StreamRule {
	return {
		place: at.place,
		on: at.texts('on')?.map(patternOf),
		data: at.text('data') || undefined,
		when: at.expression('when'),
		delta: at.expression('delta'),
		whole: at.expression('whole'),
		replace: at.expression('replace'),
		fail: at.expression('fail'),
		step: at.choice('step', [false, true]),
		end: endOf(at.choice<boolean | string>('end', [false, true, 'unlessMore'])),
	};
}

function endOf(said: boolean | string): StreamRule['end'] {
	if (said === false) return undefined;
	return said === true ? 'closed' : 'open';
}

/** A pattern in lower case, as the parts between its stars. */
export function patternOf(name: string): string[] {
	return name.toLowerCase().split('*');
}

/** Whether a name begins with the first part of a pattern, ends with the last and holds the others between, in order. */
export function fitsName(name: string, [first = '', ...others]: readonly string[]): boolean {
	const word = name.toLowerCase();
	const last = others.pop();
	if (last === undefined) return word === first;
	if (!word.startsWith(first)) return false;
	let at = first.length;
	for (const part of others) {
		const found = word.indexOf(part, at);
		if (found < 0) return false;
		at = found + part.length;
	}
	return word.length - last.length >= at && word.endsWith(last);
}

function readRefusal(at: Section): Wire['refusal'] {
	const words = (name: string): string[] => at.texts(name) ?? [];
	return {
		code: at.expression('code'),
		detail: at.expression('detail'),
		busy: words('busy'),
		notRun: words('notRun'),
		sessionUnknown: words('sessionUnknown'),
		tokenRefused: words('tokenRefused'),
		failed: words('failed'),
		only: at.texts('only') ?? WIRE.refusal.only,
	};
}

function readUpload(at: Section): Wire['upload'] {
	return {
		part: at.text('part') || 'file',
		url: at.expression('url'),
		id: at.expression('id'),
		expires: at.expression('expires'),
	};
}
