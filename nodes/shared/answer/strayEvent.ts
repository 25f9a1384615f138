import { errorWords } from '../errors/serviceMessage';
import { isPage } from '../files/fileType';
import type { StreamEvent } from '../http/sse';
import { isJsonObject, parseJson } from '../text/json';

/** Matches words that only keep a connection open, whatever time or number stands beside them. */
const KEEP_ALIVE =
	/^[^\p{L}]*(?:(?:\w+ )?(?:ping|pong|heart[-_ ]?beat|hb|keep[-_ ]?alive|noop|processing|waiting))[^\p{L}]*(?:T[\d:.]+(?:Z|[+-][\d:]+))?$/iu;
/** Longer text is no keep-alive, and a pattern that matches millions of characters overflows the stack. */
const LONGEST_KEEP_ALIVE_CHARS = 200;
/** A time alone, in seconds or milliseconds. A shorter number may be the code of an error. */
const TIME = /^\d{10,13}(?:\.\d+)?$/;

/**
 * Whether an event of a stream only keeps the connection open, such as `event: ping`, `data: heartbeat` or
 * `data: {"type":"ping"}`. What is neither this nor a part of an answer is the word of somebody on the way who failed:
 * an end of the stream without a finish reason is then no proof that the answer is complete.
 */
export function isKeepAlive({ name = '', data }: Pick<StreamEvent, 'name' | 'data'>): boolean {
	if (name === 'error') return false;
	const text = data.trim();
	if (text === '' || saysKeepAlive(name)) return true;
	const json = parseJson(text);
	if (Array.isArray(json)) return json.length === 0;
	if (!isJsonObject(json)) return saysKeepAlive(text);
	const keys = Object.keys(json);
	if (keys.length === 0) return true;
	return [json.type, json.event, json.status, json.object, keys.length === 1 ? keys[0] : ''].some(
		(word) => typeof word === 'string' && saysKeepAlive(word),
	);
}

function saysKeepAlive(words: string): boolean {
	return words.length <= LONGEST_KEEP_ALIVE_CHARS && (KEEP_ALIVE.test(words) || TIME.test(words));
}

/** What an event that is neither a part of an answer nor a keep-alive says; not redacted, and of any length. */
export function strayWords(data: string): string {
	const text = data.trim();
	return isPage(text) ? 'a web page' : errorWords(parseJson(text)) || text;
}
