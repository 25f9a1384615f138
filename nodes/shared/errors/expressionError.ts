import { badInput, fail, type Failure, type Result } from './failure';
import { excerpt } from '../text/json';

/**
 * Reads parameters of one item. n8n throws where an expression cannot be evaluated (a node that has not run, a
 * lost pairing); that is this item's failure, and no reason to give up the others.
 */
export function readItem<T>(read: () => Result<T>): Result<T> {
	try {
		return read();
	} catch (error) {
		return fail(explainExpressionError(error));
	}
}

/** What n8n throws about parameters has names of its own. */
const OWN_MISTAKES: ReadonlySet<string> = new Set(['TypeError', 'ReferenceError', 'RangeError']);

/** What n8n threw, as a failure of the operator's input. */
export function explainExpressionError(error: unknown): Failure {
	if (error instanceof RangeError && /call stack/i.test(error.message)) {
		return badInput(
			'A value of this item is nested too deeply',
			'Pass on only the fields that are needed, with an "Edit Fields" node before this one. Nothing was sent for this item.',
		);
	}
	if (error instanceof Error && OWN_MISTAKES.has(error.name)) {
		return badInput(
			`The node met something that it was not made for: ${excerpt(error.message, 300)}`,
			'This is a mistake in the node, not in your workflow. Please report it with the data of this item.',
		);
	}
	const said = wordsOfError(error);
	const description =
		error instanceof Error && 'description' in error && typeof error.description === 'string'
			? `${excerpt(error.description, 300)} `
			: '';
	const parameter = parameterOf(error);
	return badInput(
		`n8n could not read the item's ${parameter ? `"${parameter}"` : 'fields'}: ${said}`,
		`${description}Check the expressions in the node's fields. Nothing was sent for this item.`,
	);
}

function parameterOf(error: unknown): string {
	if (!(error instanceof Error) || !('context' in error)) return '';
	const { context } = error;
	if (typeof context !== 'object' || context === null || !('parameter' in context)) return '';
	return typeof context.parameter === 'string' ? context.parameter : '';
}

/** The words of whatever was thrown, for a sentence. */
export function wordsOfError(error: unknown): string {
	return error instanceof Error && error.message ? excerpt(error.message, 300) : 'no reason was given';
}
