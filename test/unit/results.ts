import type { Result } from '../../nodes/shared/errors/failure';

/** The value of a success. @throws with the failure's words if there is none */
export function valueOf<T>(result: Result<T, string | { readonly message: string }>): T {
	if (result.ok) return result.value;
	throw new Error(typeof result.failure === 'string' ? result.failure : result.failure.message);
}

/** The failure of what did not succeed. @throws with the value if it did */
export function failureOf<F>(result: Result<unknown, F>): F {
	if (!result.ok) return result.failure;
	throw new Error(`It succeeded: ${JSON.stringify(result.value)}`);
}
