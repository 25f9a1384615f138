import { partsOf } from '../shared/chat/contentParts';
import {
	isJsonObject,
	jsonText,
	member,
	objectsIn,
	parseRounded,
	type JsonObject,
} from '../shared/text/json';

type Fetch = typeof fetch;

/**
 * Makes n8n's OpenAI client read parts of answers that it would otherwise drop. The only way to do so is the `fetch` in
 * its settings: in those of the model itself, and in the copy that it makes for tools.
 */
export function makeAnswersReadable(model: unknown, send: Fetch = fetch): void {
	const settings = [
		member(member(model, 'fields'), 'configuration'),
		member(member(model, 'completions'), 'clientConfig'),
	];
	for (const one of settings) {
		if (typeof one === 'object' && one !== null) Reflect.set(one, 'fetch', readableFetch(send));
	}
}

/**
 * A `fetch` whose chat answers (§4.5) are in the form that the client reads:
 * - each message and delta has a role, because without one in the first delta, the client drops reasoning, token counts
 *   and tool calls
 * - content that is an array of parts becomes text and `reasoning_content`
 * - a line `error: …` of a stream becomes an event, because the client skips fields that it does not know
 */
export function readableFetch(send: Fetch): Fetch {
	return async (input, init) => {
		const response = await send(input, init);
		const { ok, body, status, statusText, headers } = response;
		if (!ok || !body) return response;
		const asked = typeof init?.body === 'string' ? parseRounded(init.body) : undefined;
		const readable =
			isJsonObject(asked) && asked.stream === true
				? body.pipeThrough(readableLines())
				: readableJson(await response.text());
		return new Response(readable, { status, statusText, headers });
	};
}

function readableLines(): TransformStream<Uint8Array, Uint8Array> {
	const decoder = new TextDecoder();
	const encoder = new TextEncoder();
	/** The beginning of a line that has not ended yet. */
	let open = '';
	return new TransformStream({
		transform: (bytes, controller) => {
			const lines = decoder.decode(bytes, { stream: true }).split('\n');
			const last = lines.pop() ?? '';
			for (const line of lines) {
				controller.enqueue(encoder.encode(`${readableLine(open + line)}\n`));
				open = '';
			}
			open += last;
		},
		flush: (controller) => {
			controller.enqueue(encoder.encode(readableLine(open + decoder.decode())));
		},
	});
}

/** A line of a stream, changed if it contains data or an error. */
function readableLine(line: string): string {
	const [, field, value = ''] = /^(data|error):(.*)$/s.exec(line) ?? [];
	if (field === undefined) return line;
	if (field === 'data') return `data:${readableJson(value)}`;
	const error = parseRounded(value) ?? value.trim();
	// Between blank lines, because the previous event may not have ended, and this may be the last one.
	return `\ndata: ${jsonText({ error })}\n`;
}

/** JSON text with readable messages; other text is returned unchanged. */
function readableJson(text: string): string {
	const answer = parseRounded(text);
	if (!isJsonObject(answer)) return text;
	let isChanged = false;
	for (const { delta, message } of objectsIn(answer.choices)) {
		for (const one of objectsIn([delta, message])) isChanged = makeReadable(one) || isChanged;
	}
	return isChanged ? (jsonText(answer) ?? text) : text;
}

/** @returns whether anything had to be changed */
function makeReadable(message: JsonObject): boolean {
	const hasRole = typeof message.role === 'string' && message.role !== '';
	if (!hasRole) message.role = 'assistant';
	const { content } = message;
	if (typeof content !== 'object' || content === null) return !hasRole;
	const parts = partsOf(content);
	message.content = parts.content;
	if (parts.reasoning) message.reasoning_content ??= parts.reasoning;
	return true;
}
