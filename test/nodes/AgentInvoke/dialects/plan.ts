/** Something that the agent wants before it goes on: a tool's result, or the answer of a person. */
export type Ask =
	| { readonly kind: 'tool'; readonly tool: string; readonly arguments: object }
	| { readonly kind: 'question'; readonly question: string };

/** What a stand-in does with one call. */
export interface Plan {
	/** Default: the number of the turn and what was said. */
	readonly says?: string;
	/** Said before it, as a message of its own where the product has several. */
	readonly preamble?: string;
	/** Said first, and taken back where the product can do that. */
	readonly draft?: string;
	readonly asks?: readonly Ask[];
	/** Default: as the call wants it. */
	readonly form?: 'whole' | 'streamed';
	/** The body ends after so many bytes: the connection breaks, or the body ends properly all the same. */
	readonly cut?: { readonly afterBytes: number; readonly how: 'broken' | 'ended' };
	readonly takesMs?: number;
	/** It does not run. */
	readonly refuses?: RefusalKind;
	/** It runs, and HTTP says 200. */
	readonly fails?: Failing;
}

export type RefusalKind =
	| 'noSuchPath'
	| 'malformed'
	| 'token'
	| 'sessionUnknown'
	| 'busy'
	/** Too much to do; asked again later, it runs. */
	| 'load'
	/** For a reason that asking again does not mend. */
	| 'forGood';

/** How a turn that began ends without success. */
export type Failing = 'error' | 'incomplete';
