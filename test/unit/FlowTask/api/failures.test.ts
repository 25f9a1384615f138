import fc from 'fast-check';

import { explainChat } from '../../../../nodes/ChatCompletion/failures';
import { explainTaskCall as explain } from '../../../../nodes/FlowTask/api/failures';
import { explainSubmit } from '../../../../nodes/FlowTask/tasks/failures';
import { ofWrite, type FailedOutcome } from '../../../../nodes/shared/http/outcome';
import { classify } from '../../../../nodes/shared/platform/envelope';
import { explainCall } from '../../../../nodes/shared/platform/failures';
import { redactor } from '../../../../nodes/shared/text/redact';

const KEY = 'sk-Abcdef0123456789';

function facts(repeatability: 'read' | 'write' = 'write', tries = 1): Parameters<typeof explain>[1] {
	return {
		purpose: 'submit the task',
		repeatability,
		baseUrl: 'https://platform.example/base?tenant=42',
		tries,
		redact: redactor([KEY]),
	};
}

/** The text of each outcome below, which must not be shown in full. */
const text = `no: Bearer ${KEY}`;
const OUTCOMES: readonly FailedOutcome[] = [
	{ kind: 'cancelled' },
	{ kind: 'busy', retryAfter: '9', text },
	{ kind: 'refused', status: 200, code: 1003, text },
	{ kind: 'refused', status: 401, code: null, text },
	{ kind: 'refused', status: 200, code: 401, text },
	{ kind: 'refused', status: 403, code: 12, text },
	{ kind: 'refused', status: 200, code: 403, text },
	{ kind: 'refused', status: 404, code: null, text },
	{ kind: 'refused', status: 404, code: 9, text },
	{ kind: 'notSent', code: 'ECONNREFUSED', text },
	{ kind: 'notSent', code: 'CERT_HAS_EXPIRED', text },
	{ kind: 'notSent', code: '', text },
	{ kind: 'redirected', status: 302, location: `https://u:${KEY}@login.example/x?authorization=${KEY}` },
	{ kind: 'redirected', status: 302, location: '' },
	{ kind: 'redirected', status: 302, location: `/login?token=${KEY}` },
	{ kind: 'unclear', status: 502, inItsForm: false, text },
	{ kind: 'unclear', status: 500, inItsForm: true, text },
	{ kind: 'unclear', status: 200, inItsForm: false, text },
	{ kind: 'unclear', code: 'ECONNRESET', text },
];
const named = OUTCOMES.map((outcome) => [JSON.stringify(outcome).slice(0, 60), outcome] as const);

it.each([
	['https://h/api', 'Remove "/api" from the end of the Base URL'],
	['https://h/gate/api/v1/', 'Remove "/api/v1" from the end of the Base URL'],
	['https://h/gate', 'Check the Base URL in the credential'],
	['https://h', 'Check the Base URL in the credential'],
])('gives advice on the base URL %s if nothing is found there', (baseUrl, said) => {
	const outcome = { kind: 'refused', status: 404, code: null, text: 'not found' } as const;
	expect(explain(outcome, { ...facts(), baseUrl }).advice).toContain(said);
	expect(explainChat(outcome, { ...facts(), baseUrl }, {}).advice).toContain(said);
});

it.each([
	[413, '<html>nginx</html>', ': a web page instead of JSON (HTTP 413)', 'send smaller files'],
	[422, 'no such sampler', '(HTTP 422): an answer that is not JSON: no such sampler', "platform's console"],
])('reports HTTP %d together with its unexpected body', (status, body, said, advice) => {
	const reply = { kind: 'reply', status, headers: {}, text: body } as const;
	const outcome = ofWrite(classify(reply));
	if (outcome.kind === 'answered') throw new Error('It is no answer');
	const failure = explainSubmit(explain(outcome, facts()));
	expect(failure.message).toContain(said);
	expect(failure.advice).toContain(advice);
});

describe('explainTaskCall', () => {
	it("says that only 'Run' limits the tasks in flight", () => {
		const { advice } = explain({ kind: 'busy', retryAfter: undefined, text: '' }, facts());
		expect(advice).toContain("(in 'Run' also 'Max Tasks in Flight')");
	});

	it.each(named)('returns a message and advice without the key or the query: %s', (_name, outcome) => {
		for (const repeatability of ['read', 'write'] as const) {
			const failure = explain(outcome, facts(repeatability, 3));
			expect(failure.message).toContain('submit the task');
			expect(failure.message).toMatch(/^[A-Z]/);
			if (outcome.kind !== 'cancelled') expect(failure.advice).toMatch(/^[A-Z].{20}/);
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
		['a missing permission', { kind: 'refused', status: 200, code: 403, text: '' }, 'credential', false],
		['a wrong address', { kind: 'refused', status: 404, code: null, text: '' }, 'credential', false],
		['an unknown workflow', { kind: 'refused', status: 404, code: 5, text: '' }, 'refused', false],
		['notSent', { kind: 'notSent', code: 'ENOTFOUND', text: '' }, 'unreachable', true],
		['a bad certificate', { kind: 'notSent', code: 'ERR_TLS_X', text: '' }, 'unreachable', false],
		['redirected', { kind: 'redirected', status: 301, location: '/' }, 'credential', false],
		['a broken answer', { kind: 'unclear', status: 502, inItsForm: false, text: '' }, 'unclear', true],
		[
			'an outage that the service reports',
			{ kind: 'unclear', status: 500, inItsForm: true, text: '' },
			'unclear',
			true,
		],
		['lost', { kind: 'unclear', code: 'ECONNRESET', text: '' }, 'unclear', true],
	] as const)(
		'returns the kind of a failure and whether it may be temporary: %s',
		(_name, outcome, kind, passing) => {
			expect(explain(outcome, facts('write'))).toMatchObject({ kind, passing });
		},
	);

	it('says of an unanswered write that it was not repeated, and advises to repeat a read later', () => {
		const lost = { kind: 'unclear', code: 'ECONNRESET', text: 'gone' } as const;
		expect(explain(lost, facts('write')).advice).toContain('not repeated');
		expect(explain(lost, facts('read', 4))).toMatchObject({
			message: 'The node could not submit the task after 4 tries: gone',
			advice: expect.stringContaining('later'),
		});
	});

	it.each([408, 499, 500, 503])(
		'says that a write with HTTP %d may have been carried out, even if the envelope is valid',
		(status) => {
			const said = { kind: 'unclear', status, inItsForm: true, text: 'gave up' } as const;
			expect(explain(said, facts('write')).advice).toContain('may have carried it out');
			expect(explain(said, facts('read'))).toMatchObject({ kind: 'refused', passing: true });
		},
	);

	it('distinguishes a base URL with a path from a missing workflow, with or without an envelope', () => {
		const refused = (text: string) => ({ kind: 'refused', status: 404, code: 40400, text }) as const;
		const path = explain(refused('There is no such path'), facts('write'));
		expect(path).toMatchObject({ kind: 'credential', passing: false });
		expect(path.message).toBe('The API was not found at the base URL, so the node could not submit the task');
		expect(path.advice).toContain('without a path such as "/api"');
		expect(path.advice).not.toContain('Copy the ID again');
		expect(explain(refused('Not Found'), facts('write')).kind).toBe('credential');
		expect(explain(refused('no workflow w-1'), facts('write')).advice).toContain('Copy the ID again');
	});

	it.each([
		[402, null, 'Payment required'],
		[403, null, 'not enough balance'],
		[200, 1005, 'The balance is insufficient.'],
		[200, 1005, '账户已欠费'],
		[200, 402, 'Payment required'],
	] as const)('says that the account has no credit: HTTP %d, code %s, "%s"', (status, code, said) => {
		const outcome = { kind: 'refused', status, code, text: said } as const;
		expect(explain(outcome, facts('write'))).toMatchObject({
			kind: 'refused',
			message: 'The account has too little credit, so the node could not submit the task',
			advice: expect.stringMatching(/^Check the credit and the limits of the account.*The platform said: /),
			passing: false,
		});
		// Tasks that run are watched on.
		expect(explain(outcome, facts('read'))).toMatchObject({ kind: 'refused', passing: true });
	});

	it.each([
		['There is no workflow wf_1.', 'Copy the ID again'],
		['workflow wf_1 not found', 'Copy the ID again'],
		['The workflow wf_1 belongs to another account.', 'Choose the credential of the account'],
		['The workflow has no node 57.', 'that of another workflow'],
		['Node 6 (Prompt), parameter txt does not exist; it accepts: text.', 'that of another workflow'],
		['Node 3, parameter steps must be at most 150.', 'Compare what this item sends'],
	])('has the cure for "%s"', (text, cure) => {
		const { advice } = explain({ kind: 'refused', status: 200, code: 4, text }, facts('write'));
		expect(advice).toContain(cure);
		expect(advice).toContain('No task was created');
	});

	it('names the base URL if a web page arrives as a success, but not if a gateway sends one', () => {
		const page = (status: number) =>
			({ kind: 'unclear', status, inItsForm: false, text: 'a web page instead of JSON' }) as const;
		expect(explain(page(200), facts('write')).message).toMatch(
			/The Base URL in the credential may be wrong$/,
		);
		expect(explain(page(200), facts('read')).advice).toContain('and not of its console');
		expect(JSON.stringify(explain(page(502), facts('read')))).not.toContain('Base URL');
	});

	it('uses different advice for a read than for a submit, or that of the caller', () => {
		const refused = (status: number) => ({ kind: 'refused', status, code: null, text: 'a hiccup' }) as const;
		expect(explain(refused(422), facts('write')).advice).toContain('workflow ID');
		expect(explain(refused(422), facts('read')).advice).not.toMatch(/workflow|No task was created/);
		expect(explain(refused(403), facts('read')).advice).not.toContain('workflow');
		const own = { busy: 'Ask Cat.', rightful: 'Ask Ann.', check: 'Ask Bob.' };
		expect(explainCall(refused(422), facts(), own).advice).toBe('Ask Bob.');
		expect(explainCall(refused(403), facts(), own).advice).toBe('Ask Ann. The platform said: a hiccup.');
	});

	it('mentions the number of tries only if there was more than one', () => {
		const busy = { kind: 'busy', retryAfter: undefined, text: '' } as const;
		expect(explain(busy, facts('write', 1)).message).not.toContain('tries');
		expect(explain(busy, facts('write', 10)).message).toContain('after 10 tries');
	});

	it('includes the status with which a busy platform answered', () => {
		const busy = { kind: 'busy', retryAfter: undefined, text: '' } as const;
		expect(explain({ ...busy, status: 200 }, facts()).details).toEqual({ httpStatus: 200 });
		expect(explain(busy, facts()).details).toEqual({});
	});

	it('names only the origin to which a redirect leads', () => {
		const outcome = { kind: 'redirected', status: 307, location: 'https://eu.example:8443/a?b=c' } as const;
		expect(explain(outcome, facts()).advice).toContain('to https://eu.example:8443.');
	});

	it('includes the status and the code for the error output', () => {
		expect(explain({ kind: 'refused', status: 400, code: 7, text: 'x' }, facts()).details).toEqual({
			httpStatus: 400,
			code: 7,
		});
		expect(explain({ kind: 'unclear', code: 'ECONNRESET', text: 'x' }, facts()).details).toEqual({
			networkCode: 'ECONNRESET',
		});
	});

	it('shortens the message of a service to a readable length', () => {
		const failure = explain({ kind: 'refused', status: 400, code: 7, text: 'word '.repeat(10_000) }, facts());
		expect(failure.message.length).toBeLessThan(700);
	});

	it('lets no part of the key through, wherever a long answer is cut', () => {
		// Because of the colon, the part before the cut no longer looks like a key.
		const key = 'sk-ab:Secret0123456789Secret0123456789';
		const redact = redactor([key]);
		fc.assert(
			fc.property(fc.integer({ min: 400, max: 560 }), fc.constantFrom('msg', 'error'), (offset, field) => {
				const said = JSON.stringify({ code: 7, [field]: `${'x'.repeat(offset)} ${key}` });
				for (const status of [200, 401, 403, 429, 503]) {
					const outcome = classify({ kind: 'reply', status, headers: {}, text: said });
					if (outcome.kind === 'answered') throw new Error('a refusal was taken for success');
					expect(JSON.stringify(explain(outcome, { ...facts(), redact }))).not.toContain('Secret');
				}
			}),
		);
	});
});
