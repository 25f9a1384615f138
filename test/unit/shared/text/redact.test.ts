import fc from 'fast-check';

import { jsonText, parseJson, type Json, type JsonObject } from '../../../../nodes/shared/text/json';
import { redactJson, redactor } from '../../../../nodes/shared/text/redact';

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

	const hexOf = Buffer.from(KEY).toString('hex');

	it.each([
		['without its kind', `bad key ${KEY.slice(3)}!`],
		['in capitals', `bad key ${KEY.toUpperCase()}!`],
		['in small letters', `bad key ${KEY.toLowerCase()}!`],
		['in hex', `bad key ${hexOf}!`],
		['in hex and capitals', `bad key ${hexOf.toUpperCase()}!`],
		['in decimal entities', `bad key ${Array.from(KEY, (char) => `&#${char.charCodeAt(0)};`).join('')}!`],
		['in hex entities', `bad key ${KEY.replace('-', '&#x2D;')}!`],
		['in entities of entities', `bad key ${KEY.replace('-', '&amp;#45;')}!`],
		['in Markdown', `bad key ${KEY.replace('-', String.raw`\-`)}!`],
	])('hides the known secret %s', (_name, text) => {
		expect(redact.known(text)).toBe('bad key [hidden]!');
		const pieces = redact.inPieces();
		const told = [...text].map((char) => pieces.push(char)).join('') + pieces.end();
		expect(told).toBe('bad key [hidden]!');
	});

	it.each(['base64', 'base64url'] as const)('hides a secret in the middle of a text in %s', (encoding) => {
		for (const before of ['', 'a', 'ab', 'abc', 'user:', '{"k":"']) {
			for (const after of ['', '"', '"}', ':x1']) {
				const text = Buffer.from(`${before}${KEY}${after}`).toString(encoding);
				const told = redact.known(text);
				expect(told).toContain('[hidden]');
				// What is left is at most the characters that it shares with its neighbours.
				expect(told.length).toBeLessThanOrEqual(text.length - (KEY.length * 8) / 6 + 2 + '[hidden]'.length);
			}
		}
	});

	it('finds every form among the keys of 10,000 items', () => {
		const keys = Array.from(
			{ length: 10_000 },
			(_, index) => `sk-${String(index * 7_919).padStart(16, 'x')}`,
		);
		const { known } = redactor(keys);
		const [key = ''] = keys.slice(5_000);
		expect(known(`a ${key.slice(3)} b ${key.toUpperCase()} c ${Buffer.from(key).toString('hex')}`)).toBe(
			'a [hidden] b [hidden] c [hidden]',
		);
	});

	const slashed = redactor(['wst_ab/cd+ef=']);

	it.each([
		['a slash of JSON', String.raw`no wst_ab\/cd+ef= here`],
		['code units of JSON', String.raw`no wst\u005fab\u002Fcd\u002bef\u003d here`],
		['JSON in JSON', String.raw`no wst_ab\\\/cd\\u002bef= here`],
		['an address', 'no wst_ab%2Fcd%2bef%3D here'],
		['an address in an address', 'no wst_ab%252Fcd%252Bef%253D here'],
		['base64', `no ${Buffer.from('wst_ab/cd+ef=').toString('base64').replace(/=+$/, '')} here`],
		['a sub-protocol', `no ${Buffer.from('wst_ab/cd+ef=').toString('base64url')} here`],
	])('hides the known secret as it is written in %s', (_name, text) => {
		expect(slashed.known(text)).toBe('no [hidden] here');
	});

	it.each(['base64', 'base64url'] as const)(
		'hides a secret in %s, whose letters differ there',
		(encoding) => {
			const { known } = redactor(['wst_~~~???']);
			expect(known(`<${Buffer.from('wst_~~~???').toString(encoding)}>`)).toMatch(/^<\[hidden\]=*>$/);
		},
	);

	it('hides a known secret however its characters are escaped, and nothing beside it', () => {
		const escapes: ReadonlyArray<(char: string) => string> = [
			(char) => char,
			(char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
			(char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
			(char) => (char === '/' ? String.raw`\/` : char),
		];
		fc.assert(
			fc.property(fc.array(fc.nat({ max: 3 }), { minLength: 13, maxLength: 13 }), (picks) => {
				const written = Array.from('wst_ab/cd+ef=')
					.map((char, index) => escapes[picks[index] ?? 0]?.(char) ?? char)
					.join('');
				expect(slashed.known(`<${written}>`)).toBe('<[hidden]>');
			}),
		);
	});

	it.each([
		['a foreign key with a slash of JSON', String.raw`key sk-1234abcd\/efgh!`, 'key [hidden]!'],
		['a foreign key with code units', String.raw`key agt\u005f1234abcd\u002fefgh!`, 'key [hidden]!'],
		['a foreign key in an address', '?k=Bearer%20sk%2D1234abcd%2Fefgh&a=1', '?k=Bearer [hidden]&a=1'],
		['a foreign key behind a line break of JSON', String.raw`key\nwst_1234abcd!`, String.raw`key\n[hidden]!`],
		['a sub-protocol', 'neutral.bridge.v1, bearer.d3N0XzEyMzQ', 'neutral.bridge.v1, Bearer [hidden]'],
		[
			'a token in a query with the escapes of the platform',
			String.raw`wss://h/p?a=1\u0026authorization=tok\u0026b=2`,
			String.raw`wss://h/p?a=1\u0026authorization=[hidden]\u0026b=2`,
		],
		[
			'a token in an address in an address',
			'u=wss%3A%2F%2Fh%3Fauthorization%3Dtok',
			'u=wss%3A%2F%2Fh%3Fauthorization%3D[hidden]',
		],
		['user and password of an address', 'https://me:pa55@h.example/x', 'https://[hidden]@h.example/x'],
	])('hides %s', (_name, text, expected) => {
		expect(redact(text)).toBe(expected);
	});

	it('comes to an end with millions of hostile characters', () => {
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
	])('leaves "%s" as it is', (text) => {
		expect(redact(text)).toBe(text);
	});

	it('hides a secret that holds what a pattern would read as its own', () => {
		expect(redactor(['a.*+?^${}()|[]\\b'])('x a.*+?^${}()|[]\\b y')).toBe('x [hidden] y');
		expect(redactor(['$&$1$`'])('x $&$1$` y')).toBe('x [hidden] y');
	});

	it('hides a secret with a backslash where JSON, or JSON in JSON, escapes it', () => {
		const secret = String.raw`ab\c\\d"e\-f%41`;
		let text = secret;
		for (let times = 0; times < 3; times++) {
			text = JSON.stringify(`x ${text} y`);
			const told = redactor([secret]).known(text);
			expect(told).toMatch(/^\W*x.*\[hidden\].*y\W*$/);
			expect(told).not.toContain('ab');
			const pieces = redactor([secret]).inPieces();
			expect([...text].map((char) => pieces.push(char)).join('') + pieces.end()).toBe(told);
		}
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

describe('redactJson', () => {
	const { known } = redactor(['wst_ab/cd']);

	it('hides a secret in values and in keys, whatever escapes the source had', () => {
		const source = String.raw`{"a":["wst_ab\/cd",{"x wst\u005fab/cd":1}],"b":true,"c":null}`;
		const parsed = parseJson(source);
		expect(redactJson(parsed ?? null, known)).toEqual({
			a: ['[hidden]', { 'x [hidden]': 1 }],
			b: true,
			c: null,
		});
	});

	it('gives the value itself where there is nothing to hide', () => {
		fc.assert(
			fc.property(fc.jsonValue(), (value) => {
				expect(redactJson(value as Json, known)).toBe(value);
			}),
		);
	});

	it('keeps a key that JavaScript gives a meaning', () => {
		const parsed = parseJson('{"__proto__":"wst_ab/cd","constructor":1}');
		expect(jsonText(redactJson(parsed ?? null, known))).toBe('{"__proto__":"[hidden]","constructor":1}');
	});

	it('follows a value of any depth without an exception, and lets no secret through below', () => {
		let deep: JsonObject = { end: 'wst_ab/cd' };
		for (let level = 0; level < 100_000; level++) deep = { deep };
		const safe = redactJson(deep, known);
		expect(jsonText(safe)).toMatch(/^(\{"deep":)+null\}+$/);
	});
});

describe('a redactor of the keys of many accounts', () => {
	const keys = Array.from({ length: 10_000 }, (_, index) => `sk-tenant-${index}-${'x'.repeat(32)}`);
	const { known } = redactor(keys);

	it('hides 10,000 keys, each in an answer of its own', () => {
		const answers = keys.map((key, index): JsonObject => ({
			success_response: true,
			data: Object.fromEntries(
				Array.from({ length: 10 }, (_, at) => [
					`field${at}`,
					`${'some words of the risk-averse '.repeat(5)}${index}`,
				]),
			),
			echoed: [`no ${key} here`, `no ${Buffer.from(key).toString('base64url')} here`],
			escaped: `no ${key.replaceAll('-', String.raw`\u002d`)} here`,
		}));
		const safe = answers.map((answer) => redactJson(answer, known));
		for (const { echoed, escaped } of safe) {
			expect(echoed).toEqual(['no [hidden] here', 'no [hidden] here']);
			expect(escaped).toBe('no [hidden] here');
		}
	});

	it('is not slowed down by a text of nothing but their beginnings', () => {
		const text = 'sk-'.repeat(1_000_000);
		expect(known(text)).toBe(text);
	});

	it('hides the longer one of two that begin alike, and two that overlap as one', () => {
		const fill = Array.from({ length: 20 }, (_, index) => `agt_other${index}`);
		const alike = redactor([...fill, 'sk-abcd', 'sk-abcdefgh', 'fgh-sk-1']);
		expect(alike.known('1 sk-abcdefgh 2 sk-abcdef 3 sk-abcdefgh-sk-1 4')).toBe(
			'1 [hidden] 2 [hidden]ef 3 [hidden] 4',
		);
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
		['an address', encodeURIComponent(SECRET)],
		['an address in an address', encodeURIComponent(encodeURIComponent(SECRET))],
		['slashes of JSON', SECRET.replace('/', String.raw`\/`)],
		['code units of JSON', SECRET.replace(/[^a-z]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)],
		['JSON in JSON', String.raw`wst_ab\\\/cd\\u002bef=`],
		['a secret that begins again within itself', 'wst_abab'],
	])('hides %s, wherever it is cut', (_name, written) => {
		const text = `<${written}>`;
		expect(redacted(Array.from(text))).toBe('<[hidden]>');
		for (let at = 0; at <= text.length; at++) {
			expect(redacted([text.slice(0, at), text.slice(at)])).toBe('<[hidden]>');
		}
	});

	it.each([
		['a secret after a percent sign', '100%', 'ab12/cd-ef='],
		['hex after a percent sign', '100%', Buffer.from('ab12/cd-ef=').toString('hex')],
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

	it('gives what the text as a whole would give, whatever it is cut into', () => {
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

	it('shows at once what no secret begins with, and holds back no more than may be one', () => {
		const pieces = inPieces();
		expect(pieces.push('now and later')).toBe('now and later');
		expect(pieces.push('a swim in ws')).toBe('a swim in ');
		expect(pieces.push('t_ab/c')).toBe('');
		expect(pieces.push('at')).toBe('wst_ab/cat');
		expect(pieces.end()).toBe('');
	});
});
