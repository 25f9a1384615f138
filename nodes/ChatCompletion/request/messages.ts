import {
	badInput,
	fail,
	failInput,
	NOT_SENT,
	ok,
	type Failure,
	type Result,
} from '../../shared/errors/failure';
import { lossIn, refuseLossyJson } from '../../shared/form/pastedJson';
import {
	excerpt,
	isJsonObject,
	jsonText,
	parseJson,
	whyNotJson,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { textOf, textOrJson, textOrNumber } from '../../shared/text/textOf';

export interface MessageRow {
	readonly role: string;
	/** `null` if an expression returned nothing, which is a mistake; empty text may be intended. */
	readonly content: string | null;
	/** Parts of the message, in the interface's shape. */
	readonly images: readonly JsonObject[];
	/** The assistant's tool calls, in the interface's shape. */
	readonly toolCalls?: readonly JsonObject[];
	/** The messages that a `tool` row stands for: one for each result. */
	readonly results?: readonly JsonObject[];
}

const ROLES: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** Roles whose messages tell the model how to behave, but ask nothing. */
const INSTRUCTING: ReadonlySet<string> = new Set(['system', 'developer']);

/** Makes messages from the rows of the form (§4.5); rows that are empty for this item are left out. */
export function messagesFromRows(rows: readonly MessageRow[]): Result<Json[]> {
	for (const [index, { role, content }] of rows.entries()) {
		if (content !== null) continue;
		return failInput(
			`Message ${index + 1} (${excerpt(role, 40)}) has no text: its expression returned nothing for this item`,
			"Check the expression in 'Content'. If the text is optional, {{ $json.text ?? '' }} leaves the message out.",
		);
	}
	const filled = rows.filter(isFilled);
	if (filled.length === 0) {
		return failInput(
			rows.length === 0 ? 'There is no message' : 'All messages are empty',
			'Add a message and enter its text. In a chat, use {{ $json.chatInput }} as an expression.',
		);
	}
	const wrong = rows.findIndex(({ role }) => !ROLES.has(role));
	if (wrong >= 0) {
		const message = `Message ${wrong + 1} ${badRole(rows[wrong]?.role)}`;
		return failInput(message, "Check the expression in 'Role'.");
	}
	// Without a question, the model would invent an answer, which is billed, and the item would look successful.
	if (filled.every(({ role }) => INSTRUCTING.has(role))) return fail(noQuestion(rows));
	const messages = filled.flatMap(messagesOf);
	const unpaired = whyUnpaired(messages);
	return unpaired ? failInput(unpaired, PAIRING) : ok(messages);
}

const PAIRING = `After an assistant row with 'Tool Calls', add a Tool row for each of its calls, with the ID of the call as 'Call ID'. ${NOT_SENT}`;

function isFilled({ content, images, toolCalls = [], results = [] }: MessageRow): boolean {
	return Boolean(content?.trim()) || images.length + toolCalls.length + results.length > 0;
}

function noQuestion(rows: readonly MessageRow[]): Failure {
	const empty = rows.findIndex(({ role }) => !INSTRUCTING.has(role));
	const row = rows[empty];
	return badInput(
		row
			? `There is no question: message ${empty + 1} (${excerpt(row.role, 40)}) is empty for this item, so only the system message is left`
			: 'There is no question, only a system message',
		'Add a message with the role User and enter its text, or check the expression in it.',
	);
}

function messagesOf({ role, content, images, toolCalls = [], results = [] }: MessageRow): JsonObject[] {
	if (role === 'tool') return [...results];
	const parts = content?.trim() ? [{ type: 'text', text: content }, ...images] : [...images];
	const calls: JsonObject = toolCalls.length > 0 ? { tool_calls: [...toolCalls] } : {};
	return [{ role, content: images.length > 0 ? parts : content, ...calls }];
}

/** The label of the option that replaces the form's "Messages", which is then hidden. */
const JSON_OPTION = 'Messages (JSON)';

/** Reads messages entered as JSON: an array, a message, or a request body with `messages`. All fields are kept. */
export function messagesFromJson(value: unknown): Result<Json[]> {
	const parsed = typeof value === 'string' ? parseJson(value) : value;
	if (parsed === undefined) {
		const why = typeof value === 'string' ? `: ${whyNotJson(value)}` : '';
		return refuseMessages(`'${JSON_OPTION}' cannot be read as JSON${why}`);
	}
	const unwrapped = isJsonObject(parsed) && 'messages' in parsed ? parsed.messages : parsed;
	const list: unknown = isJsonObject(unwrapped) ? [unwrapped] : unwrapped;
	if (!Array.isArray(list)) return refuseMessages(`'${JSON_OPTION}' is not an array of messages`);
	if (list.length === 0) return refuseMessages(`'${JSON_OPTION}' is an empty array`);
	for (const [index, message] of list.entries()) {
		const problem = whyNoMessage(message);
		if (problem) return refuseMessages(`Message ${index + 1} ${problem}`);
	}
	if (!list.some(asksSomething)) {
		return failInput(
			`There is no question: '${JSON_OPTION}' has no text, image or tool call outside system messages`,
			`Add a message with the role "user", or check the expressions in its content. ${NOT_SENT}`,
		);
	}
	const rounded = refuseLossyJson(JSON_OPTION, value);
	if (rounded) return fail(rounded);
	// An expression may return a value that cannot be sent, e.g. one that contains itself.
	return jsonText(list) === undefined
		? refuseMessages(`'${JSON_OPTION}' cannot be written as JSON`)
		: ok(list.filter(isJsonObject));
}

function refuseMessages(message: string) {
	return failInput(
		message,
		'Messages are an array such as [{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hello" }].',
	);
}

function whyNoMessage(message: unknown): string {
	if (!isJsonObject(message)) return 'is not an object with "role" and "content"';
	const { role, content } = message;
	if (typeof role !== 'string' || !ROLES.has(role)) return badRole(role);
	if (typeof content === 'string' || Array.isArray(content)) return '';
	const speaksByTools = Array.isArray(message.tool_calls) || isJsonObject(message.function_call);
	if ((content === undefined || content === null) && speaksByTools) return '';
	return 'has no "content": it must be text, or an array of parts';
}

/** Whether a valid message asks something, instead of only telling the model how to behave. */
function asksSomething({ role, content, ...rest }: JsonObject): boolean {
	if (INSTRUCTING.has(textOf(role))) return false;
	if (typeof content === 'string') return content.trim() !== '' || Object.keys(rest).length > 0;
	return !Array.isArray(content) || content.length > 0;
}

function badRole(role: unknown): string {
	const shown = typeof role === 'string' ? ` "${excerpt(role, 40)}"` : '';
	return `has ${shown ? `the role${shown}` : 'no "role"'}: it must be one of ${[...ROLES].join(', ')}`;
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
	const loss = lossIn(value);
	if (loss) return fail(loss.clause);
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

/** The messages of a row with results: one, or several if "Call ID" is an array; none if the row has neither an ID nor a result. */
export function readToolResults(callId: unknown, content: unknown): Result<JsonObject[], string> {
	const isList = Array.isArray(callId);
	const ids: unknown[] = isList ? callId : [callId];
	const contents: unknown[] = isList && Array.isArray(content) ? content : [content];
	if (!isList && !textOrNumber(callId)) {
		return (content ?? '') === '' ? ok([]) : fail("has no 'Call ID'");
	}
	if (ids.length !== contents.length)
		return fail(`has ${ids.length} call IDs, but ${contents.length} results`);
	const results: JsonObject[] = [];
	for (const [index, id] of ids.entries()) {
		const text = textOrNumber(id);
		if (!text) return fail(`has an empty 'Call ID' at position ${index + 1}`);
		const given = contents[index] ?? undefined;
		if (given === undefined) return fail(`has no result for the call "${excerpt(text, ID_CHARS)}"`);
		results.push({ role: 'tool', tool_call_id: text, content: textOrJson(given) ?? '' });
	}
	return ok(results);
}

/**
 * Why calls and results do not match, as a sentence without its full stop; empty if they do. The interface accepts a
 * result only after its call, and no other message until all calls have results.
 */
function whyUnpaired(messages: readonly JsonObject[]): string {
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
