import { readAgentAccount } from '../../../../nodes/AgentInvoke/wire/account';
import { explainCall, explainRefusal, isPassing } from '../../../../nodes/AgentInvoke/api/failures';
import { concludeRefusal, type WireFailure } from '../../../../nodes/AgentInvoke/wire/conclusion';
import { WireReader } from '../../../../nodes/AgentInvoke/wire/reader';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import type { JsonObject } from '../../../../nodes/shared/text/json';
import { redactor } from '../../../../nodes/shared/text/redact';
import { wireWith } from '../wire/wire.fixture';
import { valueOf } from '../../results';

const USUAL = wireWith();

const accountOf = (agentToken: string) =>
	valueOf(readAgentAccount({ agentToken, baseUrl: 'https://p.example' }));

function told(body: JsonObject, { outer = 200, sessionId = '', token = 'agt_SECRETPART' } = {}) {
	const failure = failureOf(body, { outer, sessionId });
	const redact = redactor([token]);
	return {
		passing: isPassing(failure) && failure.kind === 'refused',
		isSessionUnknown: false,
		...explainRefusal(failure, { account: accountOf(token), sessionId, redact }),
	};
}

/** The failure that a refusing envelope leads to. */
function failureOf(body: JsonObject, { outer = 200, sessionId = '', wire = USUAL } = {}): WireFailure {
	const reader = new WireReader(wire, (text) => text);
	const data = JSON.stringify({ success_response: false, ...body });
	reader.read({ data, isWholeBody: true });
	const ended = { status: outer, headers: {}, broken: '', sessionId };
	const failure = concludeRefusal(reader, ended);
	if (!failure) throw new Error('no failure');
	return failure;
}

const because = (reason: string, status?: number): JsonObject => ({
	...(status !== undefined && { http_status_code: status }),
	data: { reason },
});

test.each([
	['token_expired', 'credential'],
	['invalid_token', 'credential'],
	['Unauthorized', 'credential'],
	['permission_denied', 'credential'],
	['session_not_found', 'refused'],
	['rate_limited', 'refused'],
	// These have no status and are in no list, so the agent may have run.
	['interrupt_not_found', 'agentFailed'],
	['message_required', 'agentFailed'],
	['agent_failed', 'agentFailed'],
	['max_tokens exceeded', 'agentFailed'],
	['something else', 'agentFailed'],
	['', 'agentFailed'],
])('classifies a failure by its reason alone: %j', (reason, kind) => {
	for (const status of [undefined, 200]) expect(told(because(reason, status)).kind).toBe(kind);
});

test.each([
	['rate_limited', true],
	['overloaded', true],
	['session_busy', true],
	['agent_failed', false],
	['', false],
])('treats %j as temporary: %s', (reason, passing) => {
	expect(told(because(reason)).passing).toBe(passing);
});

test.each([
	'agent_failed: model rate limit exceeded after tool call',
	'tool returned invalid output',
	'step 3 failed: get_pending_orders crashed',
	'the upstream model is overloaded',
	'too many open files',
	'database busy',
	'permission denied',
	'a session was not found by the tool',
])('takes words in a sentence as no proof that the agent did not run: %j', (reason) => {
	const failure = told({ http_status_code: 200, data: { reason } }, { sessionId: 's' });
	expect(failure).toMatchObject({ kind: 'agentFailed', passing: false, details: { mayHaveRun: true } });
	expect(failure.isSessionUnknown).toBe(false);
});

test('says what is wrong with an envelope that contradicts itself or gives its reason as plain text', () => {
	const contradicts = told({ success_response: true, http_status_code: 0, data: { note: 'x' } });
	expect(contradicts).toMatchObject({
		kind: 'unclear',
		message: 'The answer does not say that the call succeeded: "http_status_code" must be from 200 to 299',
	});
	expect(told({ http_status_code: 400, data: 'bad bot' }).message).toBe('The agent failed: bad bot');
});

test('treats a conflict as temporary only for a code word', () => {
	expect(told(because('session_busy', 409)).passing).toBe(true);
	expect(told(because('step 2 failed: the file is locked', 409)).passing).toBe(false);
});

test('uses the status of the envelope, or else that of HTTP', () => {
	expect(told(because('x', 403), { outer: 500 }).kind).toBe('credential');
	expect(told(because('x'), { outer: 403 }).kind).toBe('credential');
});

test('always says if the agent may have run', () => {
	expect(told(because('x', 500)).details).toMatchObject({ mayHaveRun: true });
	expect(told(because('x', 400)).details).not.toHaveProperty('mayHaveRun');
});

test.each([
	['session_not_found', 404, true],
	['not_found', 404, true],
	['', 404, true],
	['conversation expired', 400, true],
	['interrupt_not_found', 404, false],
	['agent_not_found', 404, false],
	['file_missing', 404, false],
	['session_busy', 409, false],
	['token_expired', 401, false],
	['session_expired', 401, true],
	['session_not_found', 403, true],
	['session_token_expired', 401, false],
])('recognizes %j (%d) as an unknown session: %s', (reason, status, isSessionUnknown) => {
	expect(told(because(reason, status), { sessionId: 's' }).isSessionUnknown).toBe(isSessionUnknown);
	expect(told(because(reason, status)).isSessionUnknown).toBe(false);
});

test('distinguishes an expired debugging token from an expired permanent one', () => {
	expect(told(because('token_expired', 401), { token: 'dbg_SECRETPART' }).message).toContain('(dbg_)');
	expect(told(because('token_expired', 401)).message).toBe('The agent token has expired');
});

describe('proof that the agent did not run', () => {
	const OWN = wireWith({ answer: { text: 'message || detail' } });
	const proves = (body: JsonObject, { outer = 200, sessionId = '', own = false } = {}): boolean =>
		failureOf(body, { outer, sessionId, wire: own ? OWN : USUAL }).kind === 'refused';
	const telling = (data: JsonObject, http_status_code = 503): JsonObject => ({ http_status_code, data });

	test.each([400, 401, 403, 404, 409, 413, 422, 429, 503])('is %d with a reason', (status) => {
		expect(proves(because('overloaded', status))).toBe(true);
		expect(proves(because('overloaded'), { outer: status })).toBe(true);
	});

	test.each([0, 100, 302, 408, 499, 500, 501, 502, 504, 599, 600])('is not %d', (status) => {
		expect(proves(because('overloaded', status))).toBe(false);
		if (status >= 400) expect(proves(because('overloaded'), { outer: status })).toBe(false);
	});

	test.each<[string, JsonObject, boolean]>([
		['empty fields', telling({ reason: 'x', answer: '', usage: null, steps: [], done: false }), true],
		['words in an error', telling({ error: { type: 'x', message: 'later', retry_after: 3 } }), true],
		['words about each field', telling({ errors: [{ loc: ['message'], msg: 'too long' }] }, 422), true],
		['an answer', telling({ reason: 'x', answer: 'done' }), false],
		['a list', telling({ reason: 'x', tool_calls: [1] }), false],
		['a number', telling({ reason: 'x', total_tokens: 7 }), false],
		['words under another name', telling({ reason: 'x', output: { message: 'I charged the card' } }), false],
		['data that is a text', { http_status_code: 503, data: 'I charged the card' }, false],
		['data that is a list', { http_status_code: 503, data: ['I charged the card'] }, false],
		['an answer next to the data', { http_status_code: 503, data: { reason: 'x' }, answer: 'done' }, false],
		['usage next to the data', { http_status_code: 503, data: {}, usage: { n: 1 } }, false],
		['a success', { ...because('x', 429), success_response: 'True' }, false],
		['a tool that failed', because('tool_failed', 503), false],
		['a tool that failed, in detail', telling({ reason: 'x', detail: 'the tool failed' }, 429), false],
		['a token that failed', because('authentication_failed', 401), true],
	])('is judged by the fields next to the reason: %s', (_name, body, expected) => {
		expect(proves(body)).toBe(expected);
	});

	test('may contain the session of the call, but not another one', () => {
		const body = telling({ reason: 'x', session_id: 's', meta: { conversation: 's' } });
		expect(proves(body, { sessionId: 's' })).toBe(true);
		expect(proves(body, { sessionId: 'other' })).toBe(false);
		expect(proves(body)).toBe(false);
	});

	test('is not a field that the description reads answers from', () => {
		const body = telling({ reason: 'x', message: 'done' });
		expect([proves(body), proves(body, { own: true })]).toEqual([true, false]);
		const piece = telling({ reason: 'x', detail: 'done' });
		expect([proves(piece), proves(piece, { own: true })]).toEqual([true, false]);
	});
});

test('shortens texts of the platform and hides a token in them', () => {
	const failure = told(because(`${'x'.repeat(450)} agt_SECRETPART ${'y'.repeat(5_000)}`, 400));
	expect(JSON.stringify(failure)).not.toContain('SECRETPART');
	expect(failure.message.length).toBeLessThan(600);
});

/** A client error without an envelope. */
const refusal = (status: number, text: string) => ({ kind: 'refused', status, code: null, text }) as const;
const facts = { account: accountOf('agt_SECRETPART'), sessionId: '', redact: redactor([]) };

test.each([
	['an upload', true, 'read', '"Media Upload Path"'],
	['a call', false, 'write', 'Invoke Path'],
] as const)(
	'says which path to check after %s to an unknown path',
	(_name, isUpload, repeatability, said) => {
		const failure = explainCall(
			refusal(404, 'nothing here'),
			{ repeatability, tries: 1 },
			{ ...facts, isUpload },
		);
		expect(failure).toMatchObject({ kind: 'credential', advice: expect.stringContaining(said) });
	},
);

describe.each([false, true])('a client error without an envelope (upload: %j)', (isUpload) => {
	const explain = (status: number, text: string): Failure =>
		explainCall(refusal(status, text), { repeatability: 'read', tries: 1 }, { ...facts, isUpload });

	test.each([400, 402, 409, 411, 413, 415, 422, 425, 451])('%d is reported with its body', (status) => {
		const { message, advice } = explain(status, 'the text is too long');
		expect(message).toMatch(new RegExp(`refused the (file|call) .HTTP ${status}.: the text is too long$`));
		expect(advice).toMatch(/^Nothing was run\. /);
	});

	test('402 is a matter of credit', () => {
		expect(explain(402, 'no').advice).toBe(
			'Nothing was run. Check the credit and the limits of the account that the agent belongs to.',
		);
	});

	test.each([413, 422, 425])('%d is not a problem of the credential', (status) => {
		expect(explain(status, 'no')).toMatchObject({ kind: 'refused', details: { httpStatus: status } });
		expect(explain(status, 'no').advice).not.toContain('credential');
	});

	test.each([404, 405, 410])('%d is a problem of the credential, and is reported with its body', (status) => {
		const { kind, message, advice } = explain(status, 'no such route');
		expect(kind).toBe('credential');
		expect(message).toMatch(new RegExp(`under the (path of the call|"Media Upload Path") .HTTP ${status}.$`));
		expect(advice).toMatch(/ The server said: no such route\.$/);
	});
});

test('names a path at the end of the base URL if there is no agent', () => {
	const account = { ...accountOf('agt_x'), baseUrl: 'https://platform.example.com/api/v1' };
	const failure = explainCall(
		refusal(404, 'nope'),
		{ repeatability: 'write', tries: 1 },
		{ ...facts, account },
	);
	expect(failure.advice).toContain('Remove "/api/v1" from the end of the Base URL');
});

test.each(['read', 'write'] as const)(
	'reports that a call without an answer may have run (%s)',
	(repeatability) => {
		const call = { repeatability, tries: 4 };
		const lost = explainCall({ kind: 'unclear', code: 'ECONNRESET', text: 'reset' }, call, facts);
		expect(lost.details).toMatchObject({ mayHaveRun: true, networkCode: 'ECONNRESET' });
		const notSent = explainCall({ kind: 'notSent', code: 'ECONNREFUSED', text: 'refused' }, call, facts);
		expect(notSent.details).not.toHaveProperty('mayHaveRun');
	},
);
