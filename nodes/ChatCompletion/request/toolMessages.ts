import { fail, ok, type Result } from '../../shared/errors/failure';
import { lostDigits } from '../../shared/form/pastedJson';
import { excerpt, isJsonObject, jsonText, parseJson, type JsonObject } from '../../shared/text/json';
import { textOrJson, textOrNumber } from '../../shared/text/textOf';

export interface ToolResult {
	readonly callId: string;
	readonly content: string;
}

const ID_CHARS = 80;

/**
 * Reads tool calls in the shape of this node's output or in the interface's.
 * @returns the calls in the interface's shape, or a clause that says what is wrong with them
 */
export function readToolCalls(value: unknown): Result<JsonObject[], string> {
	if ((value ?? '') === '') return ok([]);
	const parsed = typeof value === 'string' ? parseJson(value) : value;
	const list: unknown = isJsonObject(parsed) ? [parsed] : parsed;
	if (!Array.isArray(list)) return fail('is not an array of tool calls');
	const lost = lostDigits(value);
	if (lost !== undefined)
		return fail(`contains the number ${excerpt(lost, ID_CHARS)}, which would lose digits`);
	const calls: JsonObject[] = [];
	for (const [index, one] of list.entries()) {
		const inner: unknown = isJsonObject(one) && isJsonObject(one.function) ? one.function : one;
		if (!isJsonObject(one) || !isJsonObject(inner) || typeof inner.name !== 'string' || !inner.name) {
			return fail(`has no tool name in call ${index + 1}`);
		}
		const id = textOrNumber(one.id);
		if (!id) return fail(`has no "id" in call ${index + 1}, so no result can refer to it`);
		const { name, arguments: given = {} } = inner;
		const text = typeof given === 'string' ? given : (jsonText(given) ?? '{}');
		calls.push({ id, type: 'function', function: { name, arguments: text } });
	}
	return ok(calls);
}

/** The results in a row: one, or several if "Call ID" is an array; none if the row has neither an ID nor a result. */
export function readToolResults(callId: unknown, content: unknown): Result<ToolResult[], string> {
	const isList = Array.isArray(callId);
	const ids: unknown[] = isList ? callId : [callId];
	const contents: unknown[] = isList && Array.isArray(content) ? content : [content];
	if (!isList && !textOrNumber(callId)) {
		return (content ?? '') === '' ? ok([]) : fail('has no "Call ID"');
	}
	if (ids.length !== contents.length)
		return fail(`has ${ids.length} call IDs, but ${contents.length} results`);
	const results: ToolResult[] = [];
	for (const [index, id] of ids.entries()) {
		const text = textOrNumber(id);
		if (!text) return fail(`has an empty "Call ID" at position ${index + 1}`);
		const given = contents[index] ?? undefined;
		if (given === undefined) return fail(`has no result for the call "${excerpt(text, ID_CHARS)}"`);
		results.push({ callId: text, content: textOrJson(given) ?? '' });
	}
	return ok(results);
}

/**
 * Why calls and results do not match, as a sentence without its full stop; empty if they do. The interface accepts a
 * result only after its call, and no other message until all calls have results.
 */
export function whyUnpaired(messages: readonly JsonObject[]): string {
	let open = new Set<string>();
	for (const { role, tool_calls: calls, tool_call_id: id } of messages) {
		if (role === 'tool') {
			const callId = textOrNumber(id);
			if (open.delete(callId)) continue;
			return `A tool message answers the call "${excerpt(callId, ID_CHARS)}", which no assistant message before it made, or which has a result already`;
		}
		if (open.size > 0) break;
		const made = Array.isArray(calls) ? calls.filter(isJsonObject) : [];
		open = new Set(made.map((call) => textOrNumber(call.id)));
	}
	const [missing] = open;
	return missing === undefined ? '' : `The tool call "${excerpt(missing, ID_CHARS)}" has no result after it`;
}
