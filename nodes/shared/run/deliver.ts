import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { toErrorItem, throwFirst, failedItems, withoutTags } from '../errors/nodeError';
import type { Result } from '../errors/failure';
import { excerpt } from '../text/json';

export function showHint(
	context: Pick<IExecuteFunctions, 'addExecutionHints'>,
	message: string,
	type: 'info' | 'warning' = 'warning',
): void {
	context.addExecutionHints({ message: withoutTags(message), type, location: 'outputPane' });
}

/** @returns an item for each input item; without Continue On Fail the first failure is thrown */
export function deliverResults(
	context: IExecuteFunctions,
	results: ReadonlyArray<Result<IDataObject>>,
	advice: readonly string[] = [],
): INodeExecutionData[] {
	throwFirst(context, failedItems(results), { advice });
	return results.map((result, item) =>
		result.ok
			? { json: result.value, pairedItem: { item } }
			: toErrorItem(context.getNode(), result.failure, item),
	);
}

/** Says, in the error of a run, that the other items' answers are remembered for a retry. */
export function otherAnswers(results: ReadonlyArray<Result<unknown>>): string {
	const answered = results.filter(({ ok }) => ok).length;
	if (answered === 0) return '';
	return `${answered} other item(s) were answered: a retry of this execution keeps their answers.`;
}

export function hintFailed(context: IExecuteFunctions, results: ReadonlyArray<Result<unknown>>): void {
	const failed = results.filter(({ ok }) => !ok).length;
	if (failed > 0) showHint(context, `${results.length - failed} answered, ${failed} failed.`);
}

/** Logs what a cancelled node began, because n8n discards the node's output. */
export function logStopped(context: IExecuteFunctions, node: string, facts: string): void {
	context.logger.info(`${node} "${context.getNode().name}" was stopped; ${facts}`);
}

/** How many characters of an ID are shown at most; real IDs are far shorter. */
const ID_CHARS = 100;

/** Lists IDs for a sentence, each shortened if it is too long. */
export function listIds(ids: readonly string[], most = Infinity): string {
	return ids
		.slice(0, most)
		.map((id) => excerpt(id, ID_CHARS))
		.join(', ');
}
