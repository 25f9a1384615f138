import { sha256 } from '../shared/text/sha256';
import { fail, failInput, ok, type Result } from '../shared/errors/failure';
import { isJsonObject, parseJson, type Json, type JsonObject } from '../shared/text/json';
import { pathSteps, readPath } from '../shared/text/jsonPath';
import { redactJson, type Redact } from '../shared/text/redact';

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

/** The text at a path, for comparing IDs and event names. */
export function readName(frame: Frame, path: string): string | undefined {
	const value = readPath(frame, path);
	if (typeof value === 'string') return value === '' ? undefined : value;
	return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** @returns a copy of the frame with `value` at a path; missing objects on the path are created */
export function withValueAt(frame: Frame, path: string, value: Json): Result<Frame> {
	const changed = put(frame, pathSteps(path), value);
	if (changed) return ok(changed);
	return failInput(
		`The frame cannot hold an ID at "${path}"`,
		'Enter a path of field names such as "id" or "data.id", or put the ID into the frame yourself.',
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
export function createEventFilter(eventPath: string, list: string): Result<EventFilter> {
	const names = new Set(
		list
			.split(/[,\n]/)
			.map((name) => name.trim())
			.filter(Boolean),
	);
	if (names.size > 0 && pathSteps(eventPath).length === 0) {
		return failInput(
			'Events are listed, but "Event Path" is empty',
			'Enter the path at which a frame names its event, e.g. type.',
		);
	}
	const eventOf = (frame: Frame): string | undefined => readName(frame, eventPath);
	return ok({
		eventOf,
		accepts: (frame) => names.size === 0 || names.has(eventOf(frame) ?? ''),
		isOpen: names.size === 0,
	});
}

/** n8n's column for deduplication keys holds 255 characters, and the ID is only a part of such a key. */
const LONGEST_ID_CHARS = 100;

/** @returns the ID, or its SHA-256 if it is too long to be stored */
export function shortId(id: string): string {
	return id.length <= LONGEST_ID_CHARS ? id : sha256(id, 'hex');
}

/** Remembers the newest `limit` IDs, so that memory stays bounded however long a trigger lives. */
export class RecentIds {
	private readonly ids = new Set<string>();

	constructor(private readonly limit: number) {}

	has(id: string): boolean {
		return this.ids.has(shortId(id));
	}

	add(id: string): void {
		// An ID that arrives again becomes the newest one.
		this.remove(id);
		this.ids.add(shortId(id));
		const [oldest] = this.ids;
		if (this.ids.size > this.limit && oldest !== undefined) this.ids.delete(oldest);
	}

	remove(id: string): void {
		this.ids.delete(shortId(id));
	}
}

export interface ReplyRule {
	/** Where a reply repeats the correlation value; empty if replies are not correlated. */
	readonly replyPath: string;
	/** The value at the sent frame's correlation path. */
	readonly correlation: string | undefined;
	readonly filter: EventFilter;
}

/** Whether replies do not say which request they belong to. */
export function isUncorrelated({ replyPath }: ReplyRule): boolean {
	return pathSteps(replyPath).length === 0;
}

/** Whether a frame belongs to the request: it repeats the correlation value, or replies are not correlated. */
export function belongs(frame: Frame, rule: ReplyRule): boolean {
	return isUncorrelated(rule) || readName(frame, rule.replyPath) === rule.correlation;
}
