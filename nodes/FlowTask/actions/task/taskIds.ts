import type { IExecuteFunctions } from 'n8n-workflow';

import { readItem } from '../../../shared/errors/expressionError';
import { fail, failInput, ok, type Result } from '../../../shared/errors/failure';
import { parsePasted, refuseRounded } from '../../../shared/form/pastedJson';
import { excerpt } from '../../../shared/text/json';
import { textOrNumber } from '../../../shared/text/textOf';
import { LONGEST_ID_CHARS } from '../../api/taskInfo';

/**
 * Reads the "Task IDs" of an item: text (delimited by whitespace, commas or semicolons), an array, objects with a
 * `taskId`, or JSON of any of these.
 */
export function taskIdsOf(context: IExecuteFunctions, itemIndex: number): Result<string[]> {
	return readItem(() => readTaskIds(context.getNodeParameter('taskIds', itemIndex, '')));
}

function readTaskIds(value: unknown): Result<string[]> {
	const rounded = refuseRounded('Task IDs', value);
	if (rounded) return fail(rounded);
	const ids = [...new Set(collectIds(value))];
	const tooLong = ids.find((id) => id.length > LONGEST_ID_CHARS);
	if (tooLong !== undefined) {
		return failInput(
			`"Task IDs" contains "${excerpt(tooLong, 40)}", which is longer than ${LONGEST_ID_CHARS} characters`,
			'That is not a task ID. Separate several IDs by commas or line breaks.',
		);
	}
	if (ids.length > 0) return ok(ids);
	return failInput(
		'"Task IDs" is empty',
		'Enter a task ID, or an expression that returns one, e.g. {{ $json.taskId }}.',
	);
}

function collectIds(value: unknown): string[] {
	if (typeof value === 'number') return [textOrNumber(value)].filter(Boolean);
	// In an array, each string is one ID, even if it contains commas.
	if (Array.isArray(value)) {
		return value.flatMap((one: unknown) => (typeof one === 'string' ? one.trim() || [] : collectIds(one)));
	}
	if (typeof value === 'object' && value !== null && 'taskId' in value) return collectIds(value.taskId);
	if (typeof value !== 'string') return [];
	const text = value.trim();
	if (!/^[[{`]/.test(text)) return text.split(/[\s,;]+/).filter(Boolean);
	const pasted = parsePasted(text);
	// An array whose IDs lack quotation marks is accepted.
	return pasted.ok ? collectIds(pasted.value) : text.split(/[\s,;[\]"]+/).filter(Boolean);
}
