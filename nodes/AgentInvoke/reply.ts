import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import type { Deployment } from './deployment';
import type { AgentReply, Envelope, Interrupt } from './envelope';
import { findFirst, isWord, textAt, textOf } from './paths';

/** What one answer or event gives by the paths of the deployment. */
export type ReadReply = AgentReply & { readonly readFrom: JsonObject };

/** Reads the reply out of a successful envelope, by the paths of the deployment. */
export function readReply(envelope: Envelope, { paths, words }: Deployment): ReadReply {
	const { data, reason, code, requestId, raw } = envelope;
	const answer = findFirst(data, paths.answer);
	const session = findFirst(data, paths.session);
	const usage = findFirst(data, paths.usage);
	const waiting = findFirst(data, paths.interrupt);
	const pending = asList(waiting?.value).flatMap((one) => readInterrupt(one, paths, words) ?? []);
	const isUntold = textOf(answer?.value).trim() === '' && words.interrupt.has(code);
	const [first] = pending;
	const interrupt = first?.interrupt ?? (isUntold ? UNTOLD_INTERRUPT : undefined);
	return {
		answer: textOf(answer?.value),
		sessionId: textOf(session?.value),
		interrupt,
		interrupts: pending.length > 1 ? pending.map((one) => one.interrupt) : [],
		reason,
		requestId,
		usage: usage?.value ?? null,
		hint: '',
		raw,
		readFrom: {
			answer: answer?.path ?? null,
			session: session?.path ?? null,
			usage: usage?.path ?? null,
			interrupt: first && waiting ? waiting.path : null,
			...first?.readFrom,
		},
	};
}

/** Of two events of one answer what the later one has, and what only the earlier one has. */
export function mergeReadFrom(earlier: JsonObject, later: JsonObject): JsonObject {
	const found = Object.entries(later).filter(([name, path]) => path !== null || earlier[name] === undefined);
	return { ...earlier, ...Object.fromEntries(found) };
}

const KEYS_SHOWN = 20;

/**
 * @param found the keys that the data held
 * @param inPieces whether it came as a stream
 * @param readFrom which path gave what else
 */
export function hintAtEmpty(
	found: readonly string[],
	inPieces: boolean,
	{ paths, hasEnvelope }: Deployment,
	readFrom: JsonObject = {},
): string {
	if (found.length === 0) return "The agent's answer is empty: the platform sent no data with it.";
	const all = [...paths.answer, ...(inPieces ? paths.delta : [])].map((path) => `"${path}"`);
	const looked = [...new Set(all)].join(' and ');
	const keys = found.slice(0, KEYS_SHOWN).map((key) => excerpt(key, 40));
	const rest = found.length > KEYS_SHOWN ? ` and ${found.length - KEYS_SHOWN} more` : '';
	const others = Object.entries(readFrom).flatMap(([name, path]) =>
		typeof path === 'string' ? [`${name} at "${path}"`] : [],
	);
	const also = others.length > 0 ? ` It found ${others.join(', ')}.` : '';
	const advice = 'If the text stands elsewhere, set "Answer Path" in the FlowAgent credential.';
	return `The agent's answer is empty: the node looked at ${looked} in ${hasEnvelope ? '"data"' : 'the answer'}, which holds ${keys.join(', ')}${rest}.${also} ${advice}`;
}

const UNTOLD_INTERRUPT: Interrupt = { id: '', kind: 'question', tool: '', arguments: {}, question: '' };

/**
 * An agent may put its question as plain text and then only say that it waits: that text is what must be answered,
 * and the interrupt alone would not tell anybody what it is about.
 */
export function askedIn(text: string, interrupt: Interrupt): Interrupt {
	const asksNothing = interrupt.kind === 'question' && interrupt.question.trim() === '';
	return asksNothing ? { ...interrupt, question: text } : interrupt;
}

function asList(value: Json | undefined): Json[] {
	if (value === undefined) return [];
	return Array.isArray(value) ? value : [value];
}

function readInterrupt(
	value: Json,
	paths: Deployment['paths'],
	words: Deployment['words'],
): { readonly interrupt: Interrupt; readonly readFrom: JsonObject } | undefined {
	if (typeof value === 'string' && value) {
		return { interrupt: { ...UNTOLD_INTERRUPT, question: value }, readFrom: {} };
	}
	if (!isJsonObject(value) || Object.keys(value).length === 0) return undefined;
	const id = findFirst(value, paths.interruptId);
	const named = findFirst(value, paths.interruptTool, isWord);
	const given = findFirst(value, paths.interruptArguments);
	const question = findFirst(value, paths.interruptQuestion);
	const isTool = named !== undefined && !words.question.has(textAt(value, paths.interruptKind));
	const interrupt: Interrupt = {
		id: textOf(id?.value),
		kind: isTool ? 'tool' : 'question',
		tool: isTool ? textOf(named.value) : '',
		arguments: readArguments(given?.value),
		question: textOf(question?.value),
	};
	return {
		interrupt,
		readFrom: {
			'interrupt.id': id?.path ?? null,
			...(isTool && { 'interrupt.tool': named.path, 'interrupt.arguments': given?.path ?? null }),
			'interrupt.question': question?.path ?? null,
		},
	};
}

/** Some send them as JSON in a text. */
function readArguments(given: Json | undefined): Json {
	return (typeof given === 'string' ? (parseJson(given) ?? given) : given) ?? {};
}
