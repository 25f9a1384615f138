import { fail, failInput, ok, type Failure, type Result } from '../errors/failure';
import { onlyOne, parsePasted, refuseRounded } from '../form/pastedJson';
import { excerpt, isJsonObject, type Json } from '../text/json';
import { textOrNumber } from '../text/textOf';
import { isEmptyDefinition, readKnowledge } from './definition';

/** One hosted workflow, entered in the node or saved in the account; not parsed yet. */
export interface WorkflowSource {
	readonly workflowId: string;
	readonly definition: unknown;
	readonly view: unknown;
	readonly savedAs?: string;
}

/** Keyed by trimmed name, because the forms trim names, too. A wrong entry does not affect the others. */
export type SavedWorkflows = ReadonlyMap<string, Result<WorkflowSource>>;

/** Marks the name of a saved workflow, in place of an ID. */
export const SAVED_PREFIX = 'saved:';

const FIELD = "'Saved Workflows' in the credential";
const LOOKS_LIKE = 'It should look like {"Portrait": {"workflowId": "wf_8c1f0a", "definition": {…}}}.';

/** Reads the list of a credential, which may be JSON text, an object or nothing. */
export function readSavedWorkflows(source: unknown): Result<SavedWorkflows> {
	if (isEmptyDefinition(source)) return ok(new Map());
	const parsed = typeof source === 'string' ? parsePasted(source) : ok(source);
	const only = parsed.ok ? onlyOne(parsed.value) : undefined;
	// n8n's copy button copies the whole output of "Save", in which the list is text.
	const copied = isJsonObject(only) ? only.savedWorkflows : only;
	if (typeof copied === 'string') return readSavedWorkflows(copied);
	if (!parsed.ok || !isJsonObject(only)) {
		const reason = !parsed.ok && parsed.failure ? `: ${parsed.failure}` : '';
		return failInput(`${FIELD} is not a JSON object${reason}`, LOOKS_LIKE);
	}
	const entries = Map.groupBy(Object.entries(only), ([name]) => name.trim());
	return ok(new Map([...entries].map(([name, [first, ...others]]) => [name, readOnly(name, first, others)])));
}

/** Names that differ only in the blanks around them are the same in the forms. */
function readOnly(
	name: string,
	first: readonly [string, Json] | undefined,
	others: readonly unknown[],
): Result<WorkflowSource> {
	if (first && others.length === 0) return readEntry(...first);
	return failInput(
		`${FIELD} contains "${excerpt(name, 60)}" ${1 + others.length} times, apart from blanks around the name`,
		'Remove or rename all but one of them in the credential.',
	);
}

function readEntry(name: string, entry: Json): Result<WorkflowSource> {
	const workflowId = isJsonObject(entry) ? textOrNumber(entry.workflowId).trim() : '';
	if (!isJsonObject(entry) || !workflowId) {
		return failInput(`${FIELD} has no "workflowId" for "${excerpt(name, 60)}"`, LOOKS_LIKE);
	}
	const noId = `"workflowId" contains "${excerpt(workflowId, 40)}", which is not an ID`;
	const wrong =
		refuseRounded('workflowId', entry.workflowId)?.message ?? (canBeId(workflowId) ? undefined : noId);
	if (wrong !== undefined) {
		return failInput(
			`${inEntry(name)}: ${wrong}`,
			"In the credential, enter the ID that the platform's console shows, in quotation marks.",
		);
	}
	return ok({
		workflowId,
		definition: entry.definition ?? '',
		view: entry.parameterView ?? '',
		savedAs: name.trim(),
	});
}

/** Whether a text looks like an ID of the platform rather than a sentence or a workflow. */
export function canBeId(text: string): boolean {
	return !/[\s{}"<>]/.test(text);
}

/** The list as it is entered in the credential. */
export function savedWorkflowsText(saved: ReadonlyMap<string, WorkflowSource>): string {
	const entries = [...saved].map(([key, { workflowId, definition, view }]) => [
		key,
		{
			workflowId,
			...(isEmptyDefinition(definition) ? {} : { definition: asJson(definition) }),
			...(isEmptyDefinition(view) ? {} : { parameterView: asJson(view) }),
		},
	]);
	return JSON.stringify(Object.fromEntries(entries), null, 2);
}

/** Parses pasted JSON text, so that people can read the list. */
function asJson(source: unknown): unknown {
	const parsed = typeof source === 'string' ? parsePasted(source) : undefined;
	return parsed?.ok ? parsed.value : source;
}

/** @param chosen an ID, or the name of a saved workflow after {@link SAVED_PREFIX} */
export function findWorkflow(
	chosen: string,
	pasted: Pick<WorkflowSource, 'definition' | 'view'>,
	saved: () => Result<SavedWorkflows>,
): Result<WorkflowSource> {
	if (!chosen.startsWith(SAVED_PREFIX)) return ok({ workflowId: chosen, ...pasted });
	const list = saved();
	if (!list.ok) return list;
	const name = chosen.slice(SAVED_PREFIX.length).trim();
	const found = list.value.get(name);
	if (found) return found;
	const names = [...list.value.keys()].map((known) => excerpt(known, 40)).join(', ');
	return failInput(
		`The account has no saved workflow "${excerpt(name, 60)}"`,
		names
			? `Choose another one in 'Workflow'; the account has: ${excerpt(names, 400)}. Nothing was submitted for this item.`
			: "'Saved Workflows' in the credential is empty: fill it in, or choose the workflow by its ID. Nothing was submitted for this item.",
	);
}

/** Adds to a failure the name of the saved workflow that caused it. */
export function namingEntry<T>({ savedAs }: WorkflowSource, read: Result<T>): Result<T> {
	if (read.ok || savedAs === undefined) return read;
	return fail({
		...read.failure,
		message: `${inEntry(savedAs)}: ${read.failure.message}`,
		advice: `${read.failure.advice} 'Workflow' > 'Save' replaces what is saved under the name.`,
	});
}

const inEntry = (name: string) => `In the saved workflow "${excerpt(name, 60)}" of the account`;

/** Explains the first wrong entry of a list and names the others; `undefined` if none is wrong. */
export function whyListIsWrong(source: unknown): string | undefined {
	const list = readSavedWorkflows(source);
	if (!list.ok) return inSentences(list.failure);
	const failures = [...list.value].flatMap(([name, entry]) => {
		const read = entry.ok
			? namingEntry(entry.value, readKnowledge(entry.value.definition, entry.value.view))
			: entry;
		return read.ok ? [] : [{ name, failure: read.failure }];
	});
	const [first, ...others] = failures;
	if (!first) return undefined;
	const names = others.map(({ name }) => `"${excerpt(name, 40)}"`).join(', ');
	return inSentences(first.failure) + (names && ` Also correct: ${excerpt(names)}.`);
}

const inSentences = ({ message, advice }: Failure) => `${message}. ${advice}`;
