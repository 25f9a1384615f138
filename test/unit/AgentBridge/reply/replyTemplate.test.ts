import fc from 'fast-check';

import {
	composeReply,
	readCorrelation,
	readReplySettings,
	type ReplySettings,
} from '../../../../nodes/AgentBridge/reply/replyTemplate';
import { readPath, type Path } from '../../../../nodes/AgentBridge/frames';
import { parseJson, isJsonObject, type JsonObject } from '../../../../nodes/shared/text/json';
import { redactor } from '../../../../nodes/shared/text/redact';
import { valueOf } from '../../results';

const redact = redactor(['wst_secret']);

const pathOf = (path: string): Path | undefined => valueOf(readPath('ID Path', path));
const settings = (given: Record<string, unknown>): ReplySettings =>
	valueOf(readReplySettings(given, pathOf('id')));

function frameOf(text: string): JsonObject {
	const frame = parseJson(text);
	if (!isJsonObject(frame)) throw new Error('no frame');
	return frame;
}

/** The reply's text, or the reason for none. */
function reply(given: Record<string, unknown>, item: unknown, came = '{"id":"f-1"}'): string {
	const how = settings(given);
	const frame = frameOf(came);
	const correlation = how.repeats && readCorrelation(came, frame, how.repeats);
	const made = composeReply(how, item, { frame, correlation }, redact);
	return made.ok ? made.value : made.failure;
}

test("puts the frame's ID where the local platform expects it by default", () => {
	expect(reply({}, { text: 'hi' })).toBe('{"type":"message","text":"hi","reply_to":"f-1"}');
});

test.each([
	['{"id":7}', '7'],
	['{"id":false}', 'false'],
	['{"id":"12345678901234567890"}', '"12345678901234567890"'],
	['{"id":12345678901234567890}', '12345678901234567890'],
	['{"id":-9007199254740993}', '-9007199254740993'],
])('repeats the ID of %s with its type and digits', (came, repeated) => {
	expect(reply({ template: '{"t":"$json.text"}' }, { text: 'x' }, came)).toBe(
		`{"t":"x","reply_to":${repeated}}`,
	);
});

test.each(['{}', '{"id":""}', '{"id":null}', '{"id":{"a":1}}'])('finds nothing to repeat in %s', (came) => {
	expect(reply({}, { text: 'x' }, came)).toBe(
		"the received frame has no text or number at the path in 'ID to Repeat'",
	);
});

test('puts the ID into an object from a placeholder, and refuses to put it into a list', () => {
	const given = { template: '{"data":"$json.data"}', replyPath: 'data.to' };
	expect(reply(given, { data: { a: 1 } })).toBe('{"data":{"a":1,"to":"f-1"}}');
	expect(reply(given, { data: [1] })).toBe("the reply cannot hold a value at the path in 'ID in Reply'");
});

test('reports items that cannot be written as JSON', () => {
	const circle: Record<string, unknown> = {};
	circle.self = circle;
	expect(reply({ template: '"$json"' }, circle)).toContain('cannot be written as JSON');
	expect(reply({ template: '"$json"' }, undefined)).toContain('cannot be written as JSON');
	expect(reply({ template: '{"d":"on $json.d"}' }, { d: new Date(0) })).toBe(
		'{"d":"on 1970-01-01T00:00:00.000Z","reply_to":"f-1"}',
	);
});

test.each([2 ** 53, -(2 ** 60), 1e21])('does not send %d, because n8n has rounded it', (n) => {
	expect(reply({ template: '{"a":"$json"}' }, { list: [{ n }] })).toContain(`the number ${n}`);
	expect(reply({ template: '{"n":"$json.n"}' }, { n: 0.5, big: n })).toBe('{"n":0.5,"reply_to":"f-1"}');
});

test("sends an item's value unchanged or not at all", () => {
	fc.assert(
		fc.property(fc.jsonValue(), fc.string({ minLength: 1 }), (value, id) => {
			const made = reply({ template: '{"t":1,"v":"$json.v"}' }, { v: value }, JSON.stringify({ id }));
			const parsed: unknown = made.startsWith('{') ? JSON.parse(made) : undefined;
			if (parsed !== undefined) {
				const plain = JSON.parse(JSON.stringify(value)) as unknown;
				// JMESPath does not tell null from nothing.
				expect(parsed).toEqual({ t: 1, ...(plain !== null && { v: plain }), reply_to: id });
			} else expect(made).toMatch(/n8n rounds|nothing at/);
		}),
	);
});

test.each([
	[
		'nothing to repeat',
		{},
		'',
		"'ID in Reply' is filled in, but nothing says where a frame holds the value to repeat",
	],
	[
		'no field name',
		{ template: { data: [] }, replyPath: 'data.0' },
		'id',
		"Enter an 'ID in Reply' of field names",
	],
])('names the field when it refuses an ID in the reply with %s', (_what, given, idPath, words) => {
	const read = readReplySettings(given, pathOf(idPath));
	const said = read.ok ? '' : `${read.failure.message}. ${read.failure.advice}`;
	expect(said).toContain(words);
});
