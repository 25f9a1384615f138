import type { Ask, Failing, RefusalKind } from './plan';

/** A call, read in the product's own format. */
export interface AskedTurn {
	/** Empty where a new one is wanted. */
	readonly session: string;
	readonly said: string | undefined;
	/** Of what was asked for; each as text, as all three products want it. */
	readonly results: readonly GivenResult[];
	readonly isStreamed: boolean;
}

export interface GivenResult {
	readonly id: string;
	readonly output: string;
}

/** What an answer tells beside its text. */
export interface TurnFacts {
	/** The same for each answer of a server, so that a stream has the same length each time. */
	readonly number: string;
	/** To be named by the next call. */
	readonly session: string;
	readonly pieces: readonly string[];
	readonly text: string;
	/** Comes before the text, as a message of its own. */
	readonly preamble: string;
	/** Is said first, and taken back. */
	readonly draft: string;
	readonly asks: readonly OpenAsk[];
	readonly tokensIn: number;
	readonly tokensOut: number;
}

export type OpenAsk = Ask & { readonly id: string };

export interface Refusal {
	readonly status: number;
	readonly body: object;
}

/** A call as it came. */
export interface Received {
	readonly body: unknown;
	readonly query: unknown;
	/** Of the path. */
	readonly params: unknown;
	readonly headers: unknown;
}

/** How a product words what its stand-in does. */
export interface Dialect {
	/** Where it is called; what follows a colon is a parameter. */
	readonly paths: readonly string[];
	/** Whether each answer has an ID of its own, which the next call has to name. */
	readonly renewsSession: boolean;
	sessionId(number: string): string;
	/** @returns or else what is wrong with it: nothing that the product does not know is let through */
	read(received: Received): AskedTurn | string;
	/** Whether the next message answers it. */
	isAnsweredByMessage(ask: Ask): boolean;
	refusal(kind: RefusalKind, detail: string): Refusal;
	whole(turn: TurnFacts): object;
	/** The texts of a stream, each an event. */
	events(turn: TurnFacts): readonly string[];
	failedWhole(turn: TurnFacts, how: Failing): Refusal;
	failedEvents(turn: TurnFacts, how: Failing): readonly string[];
	/** Of each answer. */
	headers?(turn: TurnFacts): Readonly<Record<string, string>>;
	/** Default: that of event streams. */
	readonly streamType?: string;
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function isText(value: unknown): value is string {
	return typeof value === 'string' && value !== '';
}

/** What none of the known keys is. */
export function oddKey(value: unknown, known: readonly string[]): string | undefined {
	return Object.keys(fieldsOf(value)).find((key) => !known.includes(key));
}
