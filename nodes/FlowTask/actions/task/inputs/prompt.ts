import { validateFieldType, type IDataObject, type IExecuteFunctions } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../../../shared/errors/failure';
import { readChoice } from '../../../../shared/form/options';
import { parsePasted } from '../../../../shared/form/pastedJson';
import { excerpt, objectsIn } from '../../../../shared/text/json';
import type { WorkflowKnowledge } from '../../../../shared/workflow/definition';
import { membersOf } from '../../../../shared/workflow/pasted';
import { enteredText, filledText } from '../../enteredText';
import { fieldOptions, fieldType } from '../../../workflow/formFields';
import {
	inputName,
	inputsIn,
	NOT_SUBMITTED,
	promptFromFields,
	valueIn,
	withInputs,
	type OverrideField,
	type Prompt,
} from '../../../workflow/prompt';
import {
	isLeftOver,
	promptFromForm,
	refuseMissingRows,
	rowIn,
	rowTitle,
	withPromptText,
	type FormRows,
} from '../../../workflow/promptForm';
import { promptFromJson } from '../../../workflow/promptJson';

/** Joins what all fields and options set; an input that two of them set is refused. */
export function readPrompt(
	context: IExecuteFunctions,
	itemIndex: number,
	workflowId: string,
	known: WorkflowKnowledge,
): Result<Prompt> {
	const text = readPromptText(context, itemIndex);
	if (!text.ok) return text;
	const sources = {
		'Inputs to Change': readForm(context, itemIndex),
		'Inputs by Node ID': readFields(context, itemIndex),
		'Prompt (JSON)': readJson(context, itemIndex, workflowId),
	};
	let prompt: Prompt = {};
	for (const [label, read] of Object.entries(sources)) {
		if (!read.ok) return read;
		const inputs = inputsIn(read.value);
		const twice = inputs.find((one) => valueIn(prompt, one.nodeId, one.parameter) !== undefined);
		if (twice) {
			return failInput(
				`'${label}' sets ${inputName(twice.nodeId, twice.parameter)} a second time`,
				`Another field or option of the node also sets it: remove one of the two. ${NOT_SUBMITTED}`,
			);
		}
		prompt = withInputs(prompt, inputs);
	}
	return text.value ? withPromptText(prompt, text.value, known.definition) : ok(prompt);
}

function readFields(context: IExecuteFunctions, itemIndex: number): Result<Prompt> {
	const fields: OverrideField[] = [];
	const rows = objectsIn(context.getNodeParameter('options.expert.overrideFields.override', itemIndex, []));
	for (const [index, row] of rows.entries()) {
		const field = readRow(row, index + 1);
		if (!field.ok) return field;
		fields.push(field.value);
	}
	return promptFromFields(fields);
}

/** An empty field changes nothing, but an expression that returns nothing is a mistake. */
function readPromptText(context: IExecuteFunctions, itemIndex: number): Result<string> {
	const entered: unknown = context.getNodeParameter('promptText', itemIndex, '', { rawExpressions: true });
	if (entered === '' || entered === undefined) return ok('');
	const text: unknown = context.getNodeParameter('promptText', itemIndex, '');
	return isLeftOver(text, entered)
		? failInput(`'Prompt' is only "${excerpt(text, 80)}" for this item`, NO_TEXT)
		: filledText('Prompt', text, NO_TEXT);
}

const NO_TEXT = `Check that the expression returns text, and the cell that it reads. To keep the hosted prompt for all items, clear the field. ${NOT_SUBMITTED}`;

/** An empty field changes nothing, but an expression that returns nothing is a mistake. */
function readJson(context: IExecuteFunctions, itemIndex: number, workflowId: string): Result<Prompt> {
	const entered: unknown = context.getNodeParameter('options.expert.prompt', itemIndex, '', {
		rawExpressions: true,
	});
	if (entered === '') return ok({});
	const value: unknown = context.getNodeParameter('options.expert.prompt', itemIndex, '');
	const isBlank = typeof value === 'string' && !value.trim();
	if (isBlank && typeof entered === 'string' && entered.startsWith('=')) {
		return failInput(
			"'Prompt (JSON)' is empty (its expression returned nothing)",
			`Correct the expression; for an item that changes nothing, let it return {}. ${NOT_SUBMITTED}`,
		);
	}
	const prompt = promptFromJson(value, workflowId);
	if (prompt.ok || typeof value !== 'string' || !isBrokenByValue(value, entered)) return prompt;
	return fail({
		...prompt.failure,
		advice: `A quotation mark, a line break or a backslash in a value that {{ … }} inserts breaks the JSON. Enter the text under 'Prompt' instead, or write {{ JSON.stringify($json.prompt) }} without quotation marks around it. ${NOT_SUBMITTED}`,
	});
}

/** Whether JSON is broken only by the values that its expression inserts. */
function isBrokenByValue(text: string, entered: unknown): boolean {
	if (typeof entered !== 'string' || !entered.startsWith('=') || parsePasted(text).ok) return false;
	return parsePasted(entered.slice(1).replace(/\{\{.*?\}\}/gs, 'x')).ok;
}

function readForm(context: IExecuteFunctions, itemIndex: number): Result<Prompt> {
	const name = 'overrides.value';
	const rows: FormRows = {
		entered: context.getNodeParameter(name, itemIndex, {}, { rawExpressions: true }),
		given: context.getNodeParameter(name, itemIndex, {}, { skipValidation: true }),
		schema: context.getNodeParameter('overrides.schema', itemIndex, [], { rawExpressions: true }),
	};
	// The editor stores a form without rows as null, on which n8n's conversion of the rows fails.
	if (rows.entered === null) return ok({});
	const missing = refuseMissingRows(rows);
	if (missing) return fail(missing);
	const typed = typedRows(rows);
	return typed.ok ? promptFromForm(typed.value, rows.entered) : typed;
}

/** Converts values to the types of their rows, as n8n does; but 5 from a table chooses "5" of a list, which n8n refuses. */
function typedRows({ given, schema }: FormRows): Result<unknown> {
	const complaints: string[] = [];
	const typed = membersOf(given).map(([id, value]) => {
		const type = rowIn(schema, id, 'type');
		const valueOptions = fieldOptions(objectsIn(rowIn(schema, id, 'options')).map((one) => one.value));
		const listed = valueOptions.find((one) => String(one.value) === String(value));
		if (listed || type === undefined) return [id, listed ? listed.value : value] as const;
		const checked = validateFieldType('', value, fieldType(type), { valueOptions });
		if (checked.valid) return [id, checked.newValue] as const;
		complaints.push(`"${rowTitle(schema, id)}" ${excerpt(checked.errorMessage.replace("''", ''), 300)}`);
		return [id, undefined] as const;
	});
	if (complaints.length === 0) return ok(Object.fromEntries(typed));
	return failInput(
		`'Inputs to Change' cannot be sent: ${complaints.join('; ')}`,
		`Correct ${complaints.length === 1 ? 'the value of this row' : 'the values of these rows'}. ${NOT_SUBMITTED}`,
	);
}

function readRow(row: IDataObject, number: number): Result<OverrideField> {
	const valueType = readChoice(
		`The 'Type' of row ${number} of 'Inputs by Node ID'`,
		['auto', 'string', 'number', 'boolean', 'json'],
		row.valueType,
	);
	if (!valueType.ok) return valueType;
	return ok({
		nodeId: enteredText(row.nodeId),
		parameter: enteredText(row.parameter),
		value: 'value' in row ? row.value : '',
		valueType: valueType.value,
	});
}
