/** Something that the agent wants before it goes on: a tool's result, or an answer. */
export interface Ask {
	readonly fn?: string;
	readonly with?: object;
	readonly title?: string;
}

/** What the agent does in a turn. */
export interface Plan {
	/** Default: the number of the turn and what was said. */
	readonly says?: string;
	readonly takesMs?: number;
	/** Tools that it uses by itself; a stream tells of them. */
	readonly tools?: ReadonlyArray<{ readonly fn: string; readonly with: object }>;
	/** Between two events of a stream; keep-alives go on meanwhile. */
	readonly pauseMs?: number;
	/** All of them wait at the same time. */
	readonly asks?: readonly Ask[];
	/** The line is cut after so many events of a stream, or before an answer that is none. */
	readonly cutAfter?: number;
	/** The body ends properly after so many events, without what should come behind them. */
	readonly endAfter?: number;
	/** It has run, and then it fails. */
	readonly fails?: { readonly status: number; readonly code: string };
	/** It does not run. */
	readonly refuses?: { readonly status: number; readonly code: string };
}

export interface OtherOptions {
	/** Whether answers have the envelope of §4.6; without it HTTP's own status counts. */
	readonly envelope?: boolean;
	/** What ends a stream. */
	readonly streamEnd?: 'event' | 'body';
	/** Whether a call for a session with a turn under way is refused; else it runs beside that. */
	readonly guarded?: boolean;
	readonly keepAliveMs?: number;
}
