import type { ILoadOptionsFunctions, ResourceMapperField, ResourceMapperFields } from 'n8n-workflow';

import { ok, type Failure } from '../../shared/errors/failure';
import { member, objectsIn } from '../../shared/text/json';
import { isEmptyDefinition, readDefinition } from '../../shared/workflow/definition';
import { readParameterView } from '../../shared/workflow/parameterView';
import { membersOf } from '../../shared/workflow/pasted';
import { namingEntry, type WorkflowSource } from '../../shared/workflow/savedWorkflows';
import { formFields, fieldOptions, fieldType, readFieldId, type FormField } from '../workflow/formFields';
import { countsOf, promptChoice } from '../workflow/inputRanking';
import type { PromptChoice } from '../workflow/promptChoice';
import { shownWorkflow } from './lists';

export async function getOverrideFields(this: ILoadOptionsFunctions): Promise<ResourceMapperFields> {
	const workflow = await shownWorkflow(this);
	const rows: unknown = this.getCurrentNodeParameter('overrides');
	if (!workflow.ok) return complaining(workflow.failure, keptRows(rows));
	return overrideFieldsOf(workflow.value, rows);
}

/**
 * The rows that the form offers. Never throws, because n8n hides errors but shows a notice in place of the rows.
 * @param rows the rows as the editor stores them. n8n deletes the value of a row that is no longer offered, so existing
 *   rows are offered again as long as the workflow cannot be read
 */
export function overrideFieldsOf(source: WorkflowSource, rows?: unknown): ResourceMapperFields {
	const kept = keptRows(rows);
	if (isEmptyDefinition(source.definition)) {
		if (kept.length > 0) return { fields: kept };
		return notice(source.savedAs === undefined ? NOTHING_PASTED : NOTHING_SAVED);
	}
	const read = namingEntry(source, readOffered(source));
	if (!read.ok) return complaining(read.failure, kept);
	const { fields, leftOut, found } = read.value;
	if (fields.length === 0) {
		return notice('This workflow has no input that can be set: all its inputs come from other nodes.');
	}
	const more = `${leftOut} more inputs: 'Expert Options' > 'Inputs by Node ID'`;
	return {
		fields: [
			// A required row is shown as soon as the form is loaded; in the resource mapper's mode "map" it needs no value.
			{ ...hintRow('found', found), required: true },
			...fields.map(asRow),
			...(leftOut > 0 ? [hintRow('more', more)] : []),
		],
	};
}

/** While any expression of the node fails, as one does without input data, n8n reloads nothing after a change. */
const NOTHING_PASTED =
	"To see the workflow's inputs here, choose a saved workflow, or paste the API-format export into 'Workflow Definition' above. If they do not appear, close this node and open it again.";

const NOTHING_SAVED =
	"This workflow was saved without its export, so its inputs are not known here. Save it again with the export ('Workflow' > 'Save'), or use 'Expert Options' > 'Inputs by Node ID'.";

function complaining(
	{ message, advice }: Failure,
	kept: readonly ResourceMapperField[],
): ResourceMapperFields {
	const complaint = `${message}. ${advice}`;
	if (kept.length === 0) return notice(complaint);
	return { fields: [hintRow('complaint', complaint), ...kept] };
}

function readOffered(source: WorkflowSource) {
	const definition = readDefinition(source.definition);
	if (!definition.ok) return definition;
	const view = readParameterView(source.view);
	if (!view.ok) return view;
	const { inputs } = countsOf(definition.value);
	return ok({
		...formFields(definition.value, view.value),
		found: foundNote(promptChoice(definition.value), inputs),
	});
}

/** At 1280 pixels, n8n cuts off a longer line. */
const LONGEST_LINE_CHARS = 56;

function foundNote(choice: PromptChoice, inputs: number): string {
	const prompt = promptNote(choice);
	const all = `${prompt} · ${count(inputs, 'input')}`;
	return all.length <= LONGEST_LINE_CHARS ? all : prompt;
}

/** Which inputs the field "Prompt" fills, or why none: `Prompt fills text (6) and (15)`. */
function promptNote({ filled, brief }: PromptChoice): string {
	if (filled.length === 0) return `Prompt fills nothing: ${brief}`;
	const names = [...Map.groupBy(filled, ({ input }) => input.name)].map(
		([name, inputs]) => `${name} ${inputs.map(({ node }) => `(${node.nodeId})`).join(' and ')}`,
	);
	return `Prompt fills ${names.join(', ')}`;
}

function count(number: number, noun: string): string {
	return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function asRow(field: FormField): ResourceMapperField {
	return { ...field, required: false, display: true, defaultMatch: false, canBeUsedToMatch: false };
}

/** A line of text among the rows. n8n shows no input for the type `jwt`, so nothing can be entered or sent. */
function hintRow(id: string, displayName: string): ResourceMapperField {
	return { ...asRow({ id, displayName, type: 'jwt' }), readOnly: true };
}

/** The rows that were offered before, if any of them has a value. */
function keptRows(rows: unknown): ResourceMapperField[] {
	if (membersOf(member(rows, 'value')).length === 0) return [];
	return objectsIn(member(rows, 'schema')).flatMap(({ id, displayName, type, options }) => {
		if (typeof id !== 'string' || typeof displayName !== 'string' || !readFieldId(id)) return [];
		const choices = fieldOptions(objectsIn(options).map(({ value }) => value));
		const field = { id, displayName, type: fieldType(type) };
		return [asRow(choices.length > 0 ? { ...field, options: choices } : field)];
	});
}

function notice(emptyFieldsNotice: string): ResourceMapperFields {
	return { fields: [], emptyFieldsNotice };
}
