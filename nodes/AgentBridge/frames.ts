import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import { isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import { pathSteps, readPath } from '../shared/text/jsonPath';
import { redactJson, type Redact } from '../shared/text/redact';
import { shortId } from './identity';

/**
 * What the fields of a frame are called is not shown (§6.2), so a frame is an opaque JSON object here, and what is
 * read from it is named by paths that the operator sets.
 */
export type Frame = JsonObject;

/** A frame of this size is not a message any more; a few of them at once would fill the memory. */
const MAX_FRAME_CHARS = 16_000_000;

/**
 * Reads a frame that came, and hides the token in it: a platform may echo it.
 * @returns or else what the text is, to be put behind "a frame that is"
 */
export function readIncoming(text: string, { known }: Redact): Result<Frame, string> {
	if (text.length > MAX_FRAME_CHARS) return fail('larger than 16 million characters');
	const frame = parseJson(text);
	if (isJsonObject(frame)) return ok(redactJson(frame, known));
	return fail('not a JSON object, or is nested too deeply');
}

/** What is at a path, as the text that ids and event names are compared by. */
export function readName(frame: Frame, path: string): string | undefined {
	const value = readPath(frame, path);
	if (typeof value === 'string') return value === '' ? undefined : value;
	return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** A copy of the frame with `value` at a path; objects on the way are made. Never changes the given frame. */
export function withValueAt(frame: Frame, path: string, value: Json): Result<Frame> {
	const changed = put(frame, pathSteps(path), value);
	if (changed) return ok(changed);
	return fail(
		badInput(
			`The frame has no place for an ID at "${path}"`,
			'Enter a path of field names such as "id" or "data.id", or put the ID into the frame yourself.',
		),
	);
}

function put(frame: Frame, [step, ...rest]: readonly string[], value: Json): Frame | undefined {
	if (step === undefined || step === '__proto__') return undefined;
	if (rest.length === 0) return { ...frame, [step]: value };
	const below = Object.hasOwn(frame, step) ? frame[step] : {};
	const changed = isJsonObject(below) ? put(below, rest, value) : undefined;
	return changed && { ...frame, [step]: changed };
}

/** Picks frames by the event that they name. */
export interface EventFilter {
	/** The event of a frame, where it names one. */
	eventOf(frame: Frame): string | undefined;
	/** Whether the frame is one of those asked for; without a list all are. */
	takes(frame: Frame): boolean;
	readonly isOpen: boolean;
}

/** @param list event names, separated by commas or line breaks; empty: every frame */
export function createEventFilter(eventPath: string, list: string): Result<EventFilter> {
	const names = new Set(
		list
			.split(/[,\n]/)
			.map((name) => name.trim())
			.filter(Boolean),
	);
	if (names.size > 0 && pathSteps(eventPath).length === 0) {
		return fail(
			badInput(
				'The events to take are named, but not where a frame names its event',
				'Fill in "Event Path", e.g. type.',
			),
		);
	}
	const eventOf = (frame: Frame): string | undefined => readName(frame, eventPath);
	return ok({
		eventOf,
		takes: (frame) => names.size === 0 || names.has(eventOf(frame) ?? ''),
		isOpen: names.size === 0,
	});
}

/**
 * Remembers ids, the newest so many of them and long ones as their digest, so that memory stays bounded however long
 * a trigger lives.
 */
export interface Seen {
	has(id: string): boolean;
	add(id: string): void;
	remove(id: string): void;
	readonly size: number;
}

export function createSeen(limit: number): Seen {
	const ids = new Set<string>();
	return {
		has: (id) => ids.has(shortId(id)),
		add: (given) => {
			const id = shortId(given);
			// An id that comes again is among the newest once more.
			ids.delete(id);
			ids.add(id);
			if (ids.size <= limit) return;
			const [oldest] = ids;
			if (oldest !== undefined) ids.delete(oldest);
		},
		remove: (id) => void ids.delete(shortId(id)),
		get size() {
			return ids.size;
		},
	};
}

/** How the reply to a frame is recognised. */
export interface ReplyRule {
	/** Where a reply repeats the value that the sent frame has at its correlation path; empty: it need not. */
	readonly replyPath: string;
	readonly correlation: string | undefined;
	readonly filter: EventFilter;
}

/** Whether nothing says which frames belong to the sent one, so that any may. */
export function isUncorrelated({ replyPath }: ReplyRule): boolean {
	return pathSteps(replyPath).length === 0;
}

/** Whether a frame belongs to the conversation about the sent frame: it repeats its value, or nothing says what does. */
export function belongs(frame: Frame, rule: ReplyRule): boolean {
	return isUncorrelated(rule) || readName(frame, rule.replyPath) === rule.correlation;
}

/** Whether a frame is the one that was waited for. */
export function isReply(frame: Frame, rule: ReplyRule): boolean {
	return belongs(frame, rule) && rule.filter.takes(frame);
}
