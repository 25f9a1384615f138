/** The refusal of a chat request: OpenAI's error object. */
export interface ChatError {
	readonly status: number;
	readonly message: string;
	readonly code: string;
}

export interface ChatErrorBody {
	error: { message: string; type: string; param: null; code: string | number };
}

const TYPES: Readonly<Record<number, string>> = {
	401: 'authentication_error',
	403: 'permission_error',
	404: 'not_found_error',
	429: 'rate_limit_error',
};

export function errorBody(status: number, message: string, code: string | number): ChatErrorBody {
	const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
	return { error: { message, type, param: null, code } };
}

const CODES: Readonly<Record<number, string>> = { 401: 'invalid_api_key', 429: 'rate_limit_exceeded' };

/** The refusal in place of the workflow service's envelope; its codes begin with the HTTP status. */
export function chatRefusal(code: number, message: string): ChatErrorBody {
	const status = Math.floor(code / 100);
	return errorBody(status, message, CODES[status] ?? code);
}
