import fc from 'fast-check';

import { redactor } from '../../../../nodes/shared/text/redact';
import { explain, originOf } from '../../../../nodes/shared/http/explain';
import { classify, type Outcome } from '../../../../nodes/shared/http/outcome';

const KEY = 'sk-Abcdef0123456789';
type BadVerdict = Exclude<Outcome, { kind: 'done' }>;

function facts(repeatability: 'read' | 'write' = 'write', attempt = 1): Parameters<typeof explain>[1] {
	return {
		purpose: 'submit the task',
		repeatability,
		baseUrl: 'https://platform.example/base?tenant=42',
		attempt,
		redact: redactor([KEY]),
	};
}

/** Every kind of bad verdict, each with a text that no operator should read in full. */
const text = `no: Bearer ${KEY}`;
const VERDICTS: readonly BadVerdict[] = [
	{ kind: 'cancelled' },
	{ kind: 'busy', retryAfter: '9', text },
	{ kind: 'refused', status: 200, code: 1003, text },
	{ kind: 'refused', status: 401, code: null, text },
	{ kind: 'refused', status: 200, code: 401, text },
	{ kind: 'refused', status: 403, code: 12, text },
	{ kind: 'refused', status: 200, code: 403, text },
	{ kind: 'refused', status: 404, code: null, text },
	{ kind: 'refused', status: 404, code: 9, text },
	{ kind: 'unreached', code: 'ECONNREFUSED', text },
	{ kind: 'unreached', code: 'CERT_HAS_EXPIRED', text },
	{ kind: 'unreached', code: '', text },
	{ kind: 'redirected', status: 302, location: `https://u:${KEY}@login.example/x?authorization=${KEY}` },
	{ kind: 'redirected', status: 302, location: '' },
	{ kind: 'redirected', status: 302, location: `/login?token=${KEY}` },
	{ kind: 'broken', status: 502, enveloped: false, text },
	{ kind: 'broken', status: 500, enveloped: true, text },
	{ kind: 'broken', status: 200, enveloped: false, text },
	{ kind: 'lost', code: 'ECONNRESET', text },
];
const named = VERDICTS.map((verdict) => [JSON.stringify(verdict).slice(0, 60), verdict] as const);

describe('explain', () => {
	it.each(named)('gives a sentence and advice without key or query: %s', (_name, verdict) => {
		for (const repeatability of ['read', 'write'] as const) {
			const failure = explain(verdict, facts(repeatability, 3));
			expect(failure.message).toContain('submit the task');
			expect(failure.message).toMatch(/^[A-Z]/);
			if (verdict.kind !== 'cancelled') expect(failure.advice).toMatch(/^[A-Z].{20}/);
			const shown = JSON.stringify(failure);
			expect(shown).not.toContain(KEY);
			expect(shown).not.toContain('tenant=42');
			expect(shown).not.toMatch(/[?&](authorization|token)=/);
			expect(shown).not.toMatch(/undefined|\[object|NaN/);
		}
	});

	it.each([
		['cancelled', { kind: 'cancelled' }, 'cancelled', false],
		['busy', { kind: 'busy', retryAfter: undefined, text: '' }, 'refused', true],
		['refused', { kind: 'refused', status: 200, code: 5, text: '' }, 'refused', false],
		['a refused key', { kind: 'refused', status: 401, code: null, text: '' }, 'credential', false],
		['a missing right', { kind: 'refused', status: 200, code: 403, text: '' }, 'credential', false],
		['a wrong address', { kind: 'refused', status: 404, code: null, text: '' }, 'credential', false],
		['an unknown thing', { kind: 'refused', status: 404, code: 5, text: '' }, 'refused', false],
		['unreached', { kind: 'unreached', code: 'ENOTFOUND', text: '' }, 'unreachable', true],
		['a bad certificate', { kind: 'unreached', code: 'ERR_TLS_X', text: '' }, 'unreachable', false],
		['redirected', { kind: 'redirected', status: 301, location: '/' }, 'credential', false],
		['a broken answer', { kind: 'broken', status: 502, enveloped: false, text: '' }, 'unclear', true],
		['an outage that says so', { kind: 'broken', status: 500, enveloped: true, text: '' }, 'unclear', true],
		['lost', { kind: 'lost', code: 'ECONNRESET', text: '' }, 'unclear', true],
	] as const)(
		'tells what kind of failure it is and whether it may pass: %s',
		(_name, verdict, kind, passing) => {
			expect(explain(verdict, facts('write'))).toMatchObject({ kind, passing });
		},
	);

	it('says of a write without an answer that it was not repeated, and of a read to come back later', () => {
		const lost = { kind: 'lost', code: 'ECONNRESET', text: 'gone' } as const;
		expect(explain(lost, facts('write')).advice).toContain('not tried again');
		expect(explain(lost, facts('read', 4))).toMatchObject({
			message: 'The platform could not submit the task (4 attempts): gone',
			advice: expect.stringContaining('later'),
		});
	});

	it.each([408, 499, 500, 503])('takes no word of a gateway for the end of a write: HTTP %d', (status) => {
		const said = { kind: 'broken', status, enveloped: true, text: 'gave up' } as const;
		expect(explain(said, facts('write')).advice).toContain('may have carried it out');
		expect(explain(said, facts('read'))).toMatchObject({ kind: 'refused', passing: true });
	});

	it('tells a base URL with a path from a workflow that is not there, envelope or not', () => {
		const refused = (text: string) => ({ kind: 'refused', status: 404, code: 40400, text }) as const;
		const path = explain(refused('There is no such path'), facts('write'));
		expect(path).toMatchObject({ kind: 'credential', passing: false });
		expect(path.message).toBe('The base URL has no such interface, so the node could not submit the task');
		expect(path.advice).toContain('without a path such as "/api"');
		expect(path.advice).not.toContain('workflow ID');
		expect(explain(refused('Not Found'), facts('write')).kind).toBe('credential');
		expect(explain(refused('no workflow w-1'), facts('write')).advice).toContain('workflow ID');
	});

	it('names the base URL where a web page came as a success, and not where a gateway sent one', () => {
		const page = (status: number) =>
			({ kind: 'broken', status, enveloped: false, text: 'a web page instead of JSON' }) as const;
		expect(explain(page(200), facts('write')).message).toMatch(
			/The Base URL in the credential may be wrong$/,
		);
		expect(explain(page(200), facts('read')).advice).toContain('or the Base URL is wrong');
		expect(JSON.stringify(explain(page(502), facts('read')))).not.toContain('Base URL');
	});

	it('advises a read in other words than a submit, or in those of the caller', () => {
		const refused = (status: number) => ({ kind: 'refused', status, code: null, text: 'a hiccup' }) as const;
		expect(explain(refused(422), facts('write')).advice).toContain('workflow ID');
		expect(explain(refused(422), facts('read')).advice).not.toMatch(/workflow|Nothing was made/);
		expect(explain(refused(403), facts('read')).advice).not.toContain('workflow');
		const own = { rightful: 'Ask Ann.', check: 'Ask Bob.' };
		expect(explain(refused(422), facts(), own).advice).toBe('Ask Bob.');
		expect(explain(refused(403), facts(), own).advice).toBe('Ask Ann. The platform said: a hiccup.');
	});

	it('counts attempts only where there was more than one', () => {
		const busy = { kind: 'busy', retryAfter: undefined, text: '' } as const;
		expect(explain(busy, facts('write', 1)).message).not.toContain('attempt');
		expect(explain(busy, facts('write', 10)).message).toContain('(10 attempts)');
	});

	it('says where a redirect leads, and no more of it than the origin', () => {
		const verdict = { kind: 'redirected', status: 307, location: 'https://eu.example:8443/a?b=c' } as const;
		expect(explain(verdict, facts()).advice).toContain('to https://eu.example:8443.');
	});

	it('carries status and code for the error output', () => {
		expect(explain({ kind: 'refused', status: 400, code: 7, text: 'x' }, facts()).details).toEqual({
			httpStatus: 400,
			code: 7,
		});
		expect(explain({ kind: 'lost', code: 'ECONNRESET', text: 'x' }, facts()).details).toEqual({
			networkCode: 'ECONNRESET',
		});
	});

	it('cuts what a service says to a readable length', () => {
		const failure = explain({ kind: 'refused', status: 400, code: 7, text: 'word '.repeat(10_000) }, facts());
		expect(failure.message.length).toBeLessThan(700);
	});

	it('lets no part of the key through, wherever a long answer is cut', () => {
		// With a colon in it, the part before the cut does not look like a key any more.
		const key = 'sk-ab:Secret0123456789Secret0123456789';
		const redact = redactor([key]);
		fc.assert(
			fc.property(fc.integer({ min: 400, max: 560 }), fc.constantFrom('msg', 'error'), (offset, field) => {
				const said = JSON.stringify({ code: 7, [field]: `${'x'.repeat(offset)} ${key}` });
				for (const status of [200, 401, 403, 429, 503]) {
					const verdict = classify({ kind: 'reply', status, headers: {}, text: said });
					if (verdict.kind === 'done') throw new Error('a refusal was taken for success');
					expect(JSON.stringify(explain(verdict, { ...facts(), redact }))).not.toContain('Secret');
				}
			}),
		);
	});
});

describe('originOf', () => {
	it.each([
		['https://host.example/path?x=1', 'https://host.example'],
		['https://user:secret@host.example:8443/p', 'https://host.example:8443'],
		['/relative/path?token=1', '/relative/path'],
		['host.example/path?token=1', 'host.example/path'],
		['', 'an unknown address'],
		['?token=1', 'an unknown address'],
	])('of "%s" is "%s"', (url, origin) => {
		expect(originOf(url)).toBe(origin);
	});
});
