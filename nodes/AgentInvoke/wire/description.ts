import * as v from 'valibot';

import { BEARER } from '../../../credentials/agentAuth';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { lostDigits, parsePasted } from '../../shared/form/pastedJson';
import { JsonTemplates } from '../../shared/text/jsonTemplate';
import {
	excerpt,
	isJsonObject,
	isTooDeep,
	jsonText,
	sentence,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { compileExpression, textAt, type Expression } from '../../shared/form/expression';

/** Empty objects in a template stay; those emptied by absent values are removed. */
export const TEMPLATES = new JsonTemplates({
	choice: 'stream',
	dropsEmptied: true,
	joining: ['files', 'results'],
	hasKeys: true,
});

export function placeholdersOf(template: Json): Set<string> {
	return new Set(TEMPLATES.placeholdersIn(template).map(({ name }) => name));
}

const MOST_WIRE_LEVELS = 100;
const MOST_RULES = 100;

/** Matches what the operator must replace in a ready-made description, such as a bot's ID. */
const TO_FILL_IN = /\bYOUR-[A-Z]+(?:-[A-Z]+)*\b/;

/** Matches an incomplete choice in JSON, such as "$stream(a)". A `$$` before it stands for a plain dollar sign. */
const BROKEN_CHOICE = /(?<!\$)(?:\$\$)*\$stream\((?!(?:[^(),"\\]|\\.)*,(?:[^(),"\\]|\\.)*\))/;

// The messages below are clauses that follow the path of an entry, such as `"stream.rules[2].delta"`.

const text = v.nullish(v.string('must be a string'), '');

const compiled = v.rawTransform<string, Expression | undefined>(({ dataset, addIssue, NEVER }) => {
	if (dataset.value === '') return undefined;
	const read = compileExpression(dataset.value);
	if (read.ok) return read.value;
	const shown = excerpt(dataset.value, 60);
	addIssue({ message: `("${shown}") must be a JMESPath expression: ${read.failure}` });
	return NEVER;
});

const expression = v.pipe(text, v.trim(), compiled);

/** An expression that must not be left out. */
const needed = v.pipe(
	expression,
	v.check((at) => at !== undefined, 'is missing'),
);

const texts = v.union([v.string(), v.array(v.string())], 'must be a string or an array of strings');

/** Patterns for names, each split at `*`, which stands for any characters; undefined if none are given. */
function patterns(read: (name: string) => string) {
	return v.pipe(
		v.nullish(texts),
		v.transform((given) =>
			given === undefined || given === null ? undefined : [given].flat().map((one) => read(one).split('*')),
		),
	);
}

const codes = patterns(spelt);

function choice<const T extends readonly string[]>(values: T) {
	return v.picklist(values, `must be ${values.map((one) => JSON.stringify(one)).join(' or ')}`);
}

const flag = v.nullish(v.boolean('must be true or false'), false);

/** An object with only these entries. Arrays are rejected first, because valibot accepts them as objects. */
function section<const E extends v.ObjectEntries>(entries: E) {
	const names = Object.keys(entries).join(', ');
	return v.pipe(
		v.unknown(),
		v.check(isJsonObject, 'must be a JSON object'),
		v.strictObject(entries, `is not known. Known entries are ${names}`),
	);
}

/** @param why returns what is wrong with a value, as a clause */
function refusedIf<T>(why: (value: T) => string | undefined) {
	return v.rawCheck<T>(({ dataset, addIssue }) => {
		const message = dataset.typed ? why(dataset.value) : undefined;
		if (message !== undefined) addIssue({ message });
	});
}

/**
 * JSON with placeholders.
 * @param names all placeholders that it may contain
 * @param wanted placeholders of which it must contain at least one
 */
function template(names: readonly string[], wanted: readonly string[] = []) {
	return v.pipe(
		v.nullish(v.unknown(), null),
		// A parsed description contains only JSON.
		v.custom<Json>(() => true),
		refusedIf((given) => whyNotTemplate(given, names, wanted)),
	);
}

/** A template that is an object, empty if nothing is given. */
function body(names: readonly string[], wanted?: readonly string[]) {
	return v.pipe(
		template(names, wanted),
		v.transform((given) => given ?? {}),
		v.custom<JsonObject>(isJsonObject, 'must be a JSON object'),
	);
}

function whyNotTemplate(
	template: Json,
	names: readonly string[],
	wanted: readonly string[],
): string | undefined {
	const found = [...placeholdersOf(template)];
	const unknown = found.find((name) => !names.includes(name));
	if (unknown !== undefined) {
		const list = names.map((name) => `$${name}`).join(', ');
		return `contains "$${excerpt(unknown, 40)}". Known placeholders are ${list}; "$$" is a dollar sign`;
	}
	const written = jsonText(template) ?? '';
	if (BROKEN_CHOICE.test(written))
		return 'contains an incomplete "$stream(…)": it needs two words with a comma between, e.g. "$stream(sse, sync)"';
	const [unfilled] = TO_FILL_IN.exec(written) ?? [];
	if (unfilled !== undefined) return `still contains "${unfilled}". Replace it with your own value`;
	if (wanted.length === 0 || wanted.some((name) => found.includes(name))) return undefined;
	if (template === null) return 'is missing';
	return `must contain ${wanted.map((name) => `"$${name}"`).join(' or ')}`;
}

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Matches what HTTP can carry in a header. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers that describe the connection or the body: another value breaks the request. */
const OF_TRANSPORT =
	/^(?:connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

function whyNotHeaders(headers: JsonObject): string | undefined {
	for (const [name, value] of Object.entries(headers)) {
		const shown = `contains the header "${excerpt(name, 40)}"`;
		if (OF_TRANSPORT.test(name)) return `${shown}, which n8n sets itself`;
		if (!HEADER_NAME.test(name)) return `${shown}, which is no name of a header`;
		if (typeof value !== 'string' || !HEADER_VALUE.test(value))
			return `${shown}, whose value is not one line of Latin text`;
	}
	return undefined;
}

const OF_A_SESSION = ['session', 'newSession'];
const OF_A_PATH = [...OF_A_SESSION, 'stream'];
const OF_A_CALL = [...OF_A_SESSION, 'sessionNumber', 'stream', 'streamBoolean', 'uuid'];
const OF_A_MESSAGE = ['message', 'files', ...OF_A_CALL];
const OF_A_RESULT = ['interruptId', 'runId', 'callId', 'tool', 'result', 'resultText'];
const OF_A_FILE = ['url', 'name', 'mimeType', 'id'];

const path = v.pipe(
	template(OF_A_PATH),
	v.transform((given) => given ?? ''),
	v.string('must be a string'),
);

const OPEN = {
	path,
	message: body(OF_A_CALL),
	/** Where the answer contains the ID of the session. */
	session: needed,
};

const REQUEST = {
	/** Empty if the credential's Invoke Path is used. */
	path,
	/** The path of Resume; empty if it is the same. */
	resumePath: path,
	/** The path of a GET request that tests the token; empty if nothing is sent to test it. */
	test: path,
	/** The header that holds the token; none if it is empty. The credential itself fills it in. */
	auth: v.pipe(
		v.nullish(v.unknown(), BEARER),
		body(['token']),
		refusedIf(whyNotHeaders),
		refusedIf((auth) =>
			Object.keys(auth).length > 0 && !placeholdersOf(auth).has('token')
				? 'must contain "$token", or be {} if no token is sent'
				: undefined,
		),
	),
	headers: v.pipe(
		body(OF_A_SESSION),
		refusedIf(whyNotHeaders),
		refusedIf((headers) =>
			Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
				? 'must not contain "Authorization", which belongs in "request.auth"'
				: undefined,
		),
	),
	/** The call that opens a session before its first message; absent if the message itself does. */
	open: v.nullish(section(OPEN)),
	message: body(OF_A_MESSAGE, ['message']),
	/** Absent if the deployment has no interrupts. */
	resume: v.nullish(body([...OF_A_RESULT, 'results', ...OF_A_CALL], ['result', 'resultText', 'results'])),
	file: template(OF_A_FILE),
	/** The template of one result in `$results`. */
	result: template(OF_A_RESULT),
};

const INTERRUPT = {
	at: expression,
	id: expression,
	tool: expression,
	arguments: expression,
	question: expression,
	/** Finds a value if the text itself is the question. */
	waits: expression,
};

const ANSWER = {
	envelope: flag,
	text: needed,
	session: expression,
	/** Reads the response's headers, whose names are in lower case; a header's name may stand alone. */
	sessionHeader: v.pipe(
		text,
		v.trim(),
		v.transform((at) => (/^[\w-]+$/.test(at) ? JSON.stringify(at.toLowerCase()) : at)),
		compiled,
	),
	usage: expression,
	requestId: expression,
	error: expression,
	incomplete: expression,
	interrupt: v.nullish(section(INTERRUPT), {}),
};

/** What an event of a stream means. The first rule that matches an event is applied. */
const RULE = {
	/** Names of events, regardless of case; undefined matches every name. */
	on: patterns((name) => name.toLowerCase()),
	/** What the data must equal; empty matches any data. */
	data: text,
	when: expression,
	/** A piece of the text. */
	delta: expression,
	/** The whole text so far, which continues what came before. */
	whole: expression,
	/** The whole text so far, whatever came before. */
	replace: expression,
	/** Which of several texts, or of several interrupts, the event is about. */
	part: expression,
	/** A piece of the arguments of the interrupt that `part` names. */
	argumentsDelta: expression,
	/** The IDs of interrupts that are answered or withdrawn. */
	settles: expression,
	/** The words in which the agent reports that it failed. */
	fail: expression,
	step: flag,
	/** `unlessMore`: usage or an interrupt may still follow, but no more text, unless `stream.end` is `both`. */
	end: v.nullish(
		v.union([v.boolean(), v.literal('unlessMore')], 'must be false, true or "unlessMore"'),
		false,
	),
};

const MUST_BE_RULES = `must be an array of at most ${MOST_RULES} objects`;

const STREAM = {
	format: v.nullish(choice(['sse', 'jsonLines']), 'sse'),
	event: expression,
	/**
	 * `both`: the body ends, and the last event to which a rule applied has `end`, for servers that run several agents.
	 * Steps of an agent that waits do not count.
	 */
	end: v.nullish(choice(['event', 'body', 'both']), 'event'),
	rules: v.pipe(
		v.nullish(v.array(section(RULE), MUST_BE_RULES), []),
		v.maxLength(MOST_RULES, MUST_BE_RULES),
		v.transform((rules) =>
			rules.map((rule, index) => ({
				...rule,
				entry: `stream.rules[${index}]`,
				/** Whether data that is plain text is the text, as with `@`. */
				takesText: [rule.delta, rule.whole, rule.replace].some((at) => textAt(at, 'text') !== ''),
			})),
		),
	),
};

/** Codes or HTTP statuses after which nothing has run. */
const REFUSAL = {
	code: expression,
	detail: expression,
	busy: codes,
	notRun: codes,
	sessionUnknown: codes,
	tokenRefused: codes,
	/** Nothing ran, and sending the same again would be refused again. */
	rejected: codes,
};

const UPLOAD = {
	part: v.pipe(
		text,
		v.transform((name) => name || 'file'),
	),
	url: expression,
	id: expression,
	expires: expression,
};

const DESCRIPTION = {
	request: v.nullish(section(REQUEST), {}),
	answer: v.nullish(section(ANSWER), {}),
	stream: v.pipe(
		v.nullish(section(STREAM), {}),
		v.forward(
			v.check(
				({ end, rules }) => end === 'body' || rules.length === 0 || rules.some((rule) => rule.end),
				'must contain a rule with "end": true, or "stream.end" must be "body"',
			),
			['rules'],
		),
	),
	refusal: v.nullish(section(REFUSAL), {}),
	upload: v.nullish(section(UPLOAD), {}),
};

const WIRE_SCHEMA = section(DESCRIPTION);

/** A checked description of how a deployment is called and what its answers mean. */
export type Wire = v.InferOutput<typeof WIRE_SCHEMA>;

export type StreamRule = Wire['stream']['rules'][number];

/** @returns the wire, or a sentence that names the faulty entry and what is accepted there */
export function readWire(description: string): Result<Wire, string> {
	const pasted = parsePasted(description);
	const parsed = pasted.ok ? pasted.value : undefined;
	if (!isJsonObject(parsed)) {
		const why = pasted.ok || pasted.failure === '' ? '' : ` Why: ${sentence(pasted.failure)}`;
		return fail(`The description is not a JSON object.${why}`);
	}
	const lost = lostDigits(description);
	if (lost !== undefined) {
		return fail(
			`The description contains the number ${excerpt(lost, 40)}, which would lose digits. Put it in quotation marks.`,
		);
	}
	if (isTooDeep(parsed, MOST_WIRE_LEVELS)) return fail('The description is nested too deeply.');
	const read = v.safeParse(WIRE_SCHEMA, parsed);
	if (read.success) return ok(read.output);
	// Misspelt names are reported first: a missing entry may be one of them.
	const issue = read.issues.find(({ expected }) => expected === 'never') ?? read.issues[0];
	const entry = (issue.path ?? []).map(({ key }) =>
		typeof key === 'number' ? `[${key}]` : `.${excerpt(String(key), 40)}`,
	);
	return fail(`"${entry.join('').slice(1)}" ${issue.message}.`);
}

const MOST_CODE_CHARS = 2_000;

/** A code as `refusal` compares it: regardless of case, spaces, hyphens and underscores. */
export function spelt(code: string): string {
	return code
		.slice(0, MOST_CODE_CHARS)
		.toLowerCase()
		.replace(/[\s_-]+/g, '');
}

/**
 * Whether a name matches a pattern: it begins with the first part, ends with the last, and contains the others in
 * between, in order.
 */
export function fitsName(word: string, [first = '', ...others]: readonly string[]): boolean {
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
