import fc from 'fast-check';

import { readEnvelope } from '../../../nodes/AgentInvoke/envelope';
import { askedIn, hintAtEmpty, readReply } from '../../../nodes/AgentInvoke/reply';
import type { Json, JsonObject } from '../../../nodes/shared/text/json';
import { hostileJson } from '../FlowTask/hostileJson';
import { USUAL } from './deployment.fixture';

const succeeded = (body: JsonObject): boolean | undefined => readEnvelope(body, USUAL, 200)?.succeeded;
const replyOf = (data: JsonObject) =>
	readReply(readEnvelope({ success_response: true, data }, USUAL, 200)!, USUAL);

test.each<[string, JsonObject, boolean | undefined]>([
	['both good', { success_response: true, http_status_code: 200 }, true],
	['a bad status', { success_response: true, http_status_code: 500 }, false],
	['no success', { success_response: false, http_status_code: 200 }, false],
	['texts', { success_response: 'true', http_status_code: '200' }, true],
	['a bad status as text', { success_response: 'true', http_status_code: '401' }, false],
	['numbers', { success_response: 0, http_status_code: 200 }, false],
	['the digit', { success_response: '1', http_status_code: 200 }, true],
	['a word in capitals', { success_response: 'FALSE', http_status_code: 200 }, false],
	['a status of neither', { success_response: true, http_status_code: 302 }, false],
	['success alone', { success_response: true }, true],
	['a status alone', { http_status_code: 201 }, false],
	[
		'a reason of failure and nothing else',
		{ success_response: true, data: { reason: 'agent_failed' } },
		false,
	],
	[
		'a reason of failure beside an answer',
		{ success_response: true, data: { reason: 'error_found', answer: 'x' } },
		true,
	],
	['neither', { data: { reason: 'x' } }, undefined],
	['nonsense in their place', { success_response: {}, http_status_code: 'soon' }, false],
])('%s', (_name, body, expected) => {
	expect(succeeded(body)).toBe(expected);
});

test.each([null, 1, 'x', [], [{ success_response: true }], undefined])('%j is not an envelope', (body) => {
	expect(readEnvelope(body as Json, USUAL, 200)).toBeUndefined();
});

test.each<[string, Json, object | undefined]>([
	['none', null, undefined],
	['an empty one', {}, undefined],
	[
		'a question',
		{ id: 'i', kind: 'question', question: 'q?' },
		{ id: 'i', kind: 'question', question: 'q?', tool: '' },
	],
	[
		'a tool',
		{ id: 'i', kind: 'tool', tool_name: 't', arguments: { a: 1 } },
		{ kind: 'tool', tool: 't', arguments: { a: 1 } },
	],
	[
		'a call as OpenAI has it',
		{ id: 'c', type: 'function', function: { name: 't', arguments: '{"a":1}' } },
		{ kind: 'tool', tool: 't', arguments: { a: 1 } },
	],
	['arguments that are no JSON', { tool: 't', args: 'not json' }, { kind: 'tool', arguments: 'not json' }],
	['a list', [{ id: 1, tool: 't' }, { id: 2 }], { id: '1', tool: 't' }],
	['a text', 'sure?', { kind: 'question', question: 'sure?' }],
	[
		'a question with a name',
		{ name: 'colour', type: 'question', prompt: 'which?' },
		{ kind: 'question', tool: '', question: 'which?' },
	],
])('an interrupt: %s', (_name, interrupt, expected) => {
	const read = replyOf({ interrupt }).interrupt;
	if (expected) expect(read).toMatchObject(expected);
	else expect(read).toBeUndefined();
});

test('the text beside an interrupt is what it asks, unless it asks for itself or wants a tool', () => {
	const ask = (interrupt: Json) => askedIn('Sure?', replyOf({ interrupt }).interrupt!).question;
	expect(ask({ id: 'i', kind: 'question' })).toBe('Sure?');
	expect(ask({ id: 'i', question: 'Really?' })).toBe('Really?');
	expect(ask({ id: 'i', tool_name: 't' })).toBe('');
});

test('a hint shows some keys of many, each cut', () => {
	const keys = Array.from({ length: 25 }, (_, i) => `${i}${'x'.repeat(100)}`);
	const hint = hintAtEmpty(keys, false, USUAL);
	expect(hint).toContain(' and 5 more.');
	expect(hint.length).toBeLessThan(1_200);
	// Where nothing came, no setting of the operator's is at fault.
	expect(hintAtEmpty([], false, USUAL)).toBe(
		"The agent's answer is empty: the platform sent no data with it.",
	);
});

test('a reason that speaks of an interrupt is one without details', () => {
	expect(replyOf({ reason: 'interrupted' }).interrupt).toMatchObject({ kind: 'question', id: '' });
});

test.each(['interrupt', 'interrupted', 'interrupt_required', 'Requires_Action'])(
	'the reason %j without an answer is an interrupt, with one it is not',
	(reason) => {
		expect(replyOf({ reason, session_id: 's' }).interrupt).toBeDefined();
		expect(replyOf({ reason, answer: 'All done.' }).interrupt).toBeUndefined();
	},
);

test('several interrupts are all told, and the first stands for itself', () => {
	const two = [
		{ id: 'a', tool_name: 'x' },
		{ id: 'b', tool_name: 'y' },
	];
	expect(replyOf({ interrupt: two })).toMatchObject({
		interrupt: { id: 'a', tool: 'x' },
		interrupts: [
			{ id: 'a', tool: 'x' },
			{ id: 'b', tool: 'y' },
		],
	});
	expect(replyOf({ interrupt: two.slice(0, 1) }).interrupts).toEqual([]);
});

test('a finished answer is no interrupt, whatever words stand beside it', () => {
	expect(replyOf({ answer: 'All done.', reason: 'interrupt_resolved' }).interrupt).toBeUndefined();
	expect(replyOf({ reason: 'interrupt_resolved', session_id: 's' }).interrupt).toBeUndefined();
	for (const message of ['no interrupt pending', 'interrupt']) {
		const body = { success_response: true, message, data: { session_id: 's' } };
		expect(readReply(readEnvelope(body, USUAL, 200)!, USUAL).interrupt).toBeUndefined();
	}
});

test('numbered sessions and answers that are no text are read as text', () => {
	expect(replyOf({ session_id: 42, answer: { a: 1 } })).toMatchObject({ sessionId: '42', answer: '{"a":1}' });
});

test('no body makes it throw, and what it gives is always of its kind', () => {
	const nearly = fc.record(
		{
			success_response: fc.oneof(fc.boolean(), hostileJson()),
			http_status_code: fc.oneof(fc.constantFrom<Json>(200, 401, '503'), hostileJson()),
			data: fc.oneof(
				hostileJson(),
				fc.record(
					{
						reason: hostileJson(),
						answer: hostileJson(),
						session_id: hostileJson(),
						interrupt: hostileJson(),
						usage: hostileJson(),
					},
					{ requiredKeys: [] },
				),
			),
			request_id: hostileJson(),
		},
		{ requiredKeys: [] },
	);
	fc.assert(
		fc.property(fc.oneof(hostileJson(), nearly), (body) => {
			const envelope = readEnvelope(body, USUAL, 200);
			if (!envelope) return;
			const { answer, sessionId, interrupt, reason, requestId } = readReply(envelope, USUAL);
			for (const text of [answer, sessionId, reason, requestId]) expect(typeof text).toBe('string');
			if (!interrupt) return;
			expect(['question', 'tool']).toContain(interrupt.kind);
			for (const text of [interrupt.id, interrupt.tool, interrupt.question])
				expect(typeof text).toBe('string');
			expect(interrupt.arguments).toBeDefined();
		}),
		{ numRuns: 1_000 },
	);
});
