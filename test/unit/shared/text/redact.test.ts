import fc from 'fast-check';

import { jsonText, parseJson, type Json, type JsonObject } from '../../../../nodes/shared/text/json';
import { quote, redactJson, redactor } from '../../../../nodes/shared/text/redact';

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
	])('hides %s, which is not in this credential', (_name, token) => {
		expect(redact(`token ${token}!`)).toBe('token [hidden]!');
	});

	it.each([
		['a bearer token of unknown kind', 'bearer eyJhbGciOi.eyJzdWIi', 'Bearer [hidden]'],
		[
			'a token in a query',
			'wss://h/p?a=1&authorization=tok%20en&b=2',
			'wss://h/p?a=1&authorization=[hidden]&b=2',
		],
		['a token that is the whole query', 'ws://h/p?Authorization=abc', 'ws://h/p?Authorization=[hidden]'],
		['an access token', 'https://h/?access_token=abc#x', 'https://h/?access_token=[hidden]'],
	])('hides %s', (_name, text, expected) => {
		expect(redact(text)).toBe(expected);
	});

	const slashed = redactor(['wst_ab/cd+ef=']);

	it.each([
		['JSON', String.raw`no wst_ab/cd+ef= here`],
		['JSON with an escaped slash', String.raw`no wst_ab\/cd+ef= here`],
		['a URL', 'no wst_ab%2Fcd%2Bef%3D here'],
		['a URL with small letters', 'no wst_ab%2fcd%2bef%3d here'],
		['base64', 'no d3N0X2FiL2NkK2VmPQ here'],
		['a sub-protocol', 'no d3N0X2FiL2NkK2VmPQ here'],
	])('hides the known secret as it is written in %s', (_name, text) => {
		expect(slashed.known(text)).toBe('no [hidden] here');
	});

	it.each(['base64', 'base64url'] as const)(
		'hides a secret in %s that contains the letters in which the encodings differ',
		(encoding) => {
			const { known } = redactor(['wst_~~~???']);
			const encoded = Buffer.from('wst_~~~???').toString(encoding);
			expect(known(`<${encoded}>`)).toMatch(/^<\[hidden\]=*>$/);
		},
	);

	it.each([
		['a foreign key with an escaped slash', String.raw`key sk-1234abcd\/efgh!`, 'key [hidden]!'],
		['a foreign key in a URL', '?k=Bearer%20sk%2D1234abcd%2Fefgh&a=1', '?k=Bearer [hidden]&a=1'],
		['a foreign key after an escaped line break', String.raw`key\nwst_1234abcd!`, String.raw`key\n[hidden]!`],
		['a sub-protocol', 'neutral.bridge.v1, bearer.d3N0XzEyMzQ', 'neutral.bridge.v1, Bearer [hidden]'],
		[
			"a token in a query with the platform's escapes",
			String.raw`wss://h/p?a=1\u0026authorization=tok\u0026b=2`,
			String.raw`wss://h/p?a=1\u0026authorization=[hidden]\u0026b=2`,
		],
		[
			'a token in a URL in a URL',
			'u=wss%3A%2F%2Fh%3Fauthorization%3Dtok',
			'u=wss%3A%2F%2Fh%3Fauthorization%3D[hidden]',
		],
		['the user and password in a URL', 'https://me:pa55@h.example/x', 'https://[hidden]@h.example/x'],
	])('hides %s', (_name, text, expected) => {
		expect(redact(text)).toBe(expected);
	});

	it('handles millions of hostile characters', () => {
		const long = ['sk-', '?token=', 'Bearer ', '://', '://a:'].map((start) => start + 'a'.repeat(1_000_000));
		for (const piece of ['\\', '%25', 'sk-', 'Bearer ', '?token=', '://a:', '\\u0026', ...long]) {
			expect(() => redact(piece.repeat(4_000_000 / piece.length))).not.toThrow();
		}
	});

	it.each([
		'task-1234567890',
		'https://h.example:8080/a@b',
		'the risk-assessment',
		'no bearer of news',
		'a sk- alone',
		'steps must be <= 50',
	])('leaves "%s" unchanged', (text) => {
		expect(redact(text)).toBe(text);
	});

	it('hides a secret that contains characters with a meaning in patterns', () => {
		expect(redactor(['a.*+?^${}()|[]\\b'])('x a.*+?^${}()|[]\\b y')).toBe('x [hidden] y');
		expect(redactor(['$&$1$`'])('x $&$1$` y')).toBe('x [hidden] y');
	});

	it('hides a secret with characters that JSON escapes, whole and in pieces', () => {
		const secret = String.raw`ab\c\\d"e` + '\n-f';
		for (const text of [`x ${secret} y`, JSON.stringify(`x ${secret} y`)]) {
			const told = redactor([secret]).known(text);
			expect(told.replaceAll('"', '')).toBe('x [hidden] y');
			const pieces = redactor([secret]).inPieces();
			expect([...text].map((char) => pieces.push(char)).join('') + pieces.end()).toBe(told);
		}
	});

	it('ignores an empty or tiny secret, which would make every text vanish', () => {
		expect(redactor(['', 'abc'])('abc abc')).toBe('abc abc');
	});

	it('ignores a short word, which stands for a token that no server checks', () => {
		const text = 'the latest test: None, if any';
		expect(redactor(['test', 'None'])(text)).toBe(text);
		expect(redactor(['tst-1', 'abcdef'])('tst-1 abcdef')).toBe('[hidden] [hidden]');
	});

	it('never lets a known secret through, wherever it is', () => {
		const secret = fc
			.string({ minLength: 4, maxLength: 60 })
			.filter((text) => !'[hidden]'.includes(text) && !/^[a-z]{4,5}$/i.test(text));
		fc.assert(
			fc.property(secret, fc.array(fc.string()), (hidden, parts) => {
				const text = parts.join(hidden);
				const safe = redactor([hidden])(text);
				expect(safe.split('[hidden]').some((part) => part.includes(hidden))).toBe(false);
			}),
		);
	});

	it('changes nothing when applied again', () => {
		fc.assert(
			fc.property(fc.string(), fc.string(), (before, after) => {
				const once = redact(`${before}${KEY}${after}`);
				expect(redact(once)).toBe(once);
			}),
		);
	});
});

describe('quote', () => {
	it('searches only the beginning of a text, and shows no part of a key at its end', () => {
		const text = `${' '.repeat(1_000_000 - 10)}a ${KEY} ${'\\n'.repeat(20_000_000)}`;
		expect(quote(redactor([KEY]), text)).toBe('a');
	});

	it('hides before it shortens', () => {
		expect(quote(redactor([KEY]), `a ${KEY}`, 10)).toBe('a [hidden]');
	});
});

describe('redactJson', () => {
	const { known } = redactor(['wst_ab/cd']);

	it('hides a secret in values and in keys, however the source escaped it', () => {
		const source = String.raw`{"a":["wst_ab\/cd",{"x wst\u005fab/cd":1}],"b":true,"c":null}`;
		const parsed = parseJson(source);
		expect(redactJson(parsed ?? null, known)).toEqual({
			a: ['[hidden]', { 'x [hidden]': 1 }],
			b: true,
			c: null,
		});
	});

	it('returns the value itself if there is nothing to hide', () => {
		fc.assert(
			fc.property(fc.jsonValue(), (value) => {
				expect(redactJson(value as Json, known)).toBe(value);
			}),
		);
	});

	it('keeps a key that has a meaning in JavaScript', () => {
		const parsed = parseJson('{"__proto__":"wst_ab/cd","constructor":1}');
		expect(jsonText(redactJson(parsed ?? null, known))).toBe('{"__proto__":"[hidden]","constructor":1}');
	});

	it('handles a value of any depth without an exception, and lets no secret through', () => {
		let deep: JsonObject = { end: 'wst_ab/cd' };
		for (let level = 0; level < 100_000; level++) deep = { deep };
		const safe = redactJson(deep, known);
		expect(jsonText(safe)).toMatch(/^(\{"deep":)+null\}+$/);
	});
});

describe('a redactor', () => {
	const { known, inPieces } = redactor(
		Array.from({ length: 20 }, (_, index) => `sk-${index}-${'x'.repeat(200)}`),
	);

	it('is not slowed down by a text that consists of beginnings of keys', () => {
		const text = 'sk-1'.repeat(1_000_000);
		const startedMs = performance.now();
		expect(known(text)).toBe(text);
		const pieces = inPieces();
		const short = text.slice(0, 20_000);
		expect([...short].map((char) => pieces.push(char)).join('') + pieces.end()).toBe(short);
		expect(performance.now() - startedMs).toBeLessThan(10_000);
	});

	it('hides the longer of two keys that begin alike', () => {
		const fill = Array.from({ length: 20 }, (_, index) => `agt_other${index}`);
		const alike = redactor([...fill, 'sk-abcd', 'sk-abcdefgh']);
		expect(alike.known('1 sk-abcdefgh 2 sk-abcdef 3')).toBe('1 [hidden] 2 [hidden]ef 3');
	});
});

describe('a text in pieces', () => {
	const SECRET = 'wst_ab/cd+ef=';
	const { inPieces, known } = redactor([SECRET, 'wst_abab']);

	function redacted(pieces: readonly string[]): string {
		const redactPieces = inPieces();
		return pieces.map((piece) => redactPieces.push(piece)).join('') + redactPieces.end();
	}

	it.each([
		['the secret', SECRET],
		['base64', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
		['a sub-protocol', Buffer.from(SECRET).toString('base64url')],
		['a URL', encodeURIComponent(SECRET)],
		['JSON with escaped slashes', SECRET.replace('/', String.raw`\/`)],
		['a secret that begins again within itself', 'wst_abab'],
	])('hides %s, wherever it is cut', (_name, written) => {
		const text = `<${written}>`;
		expect(redacted(Array.from(text))).toBe('<[hidden]>');
		for (let at = 0; at <= text.length; at++) {
			expect(redacted([text.slice(0, at), text.slice(at)])).toBe('<[hidden]>');
		}
	});

	it('shows at once that a secret was hidden, even if a longer one begins like it', () => {
		const pieces = redactor(['sk-a9', 'sk-bcdef']).inPieces();
		expect(pieces.push('no sk-a9')).toBe('no [hidden]');
	});

	it.each([
		['a secret after a percent sign', '100%', 'ab12/cd-ef='],
		['a secret that begins like a shorter one', '<', 'agt_one.two'],
	])('hides %s, wherever it is cut', (_name, before, written) => {
		const redact = redactor(['ab12/cd-ef=', 'agt_one', 'agt_one.two']);
		const text = `${before}${written}>`;
		for (let at = 0; at <= text.length; at++) {
			const pieces = redact.inPieces();
			const shown = pieces.push(text.slice(0, at)) + pieces.push(text.slice(at)) + pieces.end();
			expect(shown).toBe(`${before}[hidden]>`);
		}
	});

	it('returns the same as for the whole text, however it is cut', () => {
		const word = fc.constantFrom(
			SECRET,
			'wst_ab',
			'wst_abab',
			'w',
			'%',
			'%5',
			'\\',
			'\\u00',
			'"',
			'/',
			' a 🦊',
			'\n',
		);
		fc.assert(
			fc.property(fc.array(word), fc.array(fc.nat({ max: 200 })), (words, cuts) => {
				const text = words.join('');
				const ends = [...cuts.filter((cut) => cut < text.length), text.length].sort((a, b) => a - b);
				const pieces = ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end));
				expect(redacted(pieces)).toBe(known(text));
			}),
			{ numRuns: 1_000 },
		);
	});

	it('shows at once what cannot begin a secret, and holds back no more than what can', () => {
		const pieces = inPieces();
		expect(pieces.push('now and later')).toBe('now and later');
		expect(pieces.push('a swim in ws')).toBe('a swim in ');
		expect(pieces.push('t_ab/c')).toBe('');
		expect(pieces.push('at')).toBe('wst_ab/cat');
		expect(pieces.end()).toBe('');
	});
});
