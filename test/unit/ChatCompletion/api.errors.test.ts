import { describeAnswer } from '../../../nodes/ChatCompletion/actions/deliver';
import type { ChatAnswer } from '../../../nodes/shared/answer/answerBuilder';
import type { Json, JsonObject } from '../../../nodes/shared/text/json';
import { redactor } from '../../../nodes/shared/text/redact';
import { failureOf, valueOf } from '../results';
import { pausedRate } from '../shared/retry/pausedRate';
import { askChat, delta, finish, KEY, sse } from './askChat';

/* Errors are reported in the words of the platform, and nothing is invented. */

const FORM = {
	format: { kind: 'text' },
	reasoning: 'default',
	onInvalidJson: 'fail',
	simplify: true,
	forChat: false,
	asTool: false,
} as const;

const JSON_FORM = { ...FORM, format: { kind: 'jsonObject' } } as const;
/** The item that an answer becomes. */
const itemOf = (answer: ChatAnswer, form: typeof FORM | typeof JSON_FORM = FORM) =>
	describeAnswer(answer, form, redactor([]));

/** The failure that an answer in these pieces leads to. */
const failureTo = async (...pieces: string[]) => failureOf((await askChat({ body: () => pieces })).result);

/** The answer in these pieces. */
const answerOf = async (...pieces: string[]) => valueOf((await askChat({ body: () => pieces })).result);

const said = (words: string): string => sse({ error: { message: words, code: 500 } });

test.each([
	['an error object', said(`out of credit for ${KEY}`)],
	['an error event', `event: error\ndata: out of credit for ${KEY}\n\n`],
	['an error in a choice', sse({ choices: [{ index: 0, error: `out of credit for ${KEY}` }] })],
])('%s after the finish reason is reported with the answer', async (_name, error) => {
	for (const reason of ['length', 'max_tokens', 'stop']) {
		const answer = await answerOf(sse(delta({ content: 'Hel' }), finish(reason)), error);
		expect(answer).toMatchObject({ content: 'Hel', aside: 'out of credit for [hidden]' });
		const item = itemOf(answer);
		expect(item.ok && item.value.warning).toMatch(
			reason !== 'stop'
				? /^The answer was cut off .* options\. Besides the answer, the platform said: out of credit for \[hidden\]\.$/
				: /^Besides the answer, the platform said: out of credit for \[hidden\]\.$/,
		);
	}
});

test.each([
	['length', /^The answer was cut off/],
	['MAX_TOKENS', /^The answer was cut off/],
	['model_context_window_exceeded', /^The answer was cut off/],
	['sensitive', /^The answer may be incomplete: .* the finish reason "sensitive"\.$/],
	['STOP', undefined],
	['end_turn', undefined],
	['eos_token', undefined],
	['COMPLETE', undefined],
])(
	'the finish reason %s decides whether an answer is complete; JSON in an incomplete one is refused',
	async (reason, warning) => {
		const answer = await answerOf(
			sse(delta({ content: 'Before: {"id":1}. After:' }), finish(reason), '[DONE]'),
		);
		const item = itemOf(answer);
		expect(item.ok && item.value.warning).toEqual(warning ? expect.stringMatching(warning) : undefined);
		const json = itemOf(answer, JSON_FORM);
		expect(json.ok).toBe(warning === undefined);
	},
);

test('an answer that failed during generation has broken off', async () => {
	const failure = await failureTo(
		sse(delta({ content: 'Hel' }), finish('insufficient_system_resource'), '[DONE]'),
	);
	expect(failure).toMatchObject({
		message: expect.stringMatching(
			/with the finish reason "insufficient_system_resource", without saying why$/,
		),
		details: { content: 'Hel' },
	});
});

test.each([
	{ choices: [{ index: 0, error: { message: 'overloaded', code: 429 } }] },
	{ choices: [{ index: 0, finish_reason: 'error', message: { role: 'assistant', content: '' } }] },
	{ code: 429, msg: 'too many', data: { choices: [{}], usage: { completion_tokens: 0 } } },
])('a refusal with a choice that contains nothing is no answer: %j', async (body) => {
	const { result } = await askChat({ status: 429, body: () => [JSON.stringify(body)] });
	expect(failureOf(result)).toMatchObject({
		kind: 'refused',
		message: expect.stringContaining('not accepting more requests'),
	});
});

test.each([
	JSON.stringify({ code: 429, msg: '账户余额不足' }),
	sse({ error: { code: 429, message: 'Insufficient balance' } }),
])('an account without credit is not waited for, even with HTTP 200: %s', async (body) => {
	const { result, opened } = await askChat({ body: () => [body], tries: 3 });
	expect(failureOf(result)).toMatchObject({
		message: 'The account has too little credit, so the node could not get an answer from the model',
	});
	expect(opened).toBe(1);
});

test.each([
	['in one body', (json: JsonObject) => JSON.stringify(json)],
	['in a chunk', (json: JsonObject) => sse(json)],
])(
	'what is said beside an error, %s, is billed, so it is kept and not requested again',
	async (_name, write) => {
		const choices = [{ index: 0, delta: { content: 'Hel' }, finish_reason: 'stop' }];
		const body = write({ choices, error: { message: 'worker died', code: 500 }, usage: { total_tokens: 7 } });
		const { result, opened } = await askChat({ body: () => [body], tries: 3 });
		expect(failureOf(result)).toMatchObject({
			kind: 'unclear',
			message: 'The answer broke off after 3 characters: the platform said: worker died',
			details: { content: 'Hel', usage: { totalTokens: 7 } },
		});
		expect(opened).toBe(1);
	},
);

test.each([400, 500, 503])(
	'an answer with HTTP %d is billed, so it is kept and not requested again',
	async (status) => {
		const usage = { total_tokens: 7 };
		const body = JSON.stringify({
			choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }],
			usage,
		});
		const { result } = await askChat({ status, body: () => [body] });
		expect(failureOf(result)).toMatchObject({
			kind: 'unclear',
			message: `The platform sent an answer, but with HTTP ${status}, which means a failure`,
			details: { httpStatus: status, content: 'Hello', usage: { totalTokens: 7 } },
			advice: expect.stringContaining('not sent again'),
		});
	},
);

test.each([
	['', 'an answer without content', ''],
	[': a\n\n: b\n\n', 'an answer without content', ''],
	['upstream reset', 'an answer without content', ': upstream reset'],
	['<think>Hm.</think>42', 'an answer without content', ': <think>Hm.</think>42'],
	['<Error>No such model</Error>', 'an answer without content', ': <Error>No such model</Error>'],
	['{"success":false,"message":"bad model"}', 'an error instead of an answer', ': bad model'],
	['{"detail":"Not authenticated"}', 'an error instead of an answer', ': Not authenticated'],
	['{"errors":["quota exceeded"]}', 'an error instead of an answer', ': quota exceeded'],
	['{"error_msg":"bad key"}', 'an error instead of an answer', ': {"error_msg":"bad key"}'],
	[
		'{"candidates":[{"content":1}]}',
		'an answer in another form than that of chat completions',
		': {"candidates":[{"content":1}]}',
	],
	['\u001f\uFFFD\u0008\u0000', 'bytes that are not text, such as a compressed answer', ''],
])(
	'what came instead of an answer is named, and the question is not sent again: %j',
	async (body, what, said) => {
		const { result, opened } = await askChat({ body: () => [body], tries: 4 });
		expect(failureOf(result)).toMatchObject({
			kind: 'unclear',
			message: `The platform sent ${what} (HTTP 200)${said}`,
			details: { httpStatus: 200 },
		});
		expect(opened).toBe(1);
	},
);

test('an answer is requested without compression, in which a cut would not be seen', async () => {
	const { headers } = await askChat({ body: () => [sse(delta({ content: 'a' }), '[DONE]')] });
	expect(headers).toEqual([{ 'Accept-Encoding': 'identity' }]);
});

test('a page is not shown, whatever its content type', async () => {
	const { result } = await askChat({
		body: () => ['<!doctype html><b>Login</b>'],
		contentType: 'text/plain',
	});
	const { message } = failureOf(result);
	expect(message).toContain('a web page instead of an answer');
	expect(message).not.toContain('Login');
});

const PARTLY = [delta({ content: 'A. ', refusal: 'I cannot' }), delta({ refusal: ' do B' })];
const REFUSED_PARTLY = /(^|options\. )The model refused part of the request: I cannot do B\.$/;

test.each([
	['alone', 'I cannot', [delta({ refusal: 'I cannot' }), finish('stop'), '[DONE]'], /^The model refused/],
	['next to an answer', 'A. ', [...PARTLY, finish('stop')], REFUSED_PARTLY],
	['next to an answer that is cut off', 'A. ', [...PARTLY, finish('length')], REFUSED_PARTLY],
])('a refusal by the model is reported as one: %s', async (_name, content, events, warning) => {
	const { result, pieces } = await askChat({ body: () => [sse(...events)] });
	expect(pieces).toEqual([{ content, reasoning: '' }]);
	expect(itemOf(valueOf(result))).toMatchObject({
		value: { content, warning: expect.stringMatching(warning) },
	});
});

test.each([
	['an empty error', { error: { message: '', type: '', code: null } }],
	['a status of success', { base_resp: { status_code: 0, status_msg: '' } }],
])('%s in an answer is ignored', async (_name, more) => {
	const answer = await answerOf(
		sse(delta({ content: 'Hel' }, more), { ...finish('stop'), ...more }, '[DONE]'),
	);
	expect(answer).toMatchObject({ content: 'Hel', aside: '' });
});

test.each([
	[401, { error: { message: 'Insufficient Balance of this key' } }],
	[402, { error: { message: 'Insufficient Balance', code: 'invalid_request_error' } }],
	[402, { detail: 'Insufficient Balance' }],
	[429, { error: { message: 'Insufficient Balance', type: 'exceeded_current_quota_error' } }],
	[400, { error: { message: 'Insufficient Balance' } }],
])(
	'an account without credit is reported, and nothing is repeated: HTTP %d with %j',
	async (status, body) => {
		const { result, opened } = await askChat({ body: () => [JSON.stringify(body)], status });
		expect(failureOf(result)).toMatchObject({
			message: 'The account has too little credit, so the node could not get an answer from the model',
			advice: expect.stringContaining('said: Insufficient Balance'),
			details: { httpStatus: status },
		});
		expect(opened).toBe(1);
	},
);

test('the advice quotes the platform if a cut answer is not the requested JSON', async () => {
	const answer = await answerOf(sse(delta({ content: '{"a":' }), finish('length')), said('no more tokens'));
	expect(itemOf(answer, JSON_FORM)).toMatchObject({
		ok: false,
		failure: {
			message: 'The answer is not the JSON that was asked for: it is JSON that is cut off or malformed',
			advice: expect.stringContaining('said: no more tokens.'),
		},
	});
});

test.each([
	['no status', { message: 'bad thing' }, undefined],
	['a status', { message: 'bad thing', code: 422 }, 422],
])('an error with HTTP 200 that contains %s is reported accordingly', async (_name, error, httpStatus) => {
	const failure = await failureTo(sse({ error }));
	expect(failure.message).toBe('The platform refused the question: bad thing');
	expect(failure.details).toEqual(httpStatus === undefined ? {} : { httpStatus });
});

test.each([
	['nothing', ''],
	['white space', ' \n'],
	['an empty object', '{}'],
	['an error without a message', '{"error":{}}'],
])('HTTP 400 with %s is reported with its status and without a reason', async (_name, body) => {
	const { result } = await askChat({ body: () => [body], status: 400, contentType: 'application/json' });
	expect(failureOf(result)).toMatchObject({
		message:
			'The platform refused the request to get an answer from the model: no reason was given (HTTP 400)',
		details: { httpStatus: 400 },
	});
});

const calls = (count: number): Json[] =>
	Array.from({ length: count }, (_, index) => ({
		...{ index, id: `c${index}` },
		function: { name: 'f', arguments: '{}' },
	}));

test.each([
	['too many tool calls', () => [sse(delta({ tool_calls: calls(40_000) }))]],
	[
		'too many tool calls in a body that is not a stream',
		() => [JSON.stringify({ choices: [{ message: { content: '', tool_calls: calls(40_000) } }] })],
	],
	['too much text', () => Array.from({ length: 40 }, () => sse(delta({ content: 'x'.repeat(1024 * 1024) })))],
])('an answer with %s breaks off, and the failure says why', async (_name, body) => {
	const { result, opened, pieces } = await askChat({ body });
	expect(failureOf(result).message).toMatch(
		/^The answer broke off after \d+ characters: .*it contains more than 33554432 characters/,
	);
	expect(opened).toBe(1);
	// The limit is checked before a chunk is added.
	const told = pieces.reduce((sum, { content }) => sum + content.length, 0);
	expect(told).toBeLessThanOrEqual(32 * 1024 * 1024);
});

test('a chunk that is nested too deeply is reported as unreadable', async () => {
	const deep = '['.repeat(100_000) + ']'.repeat(100_000);
	const failure = await failureTo(
		sse(delta({ content: 'a' })),
		`data: {"choices":[{"delta":${deep}}]}\n\n`,
		sse(finish('stop')),
	);
	expect(failure).toMatchObject({
		message: 'The answer broke off after 1 characters: a part of it cannot be read: it is nested too deeply',
		details: { content: 'a' },
	});
});

test('arguments that are nested too deeply stay text', async () => {
	const deep = `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
	const call = { index: 0, id: 'c', function: { name: 'f', arguments: deep } };
	const { toolCalls } = await answerOf(sse(delta({ tool_calls: [call] }), finish('tool_calls')));
	expect(toolCalls).toEqual([{ id: 'c', name: 'f', arguments: deep }]);
});

test.each([
	['an error object', 'error: {"code":500,"message":"the slot is gone","type":"server_error"}\n\n'],
	['a wrapped error object', 'error: {"error":{"message":"the slot is gone"}}\n\n'],
	['text', 'error: the slot is gone\n\n'],
])('a line of the field "error" with %s is reported, however it is cut', async (_name, line) => {
	const body = sse(delta({ content: 'Hel' })) + line;
	for (let at = 1; at < body.length; at++) {
		const { message } = await failureTo(body.slice(0, at), body.slice(at));
		expect(message).toBe('The answer broke off after 3 characters: the platform said: the slot is gone');
	}
});

test('a line of the field "error" before any answer is reported as the reason', async () => {
	const { message } = await failureTo('error: {"code":400,"message":"no such grammar"}\n\n');
	expect(message).toBe('The platform refused the question: no such grammar');
});

const BUSY = { status_code: 1002, status_msg: 'rate limit' };

test.each([
	[
		'an array',
		[{ error: { code: 400, message: 'bad thing' } }],
		/^The platform refused the question: bad thing$/,
	],
	[
		'a status next to empty choices',
		{ choices: null, base_resp: { status_code: 1008, status_msg: 'no balance' } },
		/^The account has too little credit/,
	],
	['a status without words', { base_resp: { status_code: 7 } }, /refused the question: status code 7$/],
	['a status that means busy', { base_resp: BUSY }, /^The platform is not accepting more requests/],
	[
		'a message that means busy',
		{ code: 12, msg: 'Too frequent', data: null },
		/^The platform is not accepting more requests/,
	],
	[
		'an object as message',
		{ object: 'error', message: { detail: [{ loc: ['body', 'seed'], msg: 'not permitted' }] } },
		/^The platform refused the question: body.seed: not permitted$/,
	],
])('an error with HTTP 200 is found in %s, alone or in a stream', async (_name, error, message) => {
	for (const body of [JSON.stringify(error), `data: ${JSON.stringify(error)}\n\n`]) {
		expect((await failureTo(body)).message).toMatch(message);
	}
});

test.each([
	['an array', [{ error: { code: 503, message: 'gone' } }]],
	['a status', { choices: null, base_resp: { status_code: 1027, status_msg: 'gone' } }],
	['the field of a vendor', { choices: [{ delta: {}, finish_reason: 'stop' }], x_groq: { error: 'gone' } }],
])('%s with an error in the middle of an answer says why it broke off', async (_name, error) => {
	const failure = await failureTo(
		sse(delta({ content: 'Hel' })),
		`data: ${JSON.stringify(error)}\n\n`,
		sse('[DONE]'),
	);
	expect(failure).toMatchObject({
		message: 'The answer broke off after 3 characters: the platform said: gone',
		details: { content: 'Hel' },
	});
});

test.each([
	[404, 'The model `any-235b-thinking-2507` does not exist.', /^Check the model's ID/],
	[400, 'Model Not Exist', /^Check the model's ID/],
	[400, 'model_not_found', /^Check the model's ID/],
	[400, 'Unknown model: vendor/family-4.6:free', /^Check the model's ID/],
	[400, 'The requested model "family-4.6:free" is not supported', /^Check the model's ID/],
	[400, 'family-9 is not a valid model ID', /^Check the model's ID/],
	[400, 'Invalid value for "model": x', /^Check the model's ID/],
	[404, 'Not found the model family-9 or Permission denied', /^Check the model's ID/],
	[404, 'Your project does not have access to model `family-9`', /^Check the model's ID/],
	[404, 'no route for this model', /^Check the model's ID/],
	[400, 'The model rejected the input, because an image is invalid', /^Compare the messages/],
	[400, 'Model crashed', /^Compare the messages/],
	[400, 'The model has crashed: unknown error. Some tensors were not found', /^Compare the messages/],
	[400, 'Invalid image: the model cannot read it', /^Compare the messages/],
	[400, 'API key not valid. Please pass a valid API key.', /^Check that the key in the FlowPlatform/],
	[400, 'Incorrect API key provided: sk-12***45. Get one at x.ai', /^Check that the key in the FlowPlatform/],
	[400, 'the API key is expired', /^Check that the key in the FlowPlatform/],
	[400, 'The tool "api_key" is not valid', /^Compare the messages/],
	[400, 'maximum context length is 4096 tokens (model: any-4-reasoning)', /^Send less text/],
	[400, 'Range of input length should be [1, 129024]', /^Send less text/],
	[413, 'no', /^Send less text/],
	[400, 'parameter.enable_thinking must be set to false for non-streaming calls', /^Turn 'Stream' on/],
	[400, 'enable_thinking is unknown', /^Set 'Reasoning' to Default/],
	[400, "'max_tokens' or 'max_completion_tokens' is too large: 9 (9 > 8 - 1)", /^Send less text/],
	[400, "'max_tokens' is not supported. Use 'max_completion_tokens' instead.", /"max_completion_tokens"/],
	[400, 'stream_options is unknown', /^Turn 'Include Usage' off/],
])('the advice fits what the platform says: HTTP %d, %s', async (status, message, advice) => {
	const asked = { enable_thinking: true };
	const { result } = await askChat({ body: () => [JSON.stringify({ error: { message } })], status, asked });
	const failure = failureOf(result);
	expect(failure.advice).toMatch(advice);
	const isOfKey = failure.kind === 'credential';
	expect(isOfKey ? failure.advice : failure.message).toContain(message);
	expect(failure.details).toMatchObject({ httpStatus: status });
	expect(failure.message).toMatch(
		isOfKey ? /^The platform does not accept the API key/ : /^The platform refused the question: /,
	);
});

test.each([
	['Model not found', /^Check the model's ID/],
	[{ error: 'Model is not available' }, /^Check the model's ID/],
])('a missing model is about the question, however it is said: %j', async (detail, advice) => {
	const { result } = await askChat({ body: () => [JSON.stringify({ detail })], status: 404 });
	expect(failureOf(result)).toMatchObject({
		message: expect.stringMatching(/^The platform refused the question: Model /),
		advice: expect.stringMatching(advice),
	});
});

test('a blocked account is blamed on the key', async () => {
	const body = JSON.stringify({ error: { message: 'Your account was suspended for violating our terms' } });
	const { result } = await askChat({ body: () => [body], status: 403 });
	expect(failureOf(result)).toMatchObject({ kind: 'credential' });
});

test("a path with the word 'model' that does not exist is not taken for a missing model", async () => {
	const body = JSON.stringify({ message: 'Route POST:/model/v9/chat/completions not found' });
	const { result } = await askChat({ body: () => [body], status: 404 });
	expect(failureOf(result).message).not.toMatch(/refused the question/);
});

test.each([
	['Your input was flagged', JSON.stringify({ error: { message: 'Your input was flagged' } })],
	['Content violates usage guidelines.', JSON.stringify({ error: 'Content violates usage guidelines.' })],
	['a web page instead of JSON (HTTP 403)', '<html>Sorry, you have been blocked</html>'],
])('neither a refused content nor a firewall is blamed on the key: %s', async (said, body) => {
	const { result } = await askChat({ body: () => [body], status: 403 });
	expect(failureOf(result)).toMatchObject({
		kind: 'refused',
		message: `The platform refused the request to get an answer from the model: ${said}`,
		advice: expect.stringMatching(/^Compare the model's ID, the messages/),
	});
});

test('a list of what is wrong in the body is about the question', async () => {
	const detail = [{ loc: ['body', 'enable_thinking'], msg: 'Extra inputs are not permitted' }];
	const asked = { enable_thinking: false };
	const { result } = await askChat({ body: () => [JSON.stringify({ detail })], status: 422, asked });
	expect(failureOf(result)).toMatchObject({
		message: 'The platform refused the question: body.enable_thinking: Extra inputs are not permitted',
		advice: expect.stringMatching(/^Set 'Reasoning' to Default/),
	});
});

test.each<[number, string, JsonObject, RegExp]>([
	[500, 'cannot use tools with stream', { stream: true }, /^Turn 'Stream' off\.$/],
	[400, 'cannot use tools with stream', { stream: true }, /^Turn 'Stream' off\.$/],
	[400, 'only streaming is supported', { stream: false }, /^Turn 'Stream' on\.$/],
	[404, 'No endpoints found that support tool use', {}, /^Choose a model that can do/],
	[400, 'library/model does not support image input', {}, /^Choose a model that can do/],
	[400, 'reasoning cannot be disabled', {}, /^Set 'Reasoning' to On or Off, or choose another model\.$/],
	...[
		'thinking is enabled but reasoning_content is missing in assistant tool call message at index 2',
		'Missing `reasoning_content` field in the assistant message',
		'The `reasoning_content` in the thinking mode must be passed back to the API.',
	].map((said): [number, string, JsonObject, RegExp] => [400, said, {}, /^Set 'Reasoning' to Off, or use/]),
	[400, 'reasoning_content must not be passed in the messages', {}, /^Set 'Reasoning' to On or Off/],
	[500, 'thinking is not supported', { thinking: { type: 'enabled' } }, /^Set 'Reasoning' to Default/],
	[500, 'it burns', { stream: true }, /^The platform seems to be having problems/],
	[500, 'context deadline exceeded (Client.Timeout)', {}, /^The platform seems to be having problems/],
	[502, 'stream error: stream ID 7; INTERNAL_ERROR', {}, /^The platform seems to be having problems/],
	[500, 'the request exceeds the available context size', {}, /^Send less text/],
])('the advice fits what was sent: HTTP %d, %s, %j', async (status, message, asked, advice) => {
	const { result } = await askChat({ body: () => [JSON.stringify({ error: { message } })], status, asked });
	expect(failureOf(result).advice).toMatch(advice);
	expect(failureOf(result).message).toContain(message);
});

/** An answer as a whole body, and the hint that its item shows. */
async function hintOn(
	message: JsonObject,
	reasoning: 'default' | 'on' | 'off',
	finish_reason = 'stop',
	more = {},
) {
	const body = JSON.stringify({ choices: [{ message, finish_reason }], ...more });
	return valueOf(describeAnswer(await answerOf(body), { ...FORM, reasoning }, redactor([]))).warning;
}

test('a switch without effect is a hint, and no hint advises what is already set', async () => {
	const thought = { content: '', reasoning_content: 'hm' };
	expect(await hintOn({ content: 'Yes' }, 'on')).toMatch(
		/^The answer came without reasoning although 'Reasoning' is On/,
	);
	expect(await hintOn({ content: 'Yes', reasoning_content: 'hm' }, 'off')).toMatch(
		/^The model reasoned although 'Reasoning' is Off/,
	);
	const usage = { completion_tokens_details: { reasoning_tokens: 40 } };
	expect(await hintOn({ content: 'Yes' }, 'off', 'stop', { usage })).toMatch(/its reasoning may be billed/);
	expect(await hintOn({ content: 'Yes' }, 'on', 'stop', { usage })).toBeUndefined();
	expect(await hintOn({ content: 'Yes' }, 'off')).toBeUndefined();
	for (const reason of ['stop', 'length']) {
		expect(await hintOn(thought, 'off', reason)).not.toContain("set 'Reasoning' to Off");
		expect(await hintOn(thought, 'default', reason)).toContain("set 'Reasoning' to Off");
	}
	expect(await hintOn({ content: '' }, 'default', 'tool_calls')).toContain('its answer contains no call');
	for (const opening of ['<tool_call>', '<|tool_calls_begin|>', '[TOOL_CALLS]'])
		expect(await hintOn({ content: `\n${opening}{"name":"pay"}` }, 'default')).toMatch(
			/^The model wrote a tool call/,
		);
	const after = 'I look.\n<tool_call>\n{"name": "pay"}\n</tool_call>';
	expect(await hintOn({ content: after }, 'default')).toMatch(/^The model wrote a tool call/);
	for (const call of [
		'\n<tool_call>pay\n<arg_key>sum</arg_key>',
		'\n<tool_call>pay</tool_call>',
		'<minimax:tool_call>\n<invoke name="pay">',
		'<|tool_calls_section_begin|><|tool_call_begin|>functions.pay:0',
		'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>pay<｜tool▁sep｜>{}',
		'<｜DSML｜function_calls>\n<｜DSML｜invoke name="pay">',
	]) {
		expect(await hintOn({ content: `I look.${call}` }, 'default')).toMatch(/^The model wrote a tool call/);
	}
	for (const content of ['Write <tool_call> first', 'Write:\n<tool_call> first'])
		expect(await hintOn({ content }, 'default')).toBeUndefined();
	const call = { id: 'a', function: { name: 'pay', arguments: '{"a":' } };
	expect(await hintOn({ content: '', tool_calls: [call] }, 'default', 'tool_calls')).toContain(
		'"pay" are not a JSON object',
	);
});

test.each<[string, JsonObject]>([
	['pictures', { content: '', images: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }] }],
	['a picture as its content', { content: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }] }],
	['a sound', { content: null, audio: { id: 'a', data: 'AAAA' } }],
])('an answer of %s is not called empty', async (_name, message) => {
	const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
	const item = itemOf(valueOf((await askChat({ body: () => [body] })).result));
	expect(item.ok && item.value.warning).toMatch(
		/^The answer is an image or a sound instead of text\. Choose a model that answers in text\.$/,
	);
});

test('an answer that is one of several says so', async () => {
	const choices = [0, 1].map((index) => ({ index, message: { content: `${index}` }, finish_reason: 'stop' }));
	const body = () => [JSON.stringify({ choices })];
	const warningOf = async (asked: JsonObject) => {
		const item = itemOf(valueOf((await askChat({ body, asked })).result));
		return item.ok && item.value;
	};
	expect(await warningOf({ n: 2 })).toMatchObject({
		content: '0',
		warning: expect.stringMatching(/^The model gave several answers, of which this is the first\./),
	});
	expect(await warningOf({})).not.toHaveProperty('warning');
});

test('a question that a pause of the platform held back was not sent, and the failure says so', async () => {
	const { result, opened } = await askChat({
		body: () => [],
		totalMs: 4_000,
		rate: await pausedRate(3_600_000),
	});
	expect(opened).toBe(0);
	expect(failureOf(result)).toMatchObject({
		kind: 'notSubmitted',
		message: expect.stringMatching(/asked for a pause, which lasts another 359\d seconds$/),
		advice: 'Run it again after the pause.',
	});
});

const line = (text: string): string => `${text}\n\n`;

/** What a server or a gateway writes into a stream that it has begun, and the words that must be told. */
const FAILURES: ReadonlyArray<readonly [string, string]> = [
	[line('data: upstream is gone'), 'upstream is gone'],
	[line('upstream is gone'), 'upstream is gone'],
	[line('Error: upstream is gone'), 'Error: upstream is gone'],
	[line('event: error'), 'an error without a message'],
	[line('event: error\ndata:'), 'an error without a message'],
	[line('event: error\ndata: upstream is gone'), 'upstream is gone'],
	[line('{\n  "error": {\n    "message": "upstream is gone"\n  }\n}'), 'upstream is gone'],
	[line('data: {\ndata: "error": {"message": "upstream is gone"}\ndata: }'), 'upstream is gone'],
	[line('<html>\n<body>502 Bad Gateway</body>\n</html>'), 'a web page'],
	[line('data: <html><body>502 Bad Gateway</body></html>'), 'a web page'],
	[sse({ detail: 'upstream is gone' }), 'upstream is gone'],
	[sse({ message: 'upstream is gone' }), 'upstream is gone'],
	[sse({ msg: 'upstream is gone', id: 'a', model: 'm' }), 'upstream is gone'],
	[sse({ errors: [{ message: 'upstream is gone' }] }), 'upstream is gone'],
	[sse({ status: 'error' }), '{"status":"error"}'],
	[sse({ status: 'error', reason: 'gone' }), '{"status":"error","reason":"gone"}'],
	[sse({ success: false }), '{"success":false}'],
	[sse({ success: false, message: 'upstream is gone' }), 'upstream is gone'],
	[sse({ code: 'E1042', requestId: 'r1' }), '{"code":"E1042","requestId":"r1"}'],
	[sse({ code: 1302, message: 'upstream is gone' }), 'upstream is gone'],
	[sse({ choices: [], message: 'upstream is gone' }), 'upstream is gone'],
	[sse('null'), 'null'],
	[sse('500'), '500'],
];

describe.each(FAILURES)('the words of a failure in a stream: %j', (failure, words) => {
	const begun = sse(delta({ content: 'Hel' }));
	const done = sse('[DONE]');

	test('make an answer without a finish reason a failure, whether [DONE] follows or not', async () => {
		for (const end of ['', done]) {
			const { message, details } = await failureTo(begun, failure, end);
			expect(message).toBe(`The answer broke off after 3 characters: the platform said: ${words}`);
			expect(details).toMatchObject({ content: 'Hel' });
		}
	});

	test('are told if they come alone', async () => {
		for (const end of ['', done]) {
			const { message } = await failureTo(failure, end);
			expect(message.replaceAll('\n', ' ')).toContain(words);
		}
	});

	test('leave a finished answer as it is', async () => {
		const { result } = await askChat({ body: () => [begun, failure, sse(finish('stop')), done] });
		// An error that says so itself ends the answer before its finish reason.
		if (result.ok) expect(result.value.content).toBe('Hel');
		else expect(result.failure.message).toContain(words);
		const { content, aside } = await answerOf(begun, sse(finish('stop')), failure, done);
		expect([content, words.startsWith('{') ? words : aside]).toEqual(['Hel', words]);
	});
});

test.each(['ping', ': ping', '{"type":"ping"}', '{}', '1767323045123', 'keep-alive'])(
	'%j between the parts of an answer means nothing',
	async (data) => {
		const answer = await answerOf(sse(delta({ content: 'Hel' }), data, delta({ content: 'lo' }), '[DONE]'));
		expect(answer).toMatchObject({ content: 'Hello', aside: '' });
	},
);

test.each([
	[503, 3],
	[200, 1],
])(
	'after HTTP %d with a body whose compression cannot be read, the number of questions is %d',
	async (status, times) => {
		const body = function* (): Iterable<string> {
			yield '';
			throw Object.assign(new Error('incorrect header check'), { code: 'Z_DATA_ERROR' });
		};
		const { opened, result } = await askChat({ body, status, tries: 3 });
		expect(opened).toBe(times);
		expect(failureOf(result).message).toContain('incorrect header check');
	},
);
