import { isOnlyFixed } from '../../shared/effects/itemKey';
import { badInput, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { ROUNDED, roundedNumber } from '../../shared/form/pastedJson';
import { excerpt, isJsonObject, member, objectsIn } from '../../shared/text/json';
import type { WorkflowDefinition } from '../../shared/workflow/definition';
import { membersOf } from '../../shared/workflow/pasted';
import { isFragment } from '../graph/names';
import { NEGATIVE_TITLE, readFieldId, shortTitle } from './formFields';
import { promptChoice } from './inputRanking';
import {
	inputName,
	NOT_SUBMITTED,
	toJson,
	valueIn,
	withInputs,
	type Prompt,
	type PromptInput,
} from './prompt';

/** The rows of the form as n8n stores them, and their values for one item. */
export interface FormRows {
	/** Row ID -> the text that was entered, expressions included. */
	readonly entered: unknown;
	/** Row ID -> the resolved value, before n8n converts it to the row's type. */
	readonly given: unknown;
	/** What the editor stores for each row, such as its title and type. */
	readonly schema: unknown;
}

/**
 * Builds `prompt` from the rows that were added to the form. Rows of inputs that the workflow no longer has are left to
 * `checkOverrides`, which knows the workflow.
 * @param entered the rows with their expressions: a row that was left empty keeps the hosted value
 */
export function promptFromForm(value: unknown, entered: unknown): Result<Prompt> {
	const rows = toJson(value);
	if (rows === undefined && value !== undefined) {
		return failInput(
			"'Inputs to Change' contains a value that cannot be sent as JSON",
			'Check the expressions in its rows: a value is text, a number, true or false, an array or an object.',
		);
	}
	const untouched = new Set(membersOf(entered).flatMap(([id, text]) => (text === '' ? [id] : [])));
	const inputs: PromptInput[] = [];
	for (const [id, rowValue] of Object.entries(isJsonObject(rows) ? rows : {})) {
		if (untouched.has(id)) continue;
		const input = readFieldId(id);
		if (!input) {
			return failInput(
				`'Inputs to Change' contains a row "${excerpt(id, 60)}" that names no input`,
				'Remove this row and add it again from the list.',
			);
		}
		const { nodeId, parameter } = input;
		const rounded = roundedNumber(isJsonObject(value) ? value[id] : undefined);
		if (rounded !== undefined) {
			return failInput(
				`'Inputs to Change' cannot be sent: ${inputName(nodeId, parameter)} contains ${rounded}, which ${ROUNDED}`,
				`Enter a smaller number, or remove the row to keep the hosted value. ${NOT_SUBMITTED}`,
			);
		}
		if (rowValue !== null) inputs.push({ nodeId, parameter, value: rowValue });
	}
	return ok(withInputs({}, inputs));
}

/** Refuses rows without a value: n8n drops a missing value and reads an empty number as 0, and the task is paid for. */
export function refuseMissingRows({ entered, given, schema }: FormRows): Failure | undefined {
	const complaints = membersOf(entered).flatMap(([id, text]) => {
		const value = member(given, id);
		const isExpression = typeof text === 'string' && text.startsWith('=');
		const isBlank = !isNothing(value) && !String(value).trim() && rowIn(schema, id, 'type') === 'number';
		const title = rowTitle(schema, id);
		if (isBlank || (isExpression && isNothing(value)))
			return [`"${title}" has no value${isExpression ? ' (an expression returned nothing)' : ''}`];
		// What a picture must not show may well begin with an empty part.
		if (title.startsWith(NEGATIVE_TITLE) || !isLeftOver(value, text)) return [];
		return [`"${title}" is only "${excerpt(value, 80)}" (its expressions returned nothing)`];
	});
	if (complaints.length === 0) return undefined;
	return badInput(
		`'Inputs to Change' cannot be sent: ${complaints.join('; ')}`,
		`Correct the expression or enter a value, or remove the row to keep the hosted value. ${NOT_SUBMITTED}`,
	);
}

/** Whether only the beginning or the end of a text is left, because the expressions in it returned nothing. */
export function isLeftOver(text: unknown, entered: unknown): text is string {
	return typeof text === 'string' && isOnlyFixed(text, entered) && isFragment(text);
}

/** Sets the inputs that describe the image to the text of the field "Prompt"; rows may set all but the main one. */
export function withPromptText(
	prompt: Prompt,
	text: string,
	definition: WorkflowDefinition | undefined,
): Result<Prompt> {
	if (!definition) {
		return failInput(
			"'Prompt' cannot be sent: the node does not know which input of the workflow is its prompt",
			`Paste the API-format export into 'Workflow Definition', or save the workflow with it ('Workflow' > 'Save'). Without the export, clear 'Prompt' and enter its text under 'Expert Options' > 'Inputs by Node ID'. ${NOT_SUBMITTED}`,
		);
	}
	const { filled, between, why } = promptChoice(definition);
	const [target, ...others] = filled;
	if (!target) {
		const orName =
			between.length > 0
				? ', or put "prompt" into the title of its node in the engine\'s editor and export again'
				: '';
		return failInput(
			`'Prompt' cannot be sent: ${why}`,
			`Clear 'Prompt' and choose the input under 'Inputs to Change'${orName}. ${NOT_SUBMITTED}`,
		);
	}
	const { node, input } = target;
	if (valueIn(prompt, node.nodeId, input.name) !== undefined) {
		return failInput(
			`'Prompt' and another field or option both set ${inputName(node.nodeId, input.name)}`,
			`Clear one of them: 'Prompt', the row in 'Inputs to Change', or the option. ${NOT_SUBMITTED}`,
		);
	}
	const free = others.filter((one) => valueIn(prompt, one.node.nodeId, one.input.name) === undefined);
	const inputs = [target, ...free].map((one) => ({
		nodeId: one.node.nodeId,
		parameter: one.input.name,
		value: text,
	}));
	return ok(withInputs(prompt, inputs));
}

/** How messages name a row, whose ID the editor never shows. */
export function rowTitle(schema: unknown, id: string): string {
	const title = rowIn(schema, id, 'displayName');
	if (typeof title === 'string' && title.trim() && title !== id) return excerpt(shortTitle(title), 120);
	const input = readFieldId(id);
	return excerpt(input ? `${input.parameter} of node ${input.nodeId}` : id, 120);
}

export function rowIn(schema: unknown, id: string, key: string): unknown {
	return objectsIn(schema).find((row) => row.id === id)?.[key];
}

/** Whether a value is missing, or would be missing in JSON, such as NaN. */
function isNothing(value: unknown): boolean {
	return value === undefined || value === null || (typeof value === 'number' && !Number.isFinite(value));
}
