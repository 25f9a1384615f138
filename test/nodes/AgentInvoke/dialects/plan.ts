/** Something that the agent needs before it continues: a tool's result or a person's answer. */
export type Ask =
	| { readonly kind: 'tool'; readonly tool: string; readonly arguments: object }
	| { readonly kind: 'question'; readonly question: string };

/** How a stand-in answers one call. */
export interface Plan {
	/** The answer; default: the number of the turn and the message. */
	readonly says?: string;
	/** Sent before the answer, as a message of its own if the product has several. */
	readonly preamble?: string;
	/** Sent first, and then replaced if the product supports that. */
	readonly draft?: string;
	readonly asks?: readonly Ask[];
	/** Default: what the call asks for. */
	readonly form?: 'whole' | 'streamed';
	/** After this many bytes the connection breaks, or the body ends properly. */
	readonly cut?: { readonly afterBytes: number; readonly how: 'broken' | 'ended' };
	/** The agent does not run. */
	readonly refuses?: RefusalKind;
	/** The agent runs and fails, with HTTP 200. */
	readonly fails?: Failing;
}

export type RefusalKind =
	| 'noSuchPath'
	| 'malformed'
	| 'token'
	| 'sessionUnknown'
	| 'busy'
	/** Overload; the same call succeeds later. */
	| 'load'
	/** A reason that repeating the call does not remove. */
	| 'forGood';

/** How a turn that has begun fails. */
export type Failing = 'error' | 'incomplete';
