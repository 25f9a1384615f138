import { badInput, fail, NOT_SENT, type Failure, type Result } from './failure';
import { excerpt, member } from '../text/json';
import { textOf } from '../text/textOf';

/** Reads parameters of one item; if n8n throws, because it cannot evaluate an expression, only this item fails. */
export function readItem<T>(read: () => Result<T>): Result<T> {
	try {
		return read();
	} catch (error) {
		return fail(explainExpressionError(error));
	}
}

/** Does asynchronous work on one item; what n8n throws fails only this item, as in `readItem`. */
export async function workItem<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
	try {
		return await work();
	} catch (error) {
		return fail(explainExpressionError(error));
	}
}

/** Errors with these names are our own bugs, because the errors that n8n throws about parameters have other names. */
const OWN_MISTAKES: ReadonlySet<string> = new Set(['TypeError', 'ReferenceError', 'RangeError']);

/** Whatever was thrown, by n8n or by a bug of ours, as a failure of kind `badInput`. */
export function explainExpressionError(error: unknown): Failure {
	if (error instanceof RangeError && /call stack/i.test(error.message)) {
		return badInput(
			'A value of this item is nested too deeply',
			`Pass on only the fields that are needed, with an 'Edit Fields' node before this one. ${NOT_SENT}`,
		);
	}
	if (error instanceof Error && OWN_MISTAKES.has(error.name)) {
		return badInput(
			`The node has a bug: ${excerpt(error.message, 300)}`,
			'Your workflow is not the cause. Please report the bug with the data of this item.',
		);
	}
	const parameter = textOf(member(member(error, 'context'), 'parameter'));
	// n8n emphasizes names in it.
	const plain = textOf(member(error, 'description')).replace(/<\/?strong>/g, '');
	const explained = plain && `${excerpt(plain, 300)} `;
	return badInput(
		`n8n could not read ${parameter ? `'${parameter}'` : 'the fields'} for this item: ${wordsOfError(error)}`,
		`${explained}Check the expressions in the node's fields. ${NOT_SENT}`,
	);
}

/** The message of an error, shortened to fit in a sentence. Some of n8n's say what is wrong only in their context. */
export function wordsOfError(error: unknown): string {
	if (!(error instanceof Error && error.message)) return 'no reason was given';
	const context = member(error, 'context');
	const [template, node] = [member(context, 'messageTemplate'), member(context, 'nodeCause')].map(textOf);
	const words = (error.message === 'Invalid expression' && template) || error.message;
	return excerpt(node && !words.includes(node) ? `${words} ("${node}")` : words, 300);
}
