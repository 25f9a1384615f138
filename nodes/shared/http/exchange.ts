export interface HttpRequest {
	readonly method: 'GET' | 'POST';
	readonly url: string;
	readonly json?: object;
	/** A multipart body, instead of JSON. */
	readonly form?: FormData;
	/** The accepted MIME types; JSON by default. */
	readonly accept?: string;
	readonly headers?: Readonly<Record<string, string>>;
	/** The limit for the response headers, and again for the body. */
	readonly timeoutMs: number;
	/** Whether the answer is awaited for some seconds after a stop, because the request starts paid work. */
	readonly outlivesStop?: boolean | undefined;
	/** Ends the request, as a stop of the execution does. */
	readonly signal?: AbortSignal | undefined;
}

export type Exchange = Reply | Unanswered;

/** A complete answer, whatever it says. */
export interface Reply {
	readonly kind: 'reply';
	readonly status: number;
	readonly headers: Headers;
	readonly text: string;
}

/** Why no complete answer came; the kinds are those of `Outcome`. */
export type Unanswered =
	| { readonly kind: 'notSent'; readonly code: string; readonly text: string }
	| {
			readonly kind: 'unclear';
			readonly code: string;
			readonly text: string;
			/** What had arrived of the body when the answer broke off. */
			readonly arrived?: string;
	  }
	| { readonly kind: 'cancelled' };

/** Header names are lower case. */
export type Headers = Readonly<Record<string, string>>;

export type SendHttp = (request: HttpRequest) => Promise<Exchange>;

/** Codes of errors that occur before the first byte is sent; EPROTO: the server does not speak TLS, so it read nothing. */
const NO_CONNECTION =
	/^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EAI_FAIL|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|EPROTO)$/;

/** Whether a network error code means that no connection was made, so that trying again is safe. */
export function connectionWasRefused(code: string): boolean {
	return NO_CONNECTION.test(code);
}

/** Whether a network error code means that the peer's certificate was rejected, so that nothing was sent. */
export function certificateWasRejected(code: string): boolean {
	return /^(CERT_|ERR_TLS_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(VERIFY|GET_ISSUER))/.test(code);
}
