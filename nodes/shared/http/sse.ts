import { parseJson } from '../text/json';
import { BodyEnded, type ByteStream } from './body';

/** One event of a stream, or a whole body that was not a stream. */
export interface StreamEvent {
	readonly name?: string | undefined;
	readonly data: string;
	/** Whether this is all that arrived of a body that was not an event stream. */
	readonly isWholeBody: boolean;
	/** Whether the body ended in the middle of this event's JSON. */
	readonly isCutOff?: boolean;
}

/** No real answer is this long; such a stream would never end. */
const MAX_STREAM_BYTES = 256 * 1024 * 1024;
/** The limit for one event, or for a body that is not a stream. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024;

/** The beginning of a line that only event streams have: a comment, a field of the standard, or `error`. */
const EVENT_LINE = /^(?::|(?:data|event|id|retry)[:\r\n]|error:)/m;
/** What a proxy adds that makes events of lines that are events already: `data: data: {…}`. */
const DOUBLED = /^(?:data: ?)+(?=\{|\[DONE\])/;
/** Plain text longer than this is no error message, but a stream that begins with fields of its own. */
const MOST_WORDS = 8_192;
/** A line that may be a vendor's own field, which the standard tells readers to ignore. */
const VENDOR_FIELD = /^[a-z][\w-]*(?::|$)/;

/**
 * Reads the lines of server-sent events. Lines that are no field of the standard are an event if they are no vendor's
 * fields of an event with data: servers and gateways write errors into a stream that they have begun.
 */
class EventParser {
	/** The line that has no end yet. */
	private line = '';
	/** A carriage return that may be half of a line end. Kept apart, because a look at a growing text would copy it. */
	private half = '';
	private name: string | undefined;
	private data: string | undefined;
	private strays = '';
	private ready: StreamEvent[] = [];

	/** @param hasLines whether a line of data that is complete JSON may be an event without an empty line after it */
	constructor(private readonly hasLines: boolean) {}

	push(more: string): readonly StreamEvent[] {
		const text = this.half + more;
		this.half = text.endsWith('\r') ? '\r' : '';
		const lines = (this.half ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
		for (const [index, line] of lines.entries()) {
			this.line += line;
			if (index === lines.length - 1) break;
			this.take(this.line);
			this.line = '';
		}
		if (this.line.length + (this.data?.length ?? 0) > MAX_EVENT_CHARS) throw tooLarge();
		return this.ready.splice(0);
	}

	private take(line: string): void {
		if (line === '') {
			this.dispatch();
			return;
		}
		const [field = ''] = /^[^:]{0,6}(?=:|$)/.exec(line) ?? ['other'];
		const value = line
			.slice(field.length + 1)
			.replace(/^ /, '')
			.replace(DOUBLED, '');
		if (field === 'data') {
			if (this.hasLines && isJsonLine(this.data) && /^(\{|\[DONE\])/.test(value)) this.dispatch();
			this.data = this.data === undefined ? value : `${this.data}\n${value}`;
		} else if (field === 'event') this.name = value || undefined;
		// A line "error: {…}", with which some servers end a stream.
		else if (field === 'error') this.ready.push(eventOf(value, field));
		else if (!['', 'id', 'retry'].includes(field)) this.takeStray(line);
	}

	private takeStray(line: string): void {
		if (this.strays.length + line.length > MOST_WORDS) return;
		this.strays += this.strays === '' ? line : `\n${line}`;
		// Told at once, because the server may keep the connection open.
		if (/^\s*\{/.test(this.strays) && line.includes('}') && parseJson(this.strays) !== undefined)
			this.tellStrays();
	}

	private tellStrays(): void {
		if (this.strays !== '') this.ready.push(eventOf(this.strays));
		this.strays = '';
	}

	private dispatch(): void {
		const { name, data } = this;
		if (data !== undefined && VENDOR_FIELD.test(this.strays)) this.strays = '';
		this.tellStrays();
		if (data !== undefined || name === 'error') this.ready.push(eventOf(data ?? '', name));
		this.name = this.data = undefined;
	}
}

function eventOf(data: string, name?: string): StreamEvent {
	return { name, data, isWholeBody: false };
}

function isHalf({ data }: StreamEvent): boolean {
	return data.trimStart().startsWith('{') && parseJson(data) === undefined;
}

/** Whether all data so far is one line of complete JSON; looks at no line twice. */
function isJsonLine(data = ''): boolean {
	return data.startsWith('{') && !data.includes('\n') && parseJson(data) !== undefined;
}

interface StreamReader {
	/** @returns the events that the text completed */
	push(more: string): readonly StreamEvent[];
	/** @returns the events that were incomplete when the body ended */
	end(): readonly StreamEvent[];
}

/** @param hasLines whether a line that is complete JSON may be an event */
function createStreamReader(hasLines: boolean): StreamReader {
	const parser = new EventParser(hasLines);
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
		const fed = text;
		text = '';
		return parser.push(fed);
	};
	return {
		push,
		end: () => {
			// An error may precede the events, although no line of JSON begins like a field.
			if (form === 'document' && /^\{[^]*^data:/m.test(text)) form = 'events';
			// Many servers leave out the empty line that ends the last event. An event without data, though, is dropped: it
			// was cut off, and its name alone could wrongly say that the stream is over.
			if (form === 'events') {
				const last = push('\n\n').filter(({ name, data }) => data !== '' || name === 'error');
				return last.map((event) => (isHalf(event) ? { ...event, isCutOff: true } : event));
			}
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
 * @param hasLines whether each line is an event if a body is several lines of JSON, or of data without empty lines
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

/** @param text without leading white space */
function formOf(text: string): Form {
	if (/^[{[<"]/.test(text)) return 'document';
	return EVENT_LINE.test(text) || text.length > MOST_WORDS ? 'events' : 'open';
}

function eventsOfLines(lines: string): StreamEvent[] {
	return lines
		.split('\n')
		.filter((line) => line.trim() !== '')
		.map((line) => eventOf(line));
}

function tooLarge(): BodyEnded {
	return new BodyEnded('ERR_TOO_LARGE', 'the answer is too large');
}
