import fc from 'fast-check';

import { createChatApi } from '../../../nodes/ChatCompletion/api';
import { systemClock } from '../../../nodes/shared/time/clock';
import { redactor } from '../../../nodes/shared/text/redact';
import { Retry } from '../../../nodes/shared/retry/retry';
import type { Opening } from '../../../nodes/shared/http/request';
import { BodyEnded, type ByteStream } from '../../../nodes/shared/http/body';
import { hostileBodies, RAW_ERROR } from '../../nodes/ChatCompletion/hostileBodies';
import { STREAM_FORMS, type StreamForm } from '../../nodes/ChatCompletion/streamForms';

/* Reading must not depend on where the network splits a body: every form is cut at every byte. */

const CUTS_AT_ONCE = 3;

/** A body in these pieces. If the connection stays open, it ends as if the idle timeout aborted it. */
function bodyOf({ body, ending }: StreamForm, cuts: readonly number[]): ByteStream {
	const places = [0, ...cuts, body.length];
	return {
		destroy: () => undefined,
		async *[Symbol.asyncIterator]() {
			for (const [index, end] of places.slice(1).entries()) yield body.subarray(places[index], end);
			if (ending === 'hold') throw new BodyEnded('ETIMEDOUT', 'the connection went silent');
			if (ending === 'reset') throw Object.assign(new Error('aborted'), { code: 'ECONNRESET' });
		},
	};
}

async function ask(form: StreamForm, cuts: readonly number[]) {
	const clock = systemClock;
	const { signal } = new AbortController();
	const redact = redactor([]);
	const opening: Opening = {
		kind: 'open',
		status: 200,
		headers: { 'content-type': form.contentType },
		body: bodyOf(form, cuts),
	};
	const heard = { content: '', reasoning: '' };
	const result = await createChatApi({
		baseUrl: 'http://platform',
		busyTerms: [],
		open: async () => await Promise.resolve(opening),
		retry: new Retry({ requestsPerSecond: 0, concurrency: 1 }, { clock, signal }, () => 0),
		clock,
		redact,
		signal,
	})({
		body: {},
		onPiece: async ({ content, reasoning }) => {
			heard.content += content;
			heard.reasoning += reasoning;
			await Promise.resolve();
		},
		idleMs: 1_000,
		endByMs: Infinity,
		tries: 1,
	});
	// Calls without an ID get one of their own each time.
	const text = JSON.stringify(result).replace(/call_[0-9a-f]{32}/g, 'call_own');
	return { result: JSON.parse(text) as typeof result, heard };
}

test.each(STREAM_FORMS)('is read the same however it is cut: $name', async (form) => {
	const whole = await ask(form, []);
	const { expected } = form;
	if ('answer' in expected) {
		expect(whole.result).toMatchObject({ ok: true, value: expected.answer });
		expect(whole.heard).toEqual({
			content: expected.answer.content,
			reasoning: expected.answer.reasoning,
		});
	} else {
		const { ok, failure } = whole.result.ok ? { ok: true, failure: undefined } : whole.result;
		expect(ok).toBe(false);
		expect(failure?.message).toMatch(expected.error);
		if (expected.details) expect(failure?.details).toMatchObject(expected.details);
	}
	const everyByte = Array.from({ length: Math.max(0, form.body.length - 1) }, (_, index) => index + 1);
	// A few cuts at once, because one at a time would take long.
	const apart = Math.ceil(everyByte.length / CUTS_AT_ONCE);
	for (const first of everyByte.slice(0, apart)) {
		const cuts = everyByte.filter((cut) => cut >= first && (cut - first) % apart === 0);
		const result = await ask(form, cuts);
		// Thousands of comparisons of texts are fast, unlike those of objects.
		if (JSON.stringify(result) !== JSON.stringify(whole)) {
			expect({ cuts, ...result }).toEqual({ cuts, ...whole });
		}
	}
	expect(await ask(form, everyByte)).toEqual(whole);
});

test('hostile bodies lead to an answer or a readable failure, however they are cut', async () => {
	const endings = fc.constantFrom('end' as const, 'end' as const, 'reset' as const, 'hold' as const);
	let answers = 0;
	await fc.assert(
		fc.asyncProperty(hostileBodies(), endings, fc.nat(200), async (body, ending, cut) => {
			const form: StreamForm = {
				name: '',
				body,
				ending,
				contentType: 'text/event-stream',
				expected: { error: /./ },
			};
			const whole = await ask(form, []);
			if (whole.result.ok) answers++;
			else {
				const { message, advice } = whole.result.failure;
				expect(message).not.toBe('');
				expect(`${message} ${advice}`).not.toMatch(RAW_ERROR);
			}
			if (cut > 0 && cut < body.length) {
				expect(JSON.stringify(await ask(form, [cut]))).toBe(JSON.stringify(whole));
			}
		}),
		{ numRuns: 1_000 },
	);
	expect(answers).toBeGreaterThan(60);
});
