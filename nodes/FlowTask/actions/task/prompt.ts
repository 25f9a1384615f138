import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { badInput, fail, ok, type Result } from '../../../shared/errors/failure';
import { excerpt } from '../../../shared/text/json';
import { promptFromFields, type OverrideField, type OverrideType, type Prompt } from '../../workflow/prompt';
import { promptFromForm, refuseMissingRows, withRowTitles, type FormRows } from '../../workflow/promptForm';
import { promptFromJson } from '../../workflow/promptJson';

const OVERRIDE_TYPES: ReadonlySet<string> = new Set(['auto', 'string', 'number', 'boolean', 'json']);

function isOverrideType(value: unknown): value is OverrideType {
	return typeof value === 'string' && OVERRIDE_TYPES.has(value);
}

/** Reads which inputs an item changes, in whichever way the operator says it. */
export function readPrompt(context: IExecuteFunctions, itemIndex: number): Result<Prompt> {
	switch (context.getNodeParameter('overridesMode', itemIndex, 'form')) {
		case 'json':
			return readJson(context, itemIndex);
		case 'fields':
			return promptFromFields(
				rowsOf(context.getNodeParameter('overrideFields.override', itemIndex, [])).map(readRow),
			);
		default:
			return readForm(context, itemIndex);
	}
}

/** A field that was left empty changes nothing; an expression that gives nothing was meant to. */
function readJson(context: IExecuteFunctions, itemIndex: number): Result<Prompt> {
	const value: unknown = context.getNodeParameter('prompt', itemIndex, {});
	const entered: unknown = context.getNodeParameter('prompt', itemIndex, '', { rawExpressions: true });
	const isBlank = typeof value === 'string' && !value.trim();
	if (isBlank && typeof entered === 'string' && entered.startsWith('=')) {
		return fail(
			badInput(
				'"Prompt (JSON)" is empty (its expression gave nothing)',
				'Correct the expression; where an item changes nothing, let it give {}. Nothing was submitted for this item.',
			),
		);
	}
	return promptFromJson(value, textOf(context.getNodeParameter('workflowId', itemIndex, '')));
}

function readForm(context: IExecuteFunctions, itemIndex: number): Result<Prompt> {
	const name = 'overrides.value';
	const rows: FormRows = {
		entered: context.getNodeParameter(name, itemIndex, {}, { rawExpressions: true }),
		given: context.getNodeParameter(name, itemIndex, {}, { skipValidation: true }),
		schema: context.getNodeParameter('overrides.schema', itemIndex, [], { rawExpressions: true }),
	};
	// Before any row is added the editor keeps the form so, and n8n cannot look through it.
	if (rows.entered === null) return ok({});
	const missing = refuseMissingRows(rows);
	return missing ? fail(missing) : readTypedRows(context, itemIndex, rows);
}

/** n8n converts the rows' values by their types, and complains by throwing. */
function readTypedRows(context: IExecuteFunctions, itemIndex: number, rows: FormRows): Result<Prompt> {
	try {
		return promptFromForm(context.getNodeParameter('overrides.value', itemIndex, {}));
	} catch (error) {
		const reason = error instanceof Error ? error.message : 'a row holds a value of another type';
		const more =
			error instanceof Error && 'description' in error && typeof error.description === 'string'
				? `: ${error.description}`
				: '';
		return fail(
			badInput(
				`"Inputs to Change" cannot be sent: ${excerpt(withRowTitles(reason + more, rows), 400)}`,
				'Correct the value of this row. Nothing was submitted for this item.',
			),
		);
	}
}

export function rowsOf(value: unknown): IDataObject[] {
	return Array.isArray(value)
		? value.filter((row): row is IDataObject => typeof row === 'object' && row !== null)
		: [];
}

function readRow(row: IDataObject): OverrideField {
	return {
		nodeId: textOf(row.nodeId),
		parameter: textOf(row.parameter),
		value: 'value' in row ? row.value : '',
		valueType: isOverrideType(row.valueType) ? row.valueType : 'auto',
	};
}

export function textOf(value: unknown): string {
	if (typeof value === 'string') return value.trim();
	return typeof value === 'number' ? String(value) : '';
}
