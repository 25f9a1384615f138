import fc from 'fast-check';

import type { Exchange } from '../../../../nodes/shared/http/exchange';
import { ofWrite } from '../../../../nodes/shared/http/outcome';
import { classify } from '../../../../nodes/shared/platform/envelope';

function reply(status: number, body: unknown, headers: Record<string, string> = {}): Exchange {
	return { kind: 'reply', status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) };
}

describe('classify', () => {
	it('hands out the data of an envelope of success', () => {
		expect(classify(reply(200, { code: 0, msg: 'Success', data: { prompt_id: 'p' } }))).toEqual({
			kind: 'answered',
			data: { prompt_id: 'p' },
		});
	});

	it.each([
		['a number', 1003],
		['a number written as text', '1003'],
	])('takes a code other than 0 under HTTP 200 as a refusal: %s', (_name, code) => {
		expect(classify(reply(200, { code, msg: 'bad sampler', data: { prompt_id: 'p' } }))).toEqual({
			kind: 'refused',
			status: 200,
			code: 1003,
			text: 'bad sampler',
		});
	});

	it.each([{}, { data: null }])('takes a code in words with a msg as a refusal: %j', (more) => {
		expect(classify(reply(200, { code: 'INVALID_PARAM', msg: 'cfg too big', ...more }))).toEqual({
			kind: 'refused',
			status: 200,
			code: null,
			text: 'cfg too big',
		});
	});

	it.each([
		['no msg', { code: 'INVALID_PARAM' }],
		['an empty msg', { code: 'INVALID_PARAM', msg: ' ' }],
		['data', { code: 'INVALID_PARAM', msg: 'cfg too big', data: { prompt_id: 'p' } }],
		['an empty code', { code: '', msg: 'cfg too big' }],
		['no code', { msg: 'cfg too big' }],
		['a word of success', { code: 'SUCCESS', msg: 'made' }],
		['another one', { code: 'ok', msg: 'ok' }],
	])('takes a code in words with %s for no answer', (_name, body) => {
		expect(classify(reply(200, body))).toMatchObject({ kind: 'unclear', inItsForm: false });
	});

	it.each([
		['HTTP 429', reply(429, { code: 1, msg: 'slow down' }, { 'retry-after': '7' }), '7'],
		['HTTP 429 without an envelope', reply(429, 'slow down', { 'retry-after': '7' }), '7'],
		['429 in the envelope under HTTP 200', reply(200, { code: 429, msg: 'slow down' }), undefined],
		['429 as text in the envelope', reply(200, { code: '429' }, { 'retry-after': '7' }), '7'],
		['429 in the envelope under HTTP 503', reply(503, { code: 429 }, { 'retry-after': '7' }), '7'],
	])('takes %s as busy and keeps Retry-After as it came', (_name, exchange, retryAfter) => {
		expect(classify(exchange)).toMatchObject({ kind: 'busy', retryAfter });
	});

	it.each([300, 301, 302, 303, 304, 307, 308])('takes HTTP %d as a redirect', (status) => {
		expect(classify(reply(status, '', { location: 'https://other.example/x' }))).toEqual({
			kind: 'redirected',
			status,
			location: 'https://other.example/x',
		});
	});

	it.each([500, 502, 503, 504, 599, 408, 499])(
		'tells HTTP %d of the service from one of a gateway',
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

	it('takes HTTP 5xx with a code of success for nothing that was said', () => {
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
	])('takes HTTP %d as a refusal, with or without an envelope', (status, body, code) => {
		expect(classify(reply(status, body))).toMatchObject({ kind: 'refused', status, code });
	});

	it.each([
		['a page', 400, '<html>nginx</html>'],
		['nothing', 409, ''],
		['a code of success', 400, { code: 0, msg: 'Success', data: { prompt_id: 'p' } }],
		['JSON without words', 422, { data: {} }],
	])('marks a refusal that is nobody’s word: %s', (_name, status, body) => {
		expect(classify(reply(status, body))).toMatchObject({ kind: 'refused', status, wordless: true });
	});

	it.each([
		['an envelope', { code: 7, msg: 'steps: too large' }],
		['an envelope without msg', { code: 7 }],
		['other JSON with words', { detail: 'bad' }],
	])('marks no refusal in the words of the service: %s', (_name, body) => {
		expect(classify(reply(400, body))).not.toHaveProperty('wordless', true);
	});

	it.each([408, 499, 504])(
		'takes a timeout that the envelope tells of under HTTP 200 for no refusal: %d',
		(code) => {
			expect(classify(reply(200, { code, msg: 'upstream timed out' }))).toMatchObject({ kind: 'unclear' });
			expect(classify(reply(400, { code, msg: 'upstream timed out' }))).toMatchObject({ kind: 'unclear' });
		},
	);

	it.each([0, 7])('takes an envelope with code %d under a redirect for a broken answer', (code) => {
		const body = { code, msg: 'x', data: { prompt_id: 'p' } };
		expect(classify(reply(302, body, { location: 'https://other.example/x' }))).toMatchObject({
			kind: 'unclear',
			status: 302,
		});
	});

	it('passes on what a validator says, place and words', () => {
		const body = { detail: [{ loc: ['body', 'workflow_id'], msg: 'field required' }] };
		expect(classify(reply(422, body))).toMatchObject({ text: 'body.workflow_id: field required' });
	});

	it.each([
		['nothing', '', 'an empty answer'],
		['white space', ' \n', 'an empty answer'],
		['a web page', '<!DOCTYPE html><p>Login</p>', 'a web page instead of JSON'],
		['text', 'OK', 'an answer that is not JSON: OK'],
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
		['a code that is a truth value', '{"code":false}', 'an answer without the expected "code" field'],
		['a code that is empty text', '{"code":""}', 'an answer without the expected "code" field'],
		['a code in words', '{"code":"ok"}', 'an answer without the expected "code" field'],
	])('takes %s under HTTP 200 as broken and says what came', (_name, text, said) => {
		expect(classify(reply(200, text))).toEqual({
			kind: 'unclear',
			status: 200,
			inItsForm: false,
			text: said,
		});
	});

	it('tells a web page by its content type as well', () => {
		expect(
			classify(reply(200, 'Please log in', { 'content-type': 'text/HTML; charset=utf-8' })),
		).toMatchObject({
			text: 'a web page instead of JSON',
		});
	});

	it.each([
		['msg', { code: 1, msg: 'words' }],
		['message', { code: 1, message: 'words' }],
		['error', { code: 1, error: 'words' }],
		['error.message', { code: 1, error: { message: 'words' } }],
		['detail', { code: 1, detail: 'words' }],
		['message, where msg is blank', { code: 1, msg: ' ', message: 'words' }],
	])('finds the words of the service in %s', (_name, body) => {
		expect(classify(reply(200, body))).toMatchObject({ text: 'words' });
	});

	it('finds the words of the service below many levels of the same key', () => {
		const deep = `${'{"error":'.repeat(400)}{"msg":"words"}${'}'.repeat(400)}`;
		expect(classify(reply(400, deep))).toMatchObject({ kind: 'refused', text: 'words' });
	});

	it('tells what was never sent from what may have been carried out', () => {
		const lost = { kind: 'lost', code: 'X', reason: 'why' } as const;
		expect(classify({ ...lost, sent: 'no' })).toEqual({ kind: 'notSent', code: 'X', text: 'why' });
		expect(classify({ ...lost, sent: 'unknown' })).toEqual({ kind: 'unclear', code: 'X', text: 'why' });
		expect(classify({ kind: 'cancelled' })).toEqual({ kind: 'cancelled' });
	});

	it('comes to an outcome with a text whatever arrives, and success needs an envelope', () => {
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

	it('never takes an answer that was cut off for success', () => {
		const whole = JSON.stringify({ code: 0, msg: 'Success', data: { prompt_id: 'p-1', prompt_token: 't' } });
		for (let length = 0; length < whole.length; length++) {
			expect(classify(reply(200, whole.slice(0, length))).kind).toBe('unclear');
		}
	});
});

describe('ofWrite', () => {
	it.each([400, 402, 409, 410, 422, 451, 460])('takes HTTP %d in nobody’s words for no refusal', (status) => {
		for (const body of ['<html>nginx</html>', '', { code: 0, msg: 'Success', data: { prompt_id: 'p' } }]) {
			expect(ofWrite(classify(reply(status, body)))).toMatchObject({ kind: 'unclear', status });
		}
		for (const body of [{ code: 7, msg: 'no' }, { detail: 'bad' }]) {
			expect(ofWrite(classify(reply(status, body)))).toMatchObject({ kind: 'refused', status });
		}
	});

	it.each([401, 403, 404, 405, 413])('takes HTTP %d for a refusal whoever says it', (status) => {
		expect(ofWrite(classify(reply(status, '<html>nginx</html>')))).toMatchObject({
			kind: 'refused',
			status,
		});
	});

	it('takes a redirect to a page of its own for what may be the work’s', () => {
		const location = { location: '/made/7' };
		expect(ofWrite(classify(reply(303, '', location)))).toMatchObject({ kind: 'unclear', status: 303 });
		for (const status of [301, 302, 307, 308]) {
			expect(ofWrite(classify(reply(status, '', location)))).toMatchObject({
				kind: 'redirected',
				status,
			});
		}
	});

	it('takes a stop for an answer that never came', () => {
		expect(ofWrite({ kind: 'cancelled' })).toMatchObject({ kind: 'unclear', code: 'ERR_CANCELED' });
	});

	it('takes nothing that gateways say of themselves for a refusal, whatever the body', () => {
		const body = fc.oneof(fc.string(), fc.json(), fc.constantFrom('{"code":7,"msg":"no"}', '{"code":0}'));
		const status = fc.oneof(fc.integer({ min: 500, max: 599 }), fc.constantFrom(408, 499));
		fc.assert(
			fc.property(status, body, (said, text) => {
				expect(ofWrite(classify(reply(said, text))).kind).toBe('unclear');
			}),
		);
	});
});

describe('codes under HTTP 200', () => {
	const TERMS = ['7001', 'too frequent', '系统繁忙'];

	it.each([
		['the number', { code: 7001, msg: 'no' }],
		['the number as text', { code: '7001', msg: 'no', data: null }],
		['words of the message', { code: 12, msg: 'Requests are Too Frequent.' }],
		['words beside data that are empty', { code: 12, msg: 'too frequent', data: {} }],
		['words in another language', { code: 12, msg: '系统繁忙，请稍后再试' }],
	])('%s of a busy platform is a refusal to repeat', (_name, body) => {
		const outcome = classify(reply(200, body, { 'retry-after': '3' }), TERMS);
		expect(outcome).toMatchObject({ kind: 'busy', retryAfter: '3' });
		expect(ofWrite(outcome)).toBe(outcome);
	});

	it.each([
		['a part of another number', { code: 17_001, msg: 'no' }, 'refused'],
		['words in a success', { code: 0, msg: 'too frequent', data: 1 }, 'answered'],
		['an answer with data', { code: 12, msg: 'too frequent', data: { prompt_id: 'p' } }, 'refused'],
	])('%s is none', (_name, body, kind) => {
		expect(classify(reply(200, body), TERMS)).toMatchObject({ kind });
	});

	it.each([500, 502, 503, 504])('%d leaves open what was done, as its HTTP twin does', (code) => {
		const outcome = classify(reply(200, { code, msg: 'trouble' }));
		expect(outcome).toMatchObject({ kind: 'unclear', status: 200, inItsForm: true });
		expect(ofWrite(outcome)).toBe(outcome);
	});
});
