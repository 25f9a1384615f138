import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { fail, failInput, ok, type Result } from '../../../../shared/errors/failure';
import { readChoice } from '../../../../shared/form/options';
import { parsePasted } from '../../../../shared/form/pastedJson';
import { excerpt, member, objectsIn } from '../../../../shared/text/json';
import { textOf } from '../../../../shared/text/textOf';
import type { WorkflowKnowledge } from '../../../../shared/workflow/definition';
import { enteredText, filledText } from '../../enteredText';
import { promptFromFields, type OverrideField, type Prompt } from '../../../workflow/prompt';
import {
	promptFromForm,
	refuseMissingRows,
	withPromptText,
	withRowTitles,
	type FormRows,
} from '../../../workflow/promptForm';
import { promptFromJson } from '../../../workflow/promptJson';

export function readPrompt(
	context: IExecuteFunctions,
	itemIndex: number,
	workflowId: string,
	known: WorkflowKnowledge,
): Result<Prompt> {
	const mode: unknown = context.getNodeParameter('overridesMode', itemIndex, 'form');
	if (mode === 'json') return readJson(context, itemIndex, workflowId);
	if (mode !== 'fields') {
		const text = readPromptText(context, itemIndex);
		if (!text.ok) return text;
		const rows = readForm(context, itemIndex);
		return rows.ok && text.value ? withPromptText(rows.value, text.value, known.definition) : rows;
	}
	const fields: OverrideField[] = [];
	const rows = objectsIn(context.getNodeParameter('overrideFields.override', itemIndex, []));
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
	return filledText(
		'Prompt',
		context.getNodeParameter('promptText', itemIndex, ''),
		'Check that the expression returns text, and the cell that it reads. To keep the hosted prompt for all items, clear the field. Nothing was submitted for this item.',
	);
}

/** An empty field changes nothing, but an expression that returns nothing is a mistake. */
function readJson(context: IExecuteFunctions, itemIndex: number, workflowId: string): Result<Prompt> {
	const value: unknown = context.getNodeParameter('prompt', itemIndex, {});
	const entered: unknown = context.getNodeParameter('prompt', itemIndex, '', { rawExpressions: true });
	const isBlank = typeof value === 'string' && !value.trim();
	if (isBlank && typeof entered === 'string' && entered.startsWith('=')) {
		return failInput(
			"'Prompt (JSON)' is empty (its expression returned nothing)",
			'Correct the expression; for an item that changes nothing, let it return {}. Nothing was submitted for this item.',
		);
	}
	const prompt = promptFromJson(value, workflowId);
	if (prompt.ok || typeof value !== 'string' || !isBrokenByValue(value, entered)) return prompt;
	return fail({
		...prompt.failure,
		advice:
			"A quotation mark, a line break or a backslash in a value that {{ … }} inserts breaks the JSON. Set 'Change Inputs By' to Form and enter the text under 'Prompt', or write {{ JSON.stringify($json.prompt) }} without quotation marks around it. Nothing was submitted for this item.",
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
	try {
		// n8n converts the rows' values to their types, and throws if it cannot.
		return promptFromForm(context.getNodeParameter(name, itemIndex, {}), rows.entered);
	} catch (error) {
		const reason = error instanceof Error ? error.message : 'a row contains a value of the wrong type';
		const more = textOf(member(error, 'description'));
		const words = (more ? `${reason}: ${more}` : reason).replace(ROW_OF_N8N, '');
		return failInput(
			`'Inputs to Change' cannot be sent: ${excerpt(withRowTitles(words, rows), 400)}`,
			'Correct the value of this row. Nothing was submitted for this item.',
		);
	}
}

/** n8n counts items from 0, and says again in the title which one failed. */
const ROW_OF_N8N = / \[item \d+\]/g;

function readRow(row: IDataObject, number: number): Result<OverrideField> {
	const valueType = readChoice(
		`The 'Type' of row ${number} of 'Inputs to Change'`,
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
