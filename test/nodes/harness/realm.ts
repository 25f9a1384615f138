/** `Error.isError` exists in Node 24, but not yet in TypeScript's ES2024 library. */
type ErrorWithIsError = ErrorConstructor & { isError(candidate: unknown): boolean };

/**
 * Jest runs every test file in a realm (vm context) of its own: `Error` there is not the `Error` that Node's
 * core modules throw, so `error instanceof Error` is false for ECONNREFUSED, ENOENT, an aborted stream … n8n
 * makes exactly that check (NodeError keeps a `cause` only for an Error, WorkflowExecute reports only Errors),
 * and would behave differently in tests than in production. Errors of every realm count as Errors from here
 * on; subclasses keep the ordinary rule, and no other class is touched.
 */
export function recogniseErrorsOfAllRealms(): void {
	if (Object.hasOwn(Error, Symbol.hasInstance)) return;
	const ordinary = Function.prototype[Symbol.hasInstance];
	Object.defineProperty(Error, Symbol.hasInstance, {
		configurable: true,
		value(this: unknown, candidate: unknown): boolean {
			if (ordinary.call(this as CallableFunction, candidate)) return true;
			// Static members are inherited; without this check, Node's TypeError would be an instance of NodeApiError.
			return this === Error && (Error as ErrorWithIsError).isError(candidate);
		},
	});
}
