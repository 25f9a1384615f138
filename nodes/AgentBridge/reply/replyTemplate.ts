import { randomUUID } from 'crypto';

import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { compileExpression, valueAt } from '../../shared/form/expression';
import { longIntegers, refuseLossyJson } from '../../shared/form/pastedJson';
import { MAX_FRAME_CHARS } from '../../shared/http/webSocket';
import { excerpt, isJsonObject, jsonText, parseJson, parseRounded, type Json } from '../../shared/text/json';
import { JsonTemplates, type Placeholder } from '../../shared/text/jsonTemplate';
import { redactJson, type Redact } from '../../shared/text/redact';
import { textOf } from '../../shared/text/textOf';
import { readPath, withValueAt, type Frame, type Path } from '../frames';

export interface ReplySettings {
	readonly template: Json;
	/** Where an incoming frame has the value that its reply repeats; absent if replies repeat none. */
	readonly repeats?: Path | undefined;
	/** Where the reply repeats that value: field names. */
	readonly replyPath: string;
}

/** The value that tells the platform which frame a reply answers. */
export interface Correlation {
	readonly value: string | number | boolean;
	/** Whether `value` is text that stands for a number beyond 2^53. The reply then contains the number. */
	readonly isLongNumber: boolean;
}

export const REPLY_TEMPLATE = '{"type": "message", "text": "$json.text"}';

const TEMPLATES = new JsonTemplates({ hasPaths: true });
const KNOWN_PLACEHOLDERS: ReadonlySet<string> = new Set(['json', 'frame']);
/** How many characters of the operator's input a message quotes. */
const SHOWN_CHARS = 60;

/** @param given the fields of the option "Reply" */
export function readReplySettings(
	given: Readonly<Record<string, unknown>>,
	idPath: Path | undefined,
): Result<ReplySettings> {
	const template = readTemplate(given.template ?? REPLY_TEMPLATE);
	if (!template.ok) return template;
	const replyPath = textOf(given.replyPath ?? 'reply_to').trim();
	if (replyPath === '') return ok({ template: template.value, replyPath });
	const entered = readPath('ID to Repeat', given.correlationPath);
	if (!entered.ok) return entered;
	const repeats = entered.value ?? idPath;
	if (!repeats) {
		return failInput(
			"'ID in Reply' is filled in, but nothing says where a frame holds the value to repeat",
			"Fill in 'ID to Repeat' in the option 'Reply', or 'ID Path'. If your platform does not correlate frames, clear 'ID in Reply'.",
		);
	}
	// A placeholder may stand for an object that contains the path.
	const example = TEMPLATES.fill(template.value, () => ({}));
	if (isJsonObject(example) && withValueAt(example, replyPath, '').ok) {
		return ok({ template: template.value, repeats, replyPath });
	}
	return failInput(
		`'Reply Frame' cannot hold a value at "${excerpt(replyPath, SHOWN_CHARS)}"`,
		'Enter an \'ID in Reply\' of field names, such as reply_to or data."reply-to".',
	);
}

function readTemplate(entered: unknown): Result<Json> {
	const template =
		typeof entered === 'string' ? parseJson(entered) : (parseJson(jsonText(entered) ?? '') ?? '');
	const isFrame = isJsonObject(template) ? Object.keys(template).length > 0 : isPlaceholder(template);
	if (template === undefined || !isFrame) {
		return failInput(
			"'Reply Frame' is not a JSON object",
			`Enter the frame that your platform expects, with placeholders for the values of the last node's item, e.g. ${REPLY_TEMPLATE}`,
		);
	}
	const lost = refuseLossyJson('Reply Frame', entered);
	if (lost) return fail(lost);
	const unknown = TEMPLATES.placeholdersIn(template).find(
		({ name, path }) => !KNOWN_PLACEHOLDERS.has(name) || (path !== '' && !compileExpression(path).ok),
	);
	if (!unknown) return ok(template);
	return failInput(
		`'Reply Frame' has an unknown placeholder: ${excerpt(unknown.written, SHOWN_CHARS)}`,
		"Use $json for the last node's item, $json.path for a value in it, or $frame.path for a value in the received frame. Write $$ for a dollar sign.",
	);
}

/** Whether the template is a string with a placeholder, such as "$json", which makes the whole item the frame. */
function isPlaceholder(template: Json | undefined): boolean {
	return typeof template === 'string' && TEMPLATES.placeholdersIn(template).length > 0;
}

/**
 * The value at `path`, which the reply repeats.
 * @param text the frame as received: in `frame`, a number beyond 2^53 is already text
 */
export function readCorrelation(text: string, frame: Frame, { at }: Path): Correlation | undefined {
	const value = valueAt(at, frame);
	if (typeof value === 'number' || typeof value === 'boolean') return { value, isLongNumber: false };
	if (typeof value !== 'string' || value === '') return undefined;
	const mayBeNumber = /^-?\d{16,}$/.test(value);
	const isLongNumber = mayBeNumber && typeof valueAt(at, parseRounded(text) ?? null) === 'number';
	return { value, isLongNumber };
}

/**
 * @param item an item of the last node's output
 * @param received the frame that the item replies to
 * @returns the text of the reply, or a clause that says why there is none
 */
export function composeReply(
	{ template, replyPath }: ReplySettings,
	item: unknown,
	{ frame, correlation }: { readonly frame: Frame; readonly correlation: Correlation | undefined },
	{ known }: Redact,
): Result<string, string> {
	const json = parseRounded(jsonText(item) ?? '');
	if (json === undefined) return fail("the last node's item cannot be written as JSON");
	const wanted = TEMPLATES.placeholdersIn(template).filter(({ name }) => name === 'json');
	const lookup = ({ name, path }: Placeholder): Json | undefined => {
		const from = name === 'json' ? json : frame;
		if (path === '') return from;
		const at = compileExpression(path);
		return at.ok ? valueAt(at.value, from) : undefined;
	};
	if (wanted.length > 0 && wanted.every((placeholder) => lookup(placeholder) === undefined)) {
		const names = excerpt(wanted.map(({ written }) => written).join(', '), SHOWN_CHARS);
		return fail(`the last node's item has nothing at ${names}`);
	}
	const filled = TEMPLATES.fill(template, lookup);
	if (!isJsonObject(filled)) return fail("'Reply Frame', filled in for the item, is not a JSON object");
	const [rounded] = longIntegers(jsonText(filled) ?? '');
	if (rounded !== undefined) {
		return fail(`the reply contains the number ${rounded}, which n8n rounds; pass it on as text`);
	}
	return writeReply(redactJson(filled, known), replyPath, correlation);
}

function writeReply(
	filled: Frame,
	replyPath: string,
	correlation: Correlation | undefined,
): Result<string, string> {
	if (replyPath === '') return checkText(jsonText(filled));
	if (!correlation) return fail("the received frame has no text or number at the path in 'ID to Repeat'");
	const { value, isLongNumber } = correlation;
	// JSON.stringify cannot write a number beyond 2^53, so a unique placeholder is replaced afterwards.
	const holder = isLongNumber ? randomUUID() : value;
	const correlated = withValueAt(filled, replyPath, holder);
	if (!correlated.ok) return fail("the reply cannot hold a value at the path in 'ID in Reply'");
	const text = jsonText(correlated.value);
	return checkText(isLongNumber ? text?.replace(`"${holder}"`, () => String(value)) : text);
}

function checkText(text: string | undefined): Result<string, string> {
	if (text === undefined) return fail('the reply cannot be written as JSON');
	return text.length > MAX_FRAME_CHARS ? fail('the reply is larger than 16 million characters') : ok(text);
}
