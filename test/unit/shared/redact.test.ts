import fc from 'fast-check';

import { redactor } from '../../../nodes/shared/redact';

const KEY = 'sk-Abcdef0123456789';

describe('redactor', () => {
	const redact = redactor([KEY]);

	it.each([
		['by itself', KEY, '[hidden]'],
		['twice', `${KEY} and ${KEY}`, '[hidden] and [hidden]'],
		['in a header', `Authorization: Bearer ${KEY}`, 'Authorization: Bearer [hidden]'],
		['in quotation marks', `bad key "${KEY}"`, 'bad key "[hidden]"'],
		['inside a word', `xx${KEY}yy`, 'xx[hidden]yy'],
	])('hides the key %s', (_name, text, expected) => {
		expect(redact(text)).toBe(expected);
	});

	it.each([
		['another API key', 'sk-9876543210zyx'],
		['an agent token', 'agt_9876543210zyx'],
		['a debugging token', 'dbg_9876543210zyx'],
		['a channel token', 'wst_9876543210zyx'],
	])('hides %s, which this credential does not hold', (_name, token) => {
		expect(redact(`token ${token}!`)).toBe('token [hidden]!');
	});

	it.each([
		['a bearer of unknown kind', 'bearer eyJhbGciOi.eyJzdWIi', 'Bearer [hidden]'],
		[
			'a token in a query',
			'wss://h/p?a=1&authorization=tok%20en&b=2',
			'wss://h/p?a=1&authorization=[hidden]&b=2',
		],
		['a token that is all of a query', 'ws://h/p?Authorization=abc', 'ws://h/p?Authorization=[hidden]'],
		['an access token', 'https://h/?access_token=abc#x', 'https://h/?access_token=[hidden]'],
	])('hides %s', (_name, text, expected) => {
		expect(redact(text)).toBe(expected);
	});

	it.each([
		'task-1234567890',
		'the risk-assessment',
		'no bearer of news',
		'a sk- alone',
		'steps must be <= 50',
	])('leaves "%s" as it is', (text) => {
		expect(redact(text)).toBe(text);
	});

	it('hides a secret that holds what a pattern would read as its own', () => {
		expect(redactor(['a.*+?^${}()|[]\\b'])('x a.*+?^${}()|[]\\b y')).toBe('x [hidden] y');
		expect(redactor(['$&$1$`'])('x $&$1$` y')).toBe('x [hidden] y');
	});

	it('does not take an empty or tiny secret for one, else every text would vanish', () => {
		expect(redactor(['', 'abc'])('abc abc')).toBe('abc abc');
	});

	it('never lets a known secret through, wherever it stands', () => {
		const secret = fc.string({ minLength: 4, maxLength: 60 }).filter((text) => !'[hidden]'.includes(text));
		fc.assert(
			fc.property(secret, fc.array(fc.string()), (hidden, parts) => {
				const text = parts.join(hidden);
				const safe = redactor([hidden])(text);
				expect(safe.split('[hidden]').some((part) => part.includes(hidden))).toBe(false);
			}),
		);
	});

	it('gives the same when it is used twice', () => {
		fc.assert(
			fc.property(fc.string(), fc.string(), (before, after) => {
				const once = redact(`${before}${KEY}${after}`);
				expect(redact(once)).toBe(once);
			}),
		);
	});
});
