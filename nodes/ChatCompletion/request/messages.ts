import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { refuseLostDigits } from '../../shared/form/pastedJson';
import {
	excerpt,
	isJsonObject,
	jsonText,
	parseJson,
	whyNotJson,
	type Json,
	type JsonObject,
} from '../../shared/text/json';
import { textOf } from '../../shared/text/textOf';
import { whyUnpaired, type ToolResult } from './toolMessages';

export interface ImagePart {
	/** An HTTP URL, or a `data:` URL with the image. */
	readonly url: string;
	/** How closely the model looks; if empty, the model decides. */
	readonly detail: string;
}

export interface MessageRow {
	readonly role: string;
	/** `null` if an expression returned nothing, which is a mistake; empty text may be intended. */
	readonly content: string | null;
	readonly images: readonly ImagePart[];
	/** The assistant's tool calls, in the interface's shape. */
	readonly toolCalls?: readonly JsonObject[];
	/** Each result of a `tool` row is sent as a message of its own. */
	readonly results?: readonly ToolResult[];
}

const ROLES: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** Roles whose messages tell the model how to behave, but ask nothing. */
const INSTRUCTING: ReadonlySet<string> = new Set(['system', 'developer']);

/** Makes messages from the rows of the form (§4.5); rows that are empty for this item are left out. */
export function messagesFromRows(rows: readonly MessageRow[]): Result<Json[]> {
	const missing = rows.findIndex(({ content }) => content === null);
	if (missing >= 0) return fail(noText(missing, rows[missing]?.role ?? ''));
	const filled = rows.filter(isFilled);
	if (filled.length === 0) {
		return failInput(
			rows.length === 0 ? 'There is no message' : 'All messages are empty',
			'Add a message and enter its text. In a chat, use {{ $json.chatInput }} as an expression.',
		);
	}
	const wrong = rows.findIndex(({ role }) => !ROLES.has(role));
	if (wrong >= 0) return refuseMessages(`Message ${wrong + 1} ${badRole(rows[wrong]?.role)}`);
	// Without a question, the model would invent an answer, which is billed, and the item would look successful.
	if (filled.every(({ role }) => INSTRUCTING.has(role))) return fail(noQuestion(rows));
	const messages = filled.flatMap(messagesOf);
	const unpaired = whyUnpaired(messages);
	return unpaired ? failInput(unpaired, PAIRING) : ok(messages);
}

const PAIRING =
	'After an assistant row with "Tool Calls", add a Tool row for each of its calls, with the ID of the call as "Call ID". Nothing was sent for this item.';

function isFilled({ content, images, toolCalls = [], results = [] }: MessageRow): boolean {
	return Boolean(content?.trim()) || images.length + toolCalls.length + results.length > 0;
}

function noText(index: number, role: string): Failure {
	return badInput(
		`Message ${index + 1} (${excerpt(role, 40)}) has no text: its expression returned nothing for this item`,
		'Check the expression in "Content". If the text is optional, {{ $json.text ?? \'\' }} leaves the message out.',
	);
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

function messagesOf(row: MessageRow): JsonObject[] {
	const { role, toolCalls = [], results = [] } = row;
	if (role === 'tool') {
		return results.map(({ callId, content }) => ({ role, tool_call_id: callId, content }));
	}
	return [{ ...messageOf(row), ...(toolCalls.length > 0 && { tool_calls: [...toolCalls] }) }];
}

function messageOf({ role, content, images }: MessageRow): JsonObject {
	if (images.length === 0) return { role, content };
	const imageParts = images.map(({ url, detail }): JsonObject => ({
		type: 'image_url',
		image_url: { url, ...(detail && { detail }) },
	}));
	return { role, content: content?.trim() ? [{ type: 'text', text: content }, ...imageParts] : imageParts };
}

/** Reads messages entered as JSON: an array, a message, or a request body with `messages`. All fields are kept. */
export function messagesFromJson(value: unknown): Result<Json[]> {
	const parsed = typeof value === 'string' ? parseJson(value) : value;
	if (parsed === undefined) {
		const why = typeof value === 'string' ? `: ${whyNotJson(value)}` : '';
		return refuseMessages(`"Messages" cannot be read as JSON${why}`);
	}
	const unwrapped = isJsonObject(parsed) && 'messages' in parsed ? parsed.messages : parsed;
	const list: unknown = isJsonObject(unwrapped) ? [unwrapped] : unwrapped;
	if (!Array.isArray(list)) return refuseMessages('"Messages" is not an array of messages');
	if (list.length === 0) return refuseMessages('"Messages" is an empty array');
	for (const [index, message] of list.entries()) {
		const problem = whyNoMessage(message);
		if (problem) return refuseMessages(`Message ${index + 1} ${problem}`);
	}
	if (!list.some(asksSomething)) {
		return failInput(
			'There is no question: "Messages" has no text, image or tool call outside system messages',
			'Add a message with the role "user", or check the expressions in its content. Nothing was sent for this item.',
		);
	}
	const rounded = refuseLostDigits('Messages', value);
	if (rounded) return fail(rounded);
	// An expression may return a value that cannot be sent, e.g. one that contains itself.
	return jsonText(list) === undefined
		? refuseMessages('"Messages" cannot be written as JSON')
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
