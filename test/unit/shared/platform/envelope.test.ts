import fc from 'fast-check';

import { ofWrite } from '../../../../nodes/shared/http/outcome';
import { classify } from '../../../../nodes/shared/platform/envelope';

const LONG = 'x'.repeat(300);

function reply(status: number, body: unknown, headers: Record<string, string> = {}) {
	const text = typeof body === 'string' ? body : JSON.stringify(body);
	return { kind: 'reply', status, headers, text } as const;
}

describe('classify', () => {
	it('returns the data of a success envelope', () => {
		expect(classify(reply(200, { code: 0, msg: 'Success', data: { prompt_id: 'p' } }))).toEqual({
			kind: 'answered',
			data: { prompt_id: 'p' },
		});
	});

	it.each([
		['a number', 1003],
		['a number written as text', '1003'],
	])('treats a code other than 0 with HTTP 200 as a refusal: %s', (_name, code) => {
		expect(classify(reply(200, { code, msg: 'bad sampler', data: { prompt_id: 'p' } }))).toEqual({
			kind: 'refused',
			status: 200,
			code: 1003,
			text: 'bad sampler',
		});
	});

	it.each([
		['a textual code', { code: 'INVALID_PARAM', msg: 'cfg too big' }],
		['a textual code without msg', { code: 'INVALID_PARAM' }],
		['a textual code and an empty msg', { code: 'INVALID_PARAM', msg: ' ' }],
		['a textual code and data', { code: 'INVALID_PARAM', msg: 'cfg too big', data: { prompt_id: 'p' } }],
		['an empty code', { code: '', msg: 'cfg too big' }],
		['no code', { msg: 'cfg too big' }],
		['a success word as its code', { code: 'SUCCESS', msg: 'made' }],
		['another success word as its code', { code: 'ok', msg: 'ok' }],
	])('treats an envelope with %s as unclear', (_name, body) => {
		expect(classify(reply(200, body))).toMatchObject({ kind: 'unclear', inItsForm: false });
	});

	it.each([
		['HTTP 429', reply(429, { code: 1, msg: 'slow down' }, { 'retry-after': '7' }), '7'],
		['HTTP 429 without an envelope', reply(429, 'slow down', { 'retry-after': '7' }), '7'],
		['429 in the envelope with HTTP 200', reply(200, { code: 429, msg: 'slow down' }), undefined],
		['429 as text in the envelope', reply(200, { code: '429' }, { 'retry-after': '7' }), '7'],
		['429 in the envelope with HTTP 503', reply(503, { code: 429 }, { 'retry-after': '7' }), '7'],
	])('treats %s as busy and keeps Retry-After unchanged', (_name, exchange, retryAfter) => {
		expect(classify(exchange)).toMatchObject({ kind: 'busy', status: exchange.status, retryAfter });
	});

	it.each([
		['in words', reply(429, { code: 7, msg: 'Insufficient balance' })],
		['in words, with HTTP 200', reply(200, { code: 429, msg: '账户余额不足' })],
		['by a code', reply(429, { error: { message: 'Too much', code: 'insufficient_quota' } })],
		['by a code with more words', reply(429, { code: 7, msg: 'ERR_INSUFFICIENT_CREDITS' })],
		['at its end', reply(429, { code: 7, msg: 'This account has no credits.' })],
		['by the type of the error', reply(429, { error: { message: 'Too much', type: 'budget_exceeded' } })],
	])('treats 429 as a refusal if the account has no credit, %s', (_name, exchange) => {
		expect(classify(exchange)).toMatchObject({ kind: 'refused', status: exchange.status });
	});

	it.each([
		'Budget has been exceeded! Current cost: 5.0, Max budget: 1.0',
		'ExceededBudget: End User=u over budget. Spend=0.2, Budget=0.1',
		'Your team t has either used all available credits or reached its monthly spending limit.',
		'Your credit balance is too low to access the API.',
		'The request failed because your account has an overdue balance.',
		'user quota is not enough (request id: 7)',
		'用户额度不足, 剩余额度: ¥0.000000',
	])('treats 429 as a refusal in the words of many gateways: %s', (message) => {
		expect(classify(reply(429, { error: { message } }))).toMatchObject({ kind: 'refused', status: 429 });
	});

	it.each([
		'You exceeded your current quota. Retry in 30 s.',
		'The quota of requests per minute is not enough.',
		'Too many requests. No credits were charged for this request.',
		'Too many requests. Upgrade now, no credit card required.',
		'Rate limit reached. Raise your monthly spending limit for more requests.',
		'当前模型 TPM 额度不足，请稍后重试',
	])('treats what may pass as busy: %s', (msg) => {
		expect(classify(reply(429, { code: 7, msg }))).toMatchObject({ kind: 'busy' });
	});

	it.each([300, 301, 302, 303, 304, 307, 308])('treats HTTP %d as a redirect', (status) => {
		expect(classify(reply(status, '', { location: 'https://other.example/x' }))).toEqual({
			kind: 'redirected',
			status,
			location: 'https://other.example/x',
		});
	});

	it.each([500, 502, 503, 504, 599, 408, 499])(
		'distinguishes HTTP %d of the service from that of a gateway',
		(status) => {
			expect(classify(reply(status, { code: 500, msg: 'out of memory' }))).toEqual({
				kind: 'unclear',
				status,
				inItsForm: true,
				text: 'out of memory',
			});
			expect(classify(reply(status, '<html>Bad Gateway</html>'))).toEqual({
				kind: 'unclear',
				status,
				inItsForm: false,
				text: 'a web page instead of JSON',
			});
		},
	);

	it('ignores a success code with HTTP 5xx', () => {
		expect(classify(reply(500, { code: 0, msg: 'Success', data: {} }))).toMatchObject({
			kind: 'unclear',
			inItsForm: false,
		});
	});

	it.each([
		[400, { code: 7, msg: 'steps: too large' }, 7],
		[401, { message: 'no key' }, null],
		[403, 'Forbidden', null],
		[404, '<html>nginx</html>', null],
		[422, { detail: 'bad' }, null],
	])('treats HTTP %d as a refusal, with or without an envelope', (status, body, code) => {
		expect(classify(reply(status, body))).toMatchObject({ kind: 'refused', status, code });
	});

	it.each([
		['a page', 400, '<html>nginx</html>'],
		['nothing', 409, ''],
		['a success code', 400, { code: 0, msg: 'Success', data: { prompt_id: 'p' } }],
		['JSON without a message', 422, { data: {} }],
	])('marks a refusal without words of the service: %s', (_name, status, body) => {
		expect(classify(reply(status, body))).toMatchObject({ kind: 'refused', status, wordless: true });
	});

	it.each([
		['an envelope', { code: 7, msg: 'steps: too large' }],
		['an envelope without msg', { code: 7 }],
		['other JSON with a message', { detail: 'bad' }],
	])('does not mark a refusal in the words of the service: %s', (_name, body) => {
		expect(classify(reply(400, body))).not.toHaveProperty('wordless', true);
	});

	it.each([0, 7])('treats an envelope with code %d in a redirect as a broken answer', (code) => {
		const body = { code, msg: 'x', data: { prompt_id: 'p' } };
		expect(classify(reply(302, body, { location: 'https://other.example/x' }))).toMatchObject({
			kind: 'unclear',
			status: 302,
		});
	});

	it('passes on the field and the message of a validator', () => {
		const body = { detail: [{ loc: ['body', 'workflow_id'], msg: 'field required' }] };
		expect(classify(reply(422, body))).toMatchObject({ text: 'body.workflow_id: field required' });
	});

	it.each([
		['nothing', '', 'an empty answer'],
		['white space', ' \n', 'an empty answer'],
		['a web page', '<!DOCTYPE html><p>Login</p>', 'a web page instead of JSON'],
		['text', 'OK', 'an answer that is not JSON: OK'],
		['long text, which is cut only once it is redacted', LONG, `an answer that is not JSON: ${LONG}`],
		[
			'an envelope that is cut off',
			'{"code":0,"data":{"prompt_i',
			'an answer that is cut off or is not JSON',
		],
		['JSON without a code', '{"data":{}}', 'an answer without the expected "code" field'],
		['null', 'null', 'an answer without the expected "code" field'],
		['a list', '[{"code":0}]', 'an answer without the expected "code" field'],
		['a number', '0', 'an answer without the expected "code" field'],
		['a code that is null', '{"code":null}', 'an answer without the expected "code" field'],
		['a code that is a boolean', '{"code":false}', 'an answer without the expected "code" field'],
		['a code that is empty text', '{"code":""}', 'an answer without the expected "code" field'],
		['a textual code', '{"code":"ok"}', 'an answer without the expected "code" field'],
	])('treats %s with HTTP 200 as broken and describes it', (_name, text, said) => {
		expect(classify(reply(200, text))).toEqual({
			kind: 'unclear',
			status: 200,
			inItsForm: false,
			text: said,
		});
	});

	it.each([
		[200, 'Please log in <a href="/login">here</a>', 'a web page instead of JSON'],
		[400, 'Invalid key', 'an answer that is not JSON: Invalid key'],
		[503, 'Too busy', 'an answer that is not JSON: Too busy'],
	])('distinguishes pages from words that are called HTML: HTTP %d with %j', (status, said, text) => {
		const html = { 'content-type': 'text/HTML; charset=utf-8' };
		expect(classify(reply(status, said, html))).toMatchObject({ text });
	});

	it.each([
		['msg', { code: 1, msg: 'words' }],
		['message', { code: 1, message: 'words' }],
		['error', { code: 1, error: 'words' }],
		['error.message', { code: 1, error: { message: 'words' } }],
		['detail', { code: 1, detail: 'words' }],
		['message, if msg is blank', { code: 1, msg: ' ', message: 'words' }],
	])('finds the message of the service in %s', (_name, body) => {
		expect(classify(reply(200, body))).toMatchObject({ text: 'words' });
	});

	it('finds the message of the service below many levels of the same key', () => {
		const deep = `${'{"error":'.repeat(400)}{"msg":"words"}${'}'.repeat(400)}`;
		expect(classify(reply(400, deep))).toMatchObject({ kind: 'refused', text: 'words' });
	});

	it('distinguishes requests that were never sent from those that may have been carried out', () => {
		for (const kind of ['notSent', 'unclear'] as const) {
			expect(classify({ kind, code: 'X', text: 'why' })).toEqual({ kind, code: 'X', text: 'why' });
		}
		expect(classify({ kind: 'cancelled' })).toEqual({ kind: 'cancelled' });
	});

	it('returns an outcome with a text for any answer, and success only for an envelope', () => {
		const body = fc.oneof(
			fc.string(),
			fc.json(),
			fc.jsonValue().map((data) => JSON.stringify({ code: 0, data })),
		);
		fc.assert(
			fc.property(fc.integer({ min: 100, max: 599 }), body, (status, text) => {
				const outcome = classify(reply(status, text));
				if (outcome.kind === 'answered') expect(JSON.parse(text)).toHaveProperty('code');
				else if ('text' in outcome) expect(outcome.text).not.toBe('');
			}),
		);
	});

	it('never treats an answer that was cut off as success', () => {
		const whole = JSON.stringify({ code: 0, msg: 'Success', data: { prompt_id: 'p-1', prompt_token: 't' } });
		for (let length = 0; length < whole.length; length++) {
			expect(classify(reply(200, whole.slice(0, length))).kind).toBe('unclear');
		}
	});
});

describe('ofWrite', () => {
	it.each([400, 402, 409, 410, 422, 451, 460])(
		'does not treat HTTP %d without words of the service as a refusal',
		(status) => {
			for (const body of ['<html>nginx</html>', '', { code: 0, msg: 'Success', data: { prompt_id: 'p' } }]) {
				expect(ofWrite(classify(reply(status, body)))).toMatchObject({ kind: 'unclear', status });
			}
			for (const body of [{ code: 7, msg: 'no' }, { detail: 'bad' }]) {
				expect(ofWrite(classify(reply(status, body)))).toMatchObject({ kind: 'refused', status });
			}
		},
	);

	it.each([401, 403, 404, 405, 413])('treats HTTP %d as a refusal, whoever sent it', (status) => {
		expect(ofWrite(classify(reply(status, '<html>nginx</html>')))).toMatchObject({
			kind: 'refused',
			status,
		});
	});

	it('treats HTTP 303 as unclear, because it may lead to the result', () => {
		const location = { location: '/made/7' };
		expect(ofWrite(classify(reply(303, '', location)))).toMatchObject({ kind: 'unclear', status: 303 });
		for (const status of [301, 302, 307, 308]) {
			expect(ofWrite(classify(reply(status, '', location)))).toMatchObject({
				kind: 'redirected',
				status,
			});
		}
	});

	it('treats a stop as an unclear outcome', () => {
		expect(ofWrite({ kind: 'cancelled' })).toMatchObject({ kind: 'unclear', code: 'ERR_CANCELED' });
	});

	it('never treats a gateway status as a refusal, whatever the body', () => {
		const body = fc.oneof(fc.string(), fc.json(), fc.constantFrom('{"code":7,"msg":"no"}', '{"code":0}'));
		const status = fc.oneof(fc.integer({ min: 500, max: 599 }), fc.constantFrom(408, 499));
		fc.assert(
			fc.property(status, body, (said, text) => {
				expect(ofWrite(classify(reply(said, text))).kind).toBe('unclear');
			}),
		);
	});
});

describe('codes with HTTP 200', () => {
	const TERMS = ['7001', 'too frequent', '系统繁忙'];

	it.each([
		['the number', { code: 7001, msg: 'no' }],
		['the number as text', { code: '7001', msg: 'no', data: null }],
		['words of the message', { code: 12, msg: 'Requests are Too Frequent.' }],
		['words with empty data', { code: 12, msg: 'too frequent', data: {} }],
		['words in another language', { code: 12, msg: '系统繁忙，请稍后再试' }],
	])('treats a busy code or message as busy: %s', (_name, body) => {
		const outcome = classify(reply(200, body, { 'retry-after': '3' }), TERMS);
		expect(outcome).toMatchObject({ kind: 'busy', retryAfter: '3' });
		expect(ofWrite(outcome)).toBe(outcome);
	});

	it.each([
		['a part of another number', { code: 17_001, msg: 'no' }, 'refused'],
		['busy words in a success', { code: 0, msg: 'too frequent', data: 1 }, 'answered'],
		['an answer with data', { code: 12, msg: 'too frequent', data: { prompt_id: 'p' } }, 'refused'],
	])('does not treat as busy: %s', (_name, body, kind) => {
		expect(classify(reply(200, body), TERMS)).toMatchObject({ kind });
	});

	it.each([500, 502, 503, 504])('treats %d as unclear, like the HTTP status', (code) => {
		const outcome = classify(reply(200, { code, msg: 'trouble' }));
		expect(outcome).toMatchObject({ kind: 'unclear', status: 200, inItsForm: true });
		expect(ofWrite(outcome)).toBe(outcome);
	});
});
