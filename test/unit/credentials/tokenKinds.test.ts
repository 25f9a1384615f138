import { setTimeout } from 'node:timers/promises';

import fc from 'fast-check';

import { cleanToken, TOKEN_KINDS, whyTokenDoesNotFit } from '../../../credentials/tokenKinds';

describe('cleanToken', () => {
	it.each([
		['a plain token', 'sk-abc123', 'sk-abc123'],
		['a token with spaces around it', '  sk-abc123\t', 'sk-abc123'],
		['a trailing line break', 'sk-abc123\r\n', 'sk-abc123'],
		['a line break in the middle, as emails insert it', 'sk-abc\n   123', 'sk-abc123'],
		['the header value', 'Bearer sk-abc123', 'sk-abc123'],
		['the header value in lower case', 'bearer   sk-abc123', 'sk-abc123'],
		['the whole header', 'Authorization: Bearer sk-abc123', 'sk-abc123'],
		['quotation marks', '"sk-abc123"', 'sk-abc123'],
		['a quoted header value', "'Bearer sk-abc123'", 'sk-abc123'],
		['spaces other than the plain one', '\u00a0sk-abc123\u200a', 'sk-abc123'],
		['invisible characters from a web page', '\ufeffsk-abc\u200b123\u2060', 'sk-abc123'],
		['no text', undefined, ''],
		['a number', 42, ''],
		['nothing but white space', ' \n ', ''],
	])('understands %s', (_name, pasted, expected) => {
		expect(cleanToken(pasted)).toBe(expected);
	});

	it.each([' ', '\u200b', '"'])(
		'reads a million of %j within a text before jest gives up',
		async (char) => {
			expect(cleanToken(`sk-${char.repeat(1_000_000)}b`)).toMatch(/^sk-.*b$/);
			// Jest can give up only between turns.
			await setTimeout();
		},
		10_000,
	);

	it('does not change a clean token, whatever it contains', () => {
		fc.assert(
			fc.property(fc.stringMatching(/^(sk-|agt_|dbg_|wst_)[A-Za-z0-9_.=+/-]{1,80}$/), (token) => {
				expect(cleanToken(token)).toBe(token);
			}),
		);
	});
});

describe('whyTokenDoesNotFit', () => {
	it.each(TOKEN_KINDS)('accepts $prefix in $credential', ({ prefix, credential }) => {
		expect(whyTokenDoesNotFit(`${prefix}abc`, credential)).toBeUndefined();
	});

	it.each([
		['agt_abc', 'FlowAgent API'],
		['dbg_abc', 'FlowAgent API'],
		['wst_abc', 'FlowBridge API'],
	])('says where %s belongs', (token, home) => {
		expect(whyTokenDoesNotFit(token, 'FlowPlatform API')).toContain(`belongs in a ${home} credential`);
	});

	it('names both prefixes if two fit', () => {
		expect(whyTokenDoesNotFit('sk-abc', 'FlowAgent API')).toContain('"agt_" or "dbg_"');
	});

	it('distinguishes an empty token from a foreign one', () => {
		expect(whyTokenDoesNotFit('', 'FlowPlatform API')).toContain('contains no secret');
		expect(whyTokenDoesNotFit('ghp_abc', 'FlowPlatform API')).toContain('this one does not');
	});

	it.each(['sk-abc…xyz', 'sk-••••', 'sk-ab****yz', 'sk-ab...yz', 'sk-аbc', 'sk-ab\u0000c'])(
		'says that %j was partly hidden',
		(token) => {
			expect(whyTokenDoesNotFit(token, 'FlowPlatform API')).toMatch(/is incomplete.*Copy the whole secret/);
		},
	);

	it('never repeats the token', () => {
		const credential = fc.constantFrom(...TOKEN_KINDS.map((kind) => kind.credential));
		const prefix = fc.constantFrom('', ...TOKEN_KINDS.map((kind) => kind.prefix));
		fc.assert(
			fc.property(credential, prefix, fc.stringMatching(/^[A-Z0-9]{12,40}$/), (target, start, rest) => {
				expect(whyTokenDoesNotFit(start + rest, target) ?? '').not.toContain(rest);
			}),
		);
	});
});
