import type { Ask, Failing, RefusalKind } from './plan';

/** A call, read from the product's own format. */
export interface AskedTurn {
	/** Empty if the call asks for a new session. */
	readonly session: string;
	readonly said: string | undefined;
	/** The results of tools and the answers to questions, as text. */
	readonly results: readonly GivenResult[];
	readonly isStreamed: boolean;
}

export interface GivenResult {
	readonly id: string;
	readonly output: string;
}

/** An answer: its text and what is reported with it. */
export interface TurnFacts {
	/** A number of constant length, so that a stream is always equally long. */
	readonly number: string;
	/** The session ID that the next call has to name. */
	readonly session: string;
	readonly pieces: readonly string[];
	readonly text: string;
	/** A message before the text. */
	readonly preamble: string;
	/** Text that is sent first and then replaced. */
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

/** How a product words a refusal; with an empty message, it says what is wrong with the call. */
export type Wording = readonly [status: number, message: string, code?: string | number];

/** The parts of a received call. */
export interface Received {
	readonly body: unknown;
	readonly query: unknown;
	/** The parameters of the path. */
	readonly params: unknown;
	readonly headers: unknown;
}

/** The product's own format for what its stand-in does. */
export interface Dialect {
	/** The paths of calls; `:name` is a parameter. */
	readonly paths: readonly string[];
	/** The call that opens a session, if there is one, and its answer. */
	readonly opening?: { readonly path: string; body(session: string): object };
	/** Whether each answer has an ID of its own, which the next call must name. */
	readonly renewsSession: boolean;
	sessionId(number: string): string;
	/** @returns the call, or what is wrong with it; anything that the product does not know is an error */
	read(received: Received): AskedTurn | string;
	/** Whether the next message answers the request, rather than a result with its ID. */
	isAnsweredByMessage(ask: Ask): boolean;
	readonly refusals: Readonly<Record<RefusalKind, Wording>>;
	refusalBody(message: string, code: string | number, status: number): object;
	whole(turn: TurnFacts): object;
	/** The events of a stream, as text. */
	events(turn: TurnFacts): readonly string[];
	failedWhole(turn: TurnFacts, how: Failing): Refusal;
	failedEvents(turn: TurnFacts, how: Failing): readonly string[];
	/** Extra headers of each answer. */
	headers?(turn: TurnFacts): Readonly<Record<string, string>>;
	/** The content type of streams; default: that of event streams. */
	readonly streamType?: string;
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function isText(value: unknown): value is string {
	return typeof value === 'string' && value !== '';
}

/** The first key that is not one of the known keys. */
export function oddKey(value: unknown, known: readonly string[]): string | undefined {
	return Object.keys(fieldsOf(value)).find((key) => !known.includes(key));
}
