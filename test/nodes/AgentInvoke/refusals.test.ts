import { RETRY, sharedStage } from '../harness/stage';
import { envelope, item, openScriptedAgent, OPTIONS } from './scriptedAgent';
import { CONTINUE } from './agent.fixture';

/* How often the node calls for contradictory or meaningless answers, and how it reports them. */

const agent = sharedStage(openScriptedAgent);

const TELLS_MORE = { reason: 'tool_failed', answer: 'I charged the card' };

test('a failing envelope with a status of load whose reason is not listed may come from an agent that has run', async () => {
	agent.says(envelope(TELLS_MORE, 503));
	const json = item(await agent.ask());
	expect(agent.calls).toHaveLength(1);
	expect(json.details).toMatchObject({ mayHaveRun: true, httpStatus: 503, requestId: 'req_1' });
	expect(json.message).toContain('The agent may have run');
	agent.reset();
	agent.says(envelope(TELLS_MORE, 503));
	const again = await agent.ask({ options: { ...OPTIONS, retries: 1, onUnknownOutcome: 'sendAgain' } });
	expect(agent.calls).toHaveLength(2);
	expect(item(again).details).toMatchObject({ mayHaveRun: true });
});

describe.each([429, 503])('a failing envelope with status %d', (status) => {
	test('with a reason only is repeated, and is reported with its status as not run', async () => {
		agent.says(
			envelope({ reason: 'overloaded', detail: 'later', retry_after: 1, answer: '', usage: null }, status),
		);
		const json = item(await agent.ask({ options: { ...OPTIONS, retries: 1, timeoutSeconds: 20 } }));
		expect(agent.calls.length).toBeGreaterThan(1);
		expect(json.message).toContain('It did not run');
		expect(json.details).toMatchObject({ httpStatus: status });
		expect(json.details).not.toHaveProperty('mayHaveRun');
	});

	test('that contains only the session of the call is repeated', async () => {
		agent.says(envelope({ reason: 'overloaded', session_id: 'ses_old' }, status));
		const session = { sessionMode: 'explicit', sessionId: 'ses_old' };
		await agent.ask({ ...session, options: { ...OPTIONS, retries: 1, timeoutSeconds: 20 } });
		expect(agent.calls.length).toBeGreaterThan(1);
	});
});

test('reports the answer, session and request ID that a refusal contains', async () => {
	agent.says(envelope({ reason: 'tool_failed', answer: 'I charged the card', session_id: 'ses_new' }, 503));
	expect(item(await agent.ask())).toMatchObject({
		error: 'The agent failed: tool_failed',
		details: { answer: 'I charged the card', sessionId: 'ses_new', requestId: 'req_1', httpStatus: 503 },
	});
});

describe.each([
	['envelope 408 with HTTP 200', envelope({ reason: 'timeout' }, 408), 200],
	['envelope 400 with an answer', envelope({ reason: 'tool_refused', answer: 'I charged' }, 400), 200],
	['envelope 409 without a listed reason', envelope({ reason: 'conflict' }, 409), 200],
	['HTTP 503 of a gateway', '{"code":503,"msg":"unavailable"}', 503],
])('%s', (_name, body, httpStatus) => {
	test('makes the node call once, even with Retry On Fail, and never again for this key', async () => {
		agent.says(body, httpStatus);
		const options = { ...OPTIONS, idempotencyKey: 'k', renewExpiredSession: true };
		const parameters = { options, sessionMode: 'explicit', sessionId: 'ses_old' };
		const run = await agent.ask(parameters, RETRY);
		expect(run.error?.context).toMatchObject({ mayHaveRun: true });
		expect(agent.calls).toHaveLength(1);
		const second = await agent.ask(parameters, RETRY);
		expect(second.error?.message).toContain('may have run for the idempotency key');
		expect(agent.calls).toHaveLength(1);
	});
});

describe('an unusable success', () => {
	const ANSWER = { answer: 'hello', session_id: 's' };

	test.each<[string, string]>([
		['missing', JSON.stringify({ http_status_code: 200, data: ANSWER })],
		['null', envelope(ANSWER, 200, null)],
		['"False"', envelope(ANSWER, 200, 'False')],
		['null, without a status', JSON.stringify({ success_response: null, data: ANSWER })],
	])(
		'with success_response %s is an error with the data received, and is not repeated',
		async (_name, body) => {
			for (const stream of [false, true]) {
				agent.reset();
				agent.says(body);
				const json = item(await agent.ask({ stream }));
				expect(json).toMatchObject({
					error: expect.stringMatching(/^The answer does not say that the call succeeded|^The agent failed/),
					details: { mayHaveRun: true, answer: 'hello', sessionId: 's' },
				});
				expect(agent.calls).toHaveLength(1);
			}
			agent.answer((response) => {
				response.setHeader('content-type', 'text/event-stream');
				response.end(`data: ${body}\n\n`);
			});
			expect(item(await agent.ask({ stream: true }))).toHaveProperty('error');
		},
	);

	test('is a failure if its status is one, or its reason and no answer', async () => {
		agent.says(envelope(ANSWER, 500, true));
		expect(item(await agent.ask()).error).toBeDefined();
		for (const reason of ['quota_exceeded', 'agent_failed']) {
			agent.says(envelope({ reason, session_id: 's' }));
			expect(item(await agent.ask())).toMatchObject({
				error: expect.stringContaining(`The agent's answer is empty (${reason})`),
				details: { mayHaveRun: true, sessionId: 's', reason },
			});
		}
		agent.says(envelope({ reason: 'quota_exceeded', ...ANSWER }));
		expect(item(await agent.ask())).toMatchObject({ answer: 'hello' });
	});

	test.each([false, true])(
		'with an empty answer is reported with its keys and the entry that was read (stream: %s)',
		async (isStream) => {
			const body = envelope({ reason: 'completed', session_id: 's', text: 'hello' });
			agent.answer((response) => {
				if (isStream) response.setHeader('content-type', 'text/event-stream');
				response.end(isStream ? `event: done\ndata: ${body}\n\n` : body);
			});
			const options = { ...OPTIONS, idempotencyKey: 'k', retries: 3 };
			const parameters = { stream: isStream, options };
			const entry = isStream ? 'stream\\.rules' : 'answer\\.text';
			expect(item(await agent.ask(parameters))).toMatchObject({
				error: expect.stringMatching(`"${entry}".*contained reason, session_id, text`),
				details: { mayHaveRun: true, sessionId: 's' },
			});
			expect(agent.calls).toHaveLength(1);
		},
	);
});

test.each(['envelope', 'plain'])(
	'a rejected debugging token is reported with its limited validity (%s)',
	async (form) => {
		agent.says(
			form === 'envelope' ? envelope({ reason: 'token_invalid' }, 401) : 'no',
			form === 'envelope' ? 200 : 401,
		);
		const told = async (agentToken: string): Promise<unknown> =>
			item(await agent.ask({}, { ...CONTINUE, account: { agentToken } })).message;
		expect(await told('dbg_0123456789')).toContain('expires at the time shown in the console');
		expect(await told('agt_0123456789')).not.toContain('console shows');
	},
);

describe('a refused upload does not mean that the agent ran', () => {
	const upload = async (parameters: object = { operation: 'uploadMedia' }) =>
		item(
			await agent.ask({ ...parameters, options: { requestsPerSecond: 0 } }, CONTINUE, [
				{ json: { say: 'look' }, binary: { data: { data: Buffer.from('x'), fileName: 'a.txt' } } },
			]),
		);

	test.each([
		[
			'a reason with a limit',
			envelope({ reason: 'file_too_large', max_bytes: 9 }, 413),
			'A file is larger than',
		],
		['a failure', envelope({ reason: 'disk_full', session_id: 's' }, 500), 'The file could not be uploaded'],
		[
			'an answer that does not report success',
			envelope({ url: 'https://f.example/a' }, 200, null),
			'does not say that the call succeeded',
		],
	])('%s', async (_name, body, said) => {
		agent.saysToUploads(body);
		const files = { file: [{ source: 'binary', binaryPropertyName: 'data' }] };
		for (const json of [await upload(), await upload({ files })]) {
			expect(json.error).toContain(said);
			expect(json.details).not.toHaveProperty('mayHaveRun');
		}
		expect(agent.calls).toEqual([]);
	});
});
