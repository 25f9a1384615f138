import { readAgentAccount } from '../../../../nodes/AgentInvoke/wire/account';
import { explainRefusal } from '../../../../nodes/AgentInvoke/api/failures';
import { explainAgentCall, isPassing, ofForeign } from '../../../../nodes/AgentInvoke/api/unanswered';
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
	['interrupt_not_found', 'refused'],
	['message_required', 'refused'],
	// These have no status and are in no list, so the agent may have run.
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
	expect(told(because('x', 400)).details).toMatchObject({ mayHaveRun: true });
	expect(told(because('x', 413)).details).not.toHaveProperty('mayHaveRun');
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

test('says that an interrupt is not open, whatever status the server gives that', () => {
	for (const status of [200, 404, 500])
		expect(told(because('interrupt_not_found', status)).message).toBe(
			'The agent is no longer waiting for this interrupt',
		);
});

test('distinguishes an expired debugging token from an expired permanent one', () => {
	expect(told(because('token_expired', 401), { token: 'dbg_SECRETPART' }).message).toContain('(dbg_)');
	expect(told(because('token_expired', 401)).message).toBe('The agent token has expired');
});

test('shortens texts of the platform and hides a token in them', () => {
	const failure = told(because(`${'x'.repeat(450)} agt_SECRETPART ${'y'.repeat(5_000)}`, 400));
	expect(JSON.stringify(failure)).not.toContain('SECRETPART');
	expect(failure.message.length).toBeLessThan(600);
});

const facts = { account: accountOf('agt_SECRETPART'), sessionId: '', redact: redactor([]) };

/** What a server without an envelope answers. */
function foreign(status: number, text: string): WireFailure {
	const reader = new WireReader(USUAL, (said) => said);
	reader.read({ data: text, isWholeBody: true });
	const failure = concludeRefusal(reader, { status, headers: {}, broken: '', sessionId: '' });
	if (!failure) throw new Error('no failure');
	return failure;
}

describe.each([false, true])('a refusal without an envelope (upload: %j)', (isUpload) => {
	const explain = (status: number, text: string): Failure =>
		explainRefusal(foreign(status, text), { ...facts, isUpload });

	test.each([413, 415, 429])('%d is reported with its body', (status) => {
		const { kind, message, details } = explain(status, 'the text is too long');
		expect({ kind, details }).toMatchObject({ kind: 'refused', details: { httpStatus: status } });
		expect(message).toMatch(/(refused the call|could not be uploaded): the text is too long$/);
	});

	test.each([404, 405])('%d is a problem of the path in the credential', (status) => {
		const { kind, message, advice } = explain(status, 'no such route');
		expect(kind).toBe('credential');
		expect(message).toMatch(new RegExp(`under the (path of the call|'Media Upload Path') .HTTP ${status}.$`));
		expect(advice).toContain(isUpload ? "'Media Upload Path'" : 'Invoke Path');
		expect(advice).toMatch(/ The server said: no such route\.$/);
	});
});

test('names a path at the end of the base URL if there is no agent', () => {
	const account = { ...accountOf('agt_x'), baseUrl: 'https://platform.example.com/api/v1' };
	const failure = explainRefusal(foreign(404, 'nope'), { ...facts, account });
	expect(failure.advice).toContain('Remove "/api/v1" from the end of the Base URL');
});

test.each(['read', 'write'] as const)(
	'reports that a call without an answer may have run (%s)',
	(repeatability) => {
		const call = { repeatability, tries: 4 };
		const lost = explainAgentCall({ kind: 'unclear', code: 'ECONNRESET', text: 'reset' }, call, facts);
		expect(lost.details).toMatchObject({ mayHaveRun: true, networkCode: 'ECONNRESET' });
		const notSent = explainAgentCall({ kind: 'notSent', code: 'ECONNREFUSED', text: 'refused' }, call, facts);
		expect(notSent.details).not.toHaveProperty('mayHaveRun');
	},
);

test('JSON of another server that gives no reason is not said to lack a field of the workflow API', () => {
	const reply = { kind: 'reply', status: 500, headers: {}, text: '{"trace":7}' } as const;
	expect(ofForeign(reply, foreign(reply.status, reply.text))).toMatchObject({
		kind: 'unclear',
		text: 'no reason was given',
	});
});
