declare module 'jmespath' {
	/** @throws if the expression is not JMESPath */
	export function compile(expression: string): unknown;
	export function tokenize(expression: string): ReadonlyArray<{ readonly value: unknown }>;
	export function search(data: unknown, expression: string): unknown;
}
