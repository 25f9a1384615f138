import { createParser } from 'eventsource-parser';

import { parseJson } from '../text/json';
import { BodyEnded, type ByteStream } from './body';

/** One event of a stream, or a whole body that was not a stream. */
export interface StreamEvent {
	readonly name?: string | undefined;
	readonly data: string;
	/** Whether this is all that arrived of a body that was not an event stream. */
	readonly isWholeBody: boolean;
}

/** No real answer is this long; such a stream would never end. */
const MAX_STREAM_BYTES = 256 * 1024 * 1024;
/** The limit for one event, or for a body that is not a stream. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024;

/** The parser searches all of its input for line ends at each line, so its input is fed in small chunks. */
const FEED_CHARS = 4_096;

interface StreamReader {
	/** @returns the events that the text completed */
	push(more: string): readonly StreamEvent[];
	/** @returns the events that were incomplete when the body ended */
	end(): readonly StreamEvent[];
}

/** @param hasLines whether each line of a body that is not an event stream may be an event */
function createStreamReader(hasLines: boolean): StreamReader {
	let ready: StreamEvent[] = [];
	const parser = createParser({
		maxBufferSize: MAX_EVENT_CHARS,
		onEvent: ({ event, data }) => ready.push({ name: event, data, isWholeBody: false }),
		onError: ({ type, field, value = '', line = '' }) => {
			if (type === 'max-buffer-size-exceeded') throw tooLarge();
			// Some servers end a stream with a line "error: {…}", a field that the standard does not define.
			if (field === 'error') ready.push({ name: 'error', data: value, isWholeBody: false });
			// Others write the body of an error response into a stream that they have begun.
			if (field === '{"error"') ready.push({ name: undefined, data: line, isWholeBody: false });
		},
	});
	let form: Form = 'open';
	let mayBeLines = hasLines;
	let text = '';
	const push = (more: string): readonly StreamEvent[] => {
		text += more;
		if (form === 'open') {
			// Leading white space means nothing; if kept, it would be scanned again with every chunk.
			text = text.trimStart();
			form = formOf(text);
		}
		if (mayBeLines && form === 'document' && more.includes('\n')) {
			const end = text.indexOf('\n');
			// A single line may be the whole answer, so it waits until the next begins.
			if (text.slice(end).trim() === '') text = text.slice(0, end + 1);
			else {
				mayBeLines = false;
				// JSON whose first line is incomplete is one document.
				if (parseJson(text.slice(0, end)) !== undefined) form = 'lines';
			}
		}
		if (text.length > MAX_EVENT_CHARS) throw tooLarge();
		if (form === 'lines' && more.includes('\n')) {
			const end = text.lastIndexOf('\n') + 1;
			const lines = text.slice(0, end);
			text = text.slice(end);
			return eventsOfLines(lines);
		}
		if (form !== 'events') return [];
		for (let at = 0; at < text.length; at += FEED_CHARS) parser.feed(text.slice(at, at + FEED_CHARS));
		text = '';
		const events = ready;
		ready = [];
		return events;
	};
	return {
		push,
		end: () => {
			// Many servers leave out the empty line that ends the last event. An event without data, though, is dropped: it
			// was cut off, and its name alone could wrongly say that the stream is over.
			if (form === 'events') return push('\n\n').filter(({ data }) => data !== '');
			return form === 'lines' ? eventsOfLines(text) : [{ name: undefined, data: text, isWholeBody: true }];
		},
	};
}

/**
 * Reads a body as server-sent events, however it is split into chunks. A server may answer with one JSON document where
 * a stream was requested, or the other way round: the first character decides, because no line of an event stream
 * begins with a bracket or a quotation mark. Text without a line of an event stream is a document, too.
 *
 * Yields all events of a chunk together, so that a chunk costs one turn of the event loop. Ending the iteration early
 * closes the connection. If the body breaks off, what has arrived is yielded before the error is thrown, even half an
 * event, because the answer was paid for.
 *
 * @param hasLines whether each line is an event if a body is several lines of JSON
 * @throws the error that ends the body early
 */
export async function* readStream(
	body: ByteStream,
	hasLines = false,
): AsyncGenerator<readonly StreamEvent[], void, void> {
	const decoder = new TextDecoder();
	const reader = createStreamReader(hasLines);
	let bytes = 0;
	let brokenBy: Error | undefined;
	try {
		try {
			for await (const chunk of body) {
				bytes += chunk.byteLength;
				if (bytes > MAX_STREAM_BYTES) throw tooLarge();
				const events = reader.push(decoder.decode(chunk, { stream: true }));
				if (events.length > 0) yield events;
			}
			yield [...reader.push(decoder.decode()), ...reader.end()];
		} catch (error) {
			brokenBy = error instanceof Error ? error : new BodyEnded('ERR_BROKEN', String(error));
		}
		if (brokenBy) {
			yield leftIn(reader);
			throw brokenBy;
		}
	} finally {
		body.destroy();
	}
}

function leftIn(reader: StreamReader): readonly StreamEvent[] {
	try {
		return reader.end();
	} catch {
		// The reader gave up because the text is too long.
		return [];
	}
}

/** `open`: nothing of an event stream has come yet, so this may be plain text, such as a gateway's error. */
type Form = 'open' | 'events' | 'lines' | 'document';

/** The beginning of a line that only event streams have: a comment, a field of the standard, or `error`. */
const EVENT_LINE = /^(?::|(?:data|event|id|retry)[:\r\n]|error:)/m;
/** Plain text longer than this is no error message, but a stream that begins with fields of its own. */
const MOST_WORDS = 8_192;

/** @param text without leading white space */
function formOf(text: string): Form {
	if (/^[{[<"]/.test(text)) return 'document';
	return EVENT_LINE.test(text) || text.length > MOST_WORDS ? 'events' : 'open';
}

function eventsOfLines(lines: string): StreamEvent[] {
	return lines
		.split('\n')
		.filter((line) => line.trim() !== '')
		.map((data) => ({ name: undefined, data, isWholeBody: false }));
}

function tooLarge(): BodyEnded {
	return new BodyEnded('ERR_TOO_LARGE', 'the answer is too large');
}
