import { sha256 } from '../shared/text/sha256';
import { fail, failInput, ok, type Result } from '../shared/errors/failure';
import { compileExpression, valueAt, wordOf, type Expression } from '../shared/form/expression';
import { excerpt, isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import { redactJson, type Redact } from '../shared/text/redact';
import { textOf } from '../shared/text/textOf';

/** An opaque JSON object. Its field names are not documented (§6.2), so the operator sets the paths. */
export type Frame = JsonObject;

/**
 * Parses an incoming frame and hides the token, which a platform may echo.
 * @returns the frame, or words that complete the phrase "a frame that is"
 */
export function readIncoming(text: string, { known }: Redact): Result<Frame, string> {
	const frame = parseJson(text);
	if (isJsonObject(frame)) return ok(redactJson(frame, known));
	return fail('not a JSON object, or is nested too deeply');
}

/** Where a frame has a value: JMESPath, as the operator entered it. */
export interface Path {
	readonly text: string;
	readonly at: Expression;
}

/** How many characters of a path a message quotes. */
const SHOWN_CHARS = 60;

/** @returns the path that was entered in a field; `undefined` if the field is empty */
export function readPath(label: string, entered: unknown): Result<Path | undefined> {
	const text = textOf(entered).trim();
	if (text === '') return ok(undefined);
	const at = compileExpression(text);
	if (at.ok) return ok({ text, at: at.value });
	return failInput(
		`'${label}' is not a valid path: "${excerpt(text, SHOWN_CHARS)}" (${at.failure})`,
		'Enter field names separated by dots, such as data.id or items[0].id. A name with a hyphen, a dot or another special character needs quotation marks: data."message-id".',
	);
}

/** The text at a path, for comparing IDs and event names; `undefined` without a path or a value. */
export function nameAt(path: Path | undefined, frame: Frame): string | undefined {
	return wordOf(valueAt(path?.at, frame)) || undefined;
}

const NAME = String.raw`(?:[A-Za-z_]\w*|"[^"\\]+")`;
const NAMES = new RegExp(String.raw`^${NAME}(?:\.${NAME})*$`);

/** @returns a copy of the frame with `value` at a path of field names; missing objects on the path are created */
export function withValueAt(frame: Frame, path: string, value: Json): Result<Frame> {
	const names = NAMES.test(path) ? (path.match(new RegExp(NAME, 'g')) ?? []) : [];
	const changed = put(
		frame,
		names.map((name) => name.replaceAll('"', '')),
		value,
	);
	if (changed) return ok(changed);
	return failInput(
		`The frame cannot hold an ID at "${excerpt(path, SHOWN_CHARS)}"`,
		'Enter field names separated by dots, such as id or data."message-id", or put the ID into the frame yourself.',
	);
}

function put(frame: Frame, [step, ...rest]: readonly string[], value: Json): Frame | undefined {
	if (step === undefined || step === '__proto__') return undefined;
	if (rest.length === 0) return { ...frame, [step]: value };
	const below = Object.hasOwn(frame, step) ? frame[step] : {};
	const changed = isJsonObject(below) ? put(below, rest, value) : undefined;
	return changed && { ...frame, [step]: changed };
}

export interface EventFilter {
	eventOf(frame: Frame): string | undefined;
	accepts(frame: Frame): boolean;
	/** Whether it accepts every frame, because no events are listed. */
	readonly isOpen: boolean;
}

/** @param list event names separated by commas or line breaks; empty to accept every frame */
export function createEventFilter(eventPath: unknown, list: string): Result<EventFilter> {
	const path = readPath('Event Path', eventPath);
	if (!path.ok) return path;
	const names = new Set(
		list
			.split(/[,\n]/)
			.map((name) => name.trim())
			.filter(Boolean),
	);
	if (names.size > 0 && !path.value) {
		return failInput(
			"Events are listed, but 'Event Path' is empty",
			'Enter the path at which a frame names its event, e.g. type.',
		);
	}
	const eventOf = (frame: Frame): string | undefined => nameAt(path.value, frame);
	return ok({
		eventOf,
		accepts: (frame) => names.size === 0 || names.has(eventOf(frame) ?? ''),
		isOpen: names.size === 0,
	});
}

/** n8n's column for deduplication keys holds 255 characters, and the ID is only a part of such a key. */
const LONGEST_STORED_ID_CHARS = 100;

/** @returns the ID, or its SHA-256 if it is too long to be stored, or contains a NUL, which PostgreSQL rejects */
export function shortId(id: string): string {
	return id.length <= LONGEST_STORED_ID_CHARS && !id.includes('\0') ? id : sha256(id, 'hex');
}

/**
 * Remembers the newest `limit` IDs with digests of their frames, so that memory stays bounded however long a trigger
 * lives.
 */
export class RecentIds {
	private readonly ids = new Map<string, string>();

	constructor(private readonly limit: number) {}

	/** The digest of the frame that had the ID; `undefined` if none had. */
	digestOf(id: string): string | undefined {
		return this.ids.get(shortId(id));
	}

	add(id: string, digest: string): void {
		// An ID that arrives again becomes the newest one.
		this.remove(id);
		this.ids.set(shortId(id), digest);
		const [oldest] = this.ids.keys();
		if (this.ids.size > this.limit && oldest !== undefined) this.ids.delete(oldest);
	}

	remove(id: string): void {
		this.ids.delete(shortId(id));
	}
}

/** Which frames are the reply to a request. */
export interface ReplyRule {
	/** The value that the reply repeats, and where; absent if replies name no ID. */
	readonly id?: { readonly at: Path; readonly value: string } | undefined;
	readonly filter: EventFilter;
	/** Whether the reply is complete with its first message; otherwise after silence. */
	readonly isOneMessage: boolean;
	/** How long no frame may come until no further message is expected. */
	readonly silenceMs: number;
}

/** Whether a frame belongs to the request. Without an ID every frame does, so such a request has a connection alone. */
export function belongs(frame: Frame, { id }: ReplyRule): boolean {
	return !id || nameAt(id.at, frame) === id.value;
}
