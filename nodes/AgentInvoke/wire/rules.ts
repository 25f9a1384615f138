import type { Json } from '../../shared/text/json';
import { fitsName, type StreamRule, type Wire } from './description';
import { isThere, textAt, valueAt } from '../../shared/form/expression';

/** The name that the standard for event streams gives to an event without one. */
export const UNNAMED = 'message';
/** The data with which many servers end a stream. It only looks like the beginning of JSON. */
const DONE = '[DONE]';

/** @param given the name in the event's `event:` line */
export function nameOf({ stream }: Wire, json: Json, given = ''): string {
	return textAt(stream.event, json) || given || UNNAMED;
}

/** The rule that applies to an event: the first that matches it. */
export function ruleFor({ stream }: Wire, name: string, data: string, json: Json): StreamRule | undefined {
	return stream.rules.find((rule) => fits(rule, name, data, json));
}

function fits(rule: StreamRule, name: string, data: string, json: Json): boolean {
	if (rule.data !== '' && data.trim() !== rule.data) return false;
	if (rule.on && !rule.on.some((pattern) => fitsName(name.toLowerCase(), pattern))) return false;
	return rule.when === undefined || isThere(valueAt(rule.when, json));
}

/**
 * Whether a single line is an event, although it may be a whole answer: a rule knows its name, or finds text, an end or a
 * failure in it. A rule that merely matches proves nothing, because it may match everything.
 * @param data the part of `json` that the expressions for text read
 */
export function marksEvent(wire: Wire, line: string, json: Json, data: Json): boolean {
	const named = textAt(wire.stream.event, json);
	const rule = ruleFor(wire, named || UNNAMED, line, json);
	if (!rule) return false;
	if ((named !== '' && namesEvents(rule)) || rule.end || rule.fail) return true;
	return [rule.whole, rule.replace, rule.delta].some((at) => textAt(at, data) !== '');
}

/** Whether a rule applies only to events of certain names. */
function namesEvents({ on }: StreamRule): boolean {
	return on?.every((parts) => parts.join('') !== '') === true;
}

/** Whether an event that should contain text contains plain words instead of JSON. */
export function isUnread(rule: StreamRule, json: Json): boolean {
	const hasText = (rule.delta ?? rule.whole) !== undefined;
	return !rule.end && namesEvents(rule) && hasText && typeof json === 'string';
}

/** Whether data begins like JSON, but is none. */
export function isBroken(data: string, parsed: Json | undefined): boolean {
	const text = data.trim();
	return parsed === undefined && ['[', '{'].includes(text.charAt(0)) && text !== DONE;
}
