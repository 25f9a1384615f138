import { readdirSync, readFileSync } from 'node:fs';
import { join, parse } from 'node:path';

import { STANDARD_WIRE } from '../../../../credentials/standardWire';
import { wireRequest } from '../../../../nodes/AgentInvoke/wire/request';
import { readWire } from '../../../../nodes/AgentInvoke/wire/description';
import { compileExpression, valueAt } from '../../../../nodes/shared/form/expression';
import { dialectCases } from '../../../nodes/AgentInvoke/dialects/dialectCases';
import { valueOf } from '../../results';
import { wireAsShipped, wireOf, wireText } from './wires';

const DOCS = join(__dirname, '../../../../docs');
const NAMES = readdirSync(join(DOCS, 'wires')).flatMap((file) =>
	file.endsWith('.json') ? [parse(file).name] : [],
);
const FOREIGN = NAMES.filter((name) => name !== 'standard');
const PAGE = readFileSync(join(DOCS, 'deployments.md'), 'utf8');

test.each(NAMES)(
	'the description "%s" can be read, and has a short page that says what to replace',
	(name) => {
		expect(readWire(wireText(name))).toMatchObject({ ok: true });
		expect(PAGE).toContain(`(wires/${name}.md)`);
		const page = readFileSync(join(DOCS, 'wires', `${name}.md`), 'utf8');
		expect(page).toContain(`(${name}.json)`);
		expect(page.trimEnd().split('\n').length).toBeLessThanOrEqual(25);
		const replaced = (text: string) => [...new Set(text.match(/YOUR-[A-Z-]+/g))].sort();
		expect(replaced(page)).toEqual(replaced(wireAsShipped(name)));
		for (const field of ['Wire', 'Base URL', 'Invoke Path', 'Agent Token']) expect(page).toContain(field);
	},
);

/** Checked by readyWires.test.ts against answers that were recorded from the products. */
const RECORDED: ReadonlySet<string> = new Set(['a2a-1', 'adk', 'mastra']);

test('every other description has a stand-in', () => {
	expect(dialectCases.map(({ description }) => description)).toEqual(
		expect.arrayContaining(FOREIGN.filter((name) => !RECORDED.has(name))),
	);
});

test.each(FOREIGN)('"%s" differs from the standard in at most 14 entries', (name) => {
	const standard = entriesOf(wireText('standard'));
	const own = entriesOf(wireText(name));
	const others = [...own].filter(([entry, value]) => standard.get(entry) !== value);
	expect([...own.keys()]).toEqual([...standard.keys()]);
	expect(others.length).toBeLessThanOrEqual(14);
});

test.each([
	['coze', '"request.message" still contains "YOUR-BOT-ID"'],
	['responses', '"request.message" still contains "YOUR-MODEL"'],
	['langgraph', '"request.message" still contains "YOUR-ASSISTANT"'],
	['mastra', '"request.path" still contains "YOUR-AGENT"'],
	['adk', '"request.open.path" still contains "YOUR-APP"'],
])('refuses "%s" until it is filled in', (name, complaint) => {
	const read = readWire(wireAsShipped(name));
	expect(read.ok ? '' : read.failure).toBe(`${complaint}. Replace it with your own value.`);
});

test.each(NAMES)('no rule of "%s" is there twice, because only the first would apply', (name) => {
	const { stream } = JSON.parse(wireText(name)) as { stream: { rules: object[] } };
	const rules = stream.rules.map((rule) => JSON.stringify(rule));
	expect(rules).toEqual([...new Set(rules)]);
});

function entriesOf(text: string): Map<string, string> {
	const sections = Object.entries<Record<string, unknown>>(JSON.parse(text));
	return new Map(
		sections.flatMap(([section, entries]) =>
			Object.entries(entries).map(([name, value]) => [`${section}.${name}`, JSON.stringify(value)] as const),
		),
	);
}

test('the words of a choice may be quoted', () => {
	const message = { m: '$message', s: '$stream("a", "b")' };
	expect(readWire(JSON.stringify({ ...MINIMAL, request: { message } }))).toMatchObject({ ok: true });
});

test('the standard is the default of the credential', () => {
	expect(JSON.parse(wireText('standard'))).toEqual(JSON.parse(STANDARD_WIRE));
});

const MINIMAL = { request: { message: { m: '$message' } }, answer: { text: 'a' } };

test.each([
	['{', 'The description is not a JSON object.'],
	[{ ...MINIMAL, anwser: {} }, '"anwser" is not known'],
	[{ ...MINIMAL, answer: {} }, '"answer.text" is missing'],
	[{ answer: MINIMAL.answer }, '"request.message" is missing'],
	[{ ...MINIMAL, answer: { text: 'a[' } }, '"answer.text" ("a[") must be a JMESPath expression'],
	[{ ...MINIMAL, answer: { text: 'a\\b' } }, 'it contains a backslash'],
	[{ ...MINIMAL, answer: { text: 'a.constructor' } }, 'the name "constructor" is not allowed in it'],
	[{ ...MINIMAL, answer: { text: 'a."__proto__"' } }, 'the name "__proto__" is not allowed in it'],
	[{ ...MINIMAL, request: { message: {} } }, '"request.message" must contain "$message"'],
	[{ ...MINIMAL, request: { message: { m: '$message', f: '$fiels' } } }, 'contains "$fiels"'],
	[
		{ ...MINIMAL, request: { message: { m: '$message', s: '$stream(a)', t: ', b)' } } },
		'contains an incomplete "$stream(…)"',
	],
	[
		{ ...MINIMAL, request: { ...MINIMAL.request, headers: { Authorization: 'x' } } },
		'which belongs in "request.auth"',
	],
	[
		{ ...MINIMAL, request: { ...MINIMAL.request, headers: { 'Content-Length': '7' } } },
		'contains the header "Content-Length", which n8n sets itself',
	],
	[{ ...MINIMAL, request: { ...MINIMAL.request, headers: { Host: 'x' } } }, 'which n8n sets itself'],
	[
		{ ...MINIMAL, request: { ...MINIMAL.request, auth: { 'X-Key': 'k' } } },
		'"request.auth" must contain "$token"',
	],
	[{ ...MINIMAL, request: { ...MINIMAL.request, headers: { 'X-A': '日本' } } }, 'not one line of Latin text'],
	[
		{ ...MINIMAL, request: { ...MINIMAL.request, headers: { 'X-A': 'a', 'X-B': 'b\nc' } } },
		'"request.headers" contains the header "X-B"',
	],
	[[], 'The description is not a JSON object.'],
	[{ ...MINIMAL, request: ['message'] }, '"request" must be a JSON object'],
	[{ ...MINIMAL, answer: { text: 'a', interrupt: [] } }, '"answer.interrupt" must be a JSON object'],
	[{ ...MINIMAL, stream: [] }, '"stream" must be a JSON object'],
	[{ ...MINIMAL, stream: { rules: [{ end: true }, []] } }, '"stream.rules[1]" must be a JSON object'],
	[{ ...MINIMAL, stream: { rules: [null] } }, '"stream.rules[0]" must be a JSON object'],
	[{ ...MINIMAL, refusal: [] }, '"refusal" must be a JSON object'],
	[{ ...MINIMAL, upload: 'file' }, '"upload" must be a JSON object'],
	[{ ...MINIMAL, stream: { format: 'xml' } }, '"stream.format" must be "sse" or "jsonLines"'],
	[
		{ ...MINIMAL, stream: { rules: [{ delta: 'x' }] } },
		'"stream.rules" must contain a rule with "end": true',
	],
	[
		{ ...MINIMAL, stream: { rules: [{ end: true }, { delta: 4 }] } },
		'"stream.rules[1].delta" must be a string',
	],
	[{ ...MINIMAL, stream: { rules: [{ end: true, dleta: '' }] } }, '"stream.rules[0].dleta" is not known'],
])('refuses %j and names the entry', (description, sentence) => {
	const text = typeof description === 'string' ? description : JSON.stringify(description);
	const read = readWire(text);
	expect(read.ok ? '' : read.failure).toContain(sentence);
});

test('a bare reference to an expression and a type error return nothing', () => {
	const read = (text: string): unknown => {
		const compiled = compileExpression(text);
		return compiled.ok ? valueAt(compiled.value, { a: 1 }) : compiled.failure;
	};
	expect(read('&a')).toBeUndefined();
	expect(read("join('', b)")).toBeUndefined();
	expect(read('a')).toBe(1);
});

describe('a request', () => {
	const call = { sessionId: '', stream: false, uuid: 'u-1' };
	const message = { kind: 'message', message: 'Hi', files: [] } as const;

	test('can contain a boolean false, a number, an ID, a path and headers', () => {
		const wire = wireOf(
			JSON.stringify({
				...MINIMAL,
				request: {
					path: '/threads/$session/runs',
					headers: { 'X-Session': '$session' },
					message: { m: '$message', s: '$streamBoolean', n: '$sessionNumber', id: '$uuid' },
				},
			}),
		);
		expect(valueOf(wireRequest(wire, message, { ...call, sessionId: '../7' }))).toEqual({
			sessionId: '../7',
			path: '/threads/..%2F7/runs',
			headers: { 'X-Session': '../7' },
			body: { m: 'Hi', s: false, n: '../7', id: 'u-1' },
		});
		expect(valueOf(wireRequest(wire, message, { ...call, sessionId: '7' })).body).toMatchObject({ n: 7 });
		// Without a session, the credential's Invoke Path is used, which begins one.
		expect(wireRequest(wire, message, call)).toMatchObject({ value: { path: '', headers: {} } });
	});

	test('contains files among other parts', () => {
		const parts = [{ text: '$message' }, '$files', { last: true }];
		const wire = wireOf(
			JSON.stringify({ ...MINIMAL, request: { message: { parts }, file: { uri: '$url' } } }),
		);
		const files = ['https://a', 'https://b'].map((url) => ({ url, name: '', mimeType: '' }));
		expect(valueOf(wireRequest(wire, { ...message, files }, call)).body).toEqual({
			parts: [{ text: 'Hi' }, { uri: 'https://a' }, { uri: 'https://b' }, { last: true }],
		});
		expect(valueOf(wireRequest(wire, message, call)).body).toEqual({
			parts: [{ text: 'Hi' }, { last: true }],
		});
	});
});
