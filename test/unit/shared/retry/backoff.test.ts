import fc from 'fast-check';

import { askedPauseMs, backoffMs, mayRepeat, retryAfterMs } from '../../../../nodes/shared/retry/backoff';
import type { FailedOutcome, Outcome } from '../../../../nodes/shared/http/outcome';

const busy = (retryAfter?: string): FailedOutcome => ({ kind: 'busy', retryAfter, text: '' });
const notSent = (code: string): FailedOutcome => ({ kind: 'notSent', code, text: '' });
const unclear = (of: { status: number } | { code: string }, inItsForm = false): FailedOutcome => ({
	...{ kind: 'unclear', text: '', inItsForm, ...of },
});

describe('mayRepeat', () => {
	const table: Array<[string, Outcome<unknown>, boolean, boolean]> = [
		['too many requests', busy(), true, true],
		['a refused connection', notSent('ECONNREFUSED'), true, true],
		['a host name that is not found', notSent('ENOTFOUND'), true, true],
		['a busy name server', notSent('EAI_AGAIN'), true, true],
		['a host without a route', notSent('EHOSTUNREACH'), true, true],
		['a host that accepts no connection', notSent('ETIMEDOUT'), true, true],
		['a rejected certificate', notSent('CERT_HAS_EXPIRED'), false, false],
		['a request that n8n would not send', notSent(''), false, false],
		['a reset connection', unclear({ code: 'ECONNRESET' }), true, false],
		['a timeout', unclear({ code: 'ECONNABORTED' }), true, false],
		['a timeout while connecting', unclear({ code: 'ETIMEDOUT' }), true, false],
		['a body that was cut off', unclear({ status: 200 }), true, false],
		['HTTP 502 of a gateway', unclear({ status: 502 }), true, false],
		['HTTP 500 of the service itself', unclear({ status: 500 }, true), true, false],
		['HTTP 408', unclear({ status: 408 }), true, false],
		['a refusal', { kind: 'refused', status: 400, code: 7, text: '' }, false, false],
		['a refused key', { kind: 'refused', status: 401, code: null, text: '' }, false, false],
		['a redirect', { kind: 'redirected', status: 302, location: '' }, false, false],
		['a stopped execution', { kind: 'cancelled' }, false, false],
		['success', { kind: 'answered', data: null }, false, false],
	];

	it.each(table)(
		'knows whether a read or a write may be repeated after %s',
		(_name, outcome, read, write) => {
			expect(mayRepeat(outcome, 'read')).toBe(read);
			expect(mayRepeat(outcome, 'write')).toBe(write);
		},
	);
});

describe('retryAfterMs', () => {
	const now = Date.UTC(2030, 0, 1, 12);

	it.each([
		['seconds', '7', 7_000],
		['seconds with spaces', ' 7 ', 7_000],
		['a fraction of a second', '0.25', 250],
		['zero', '0', 0],
		['less than zero', '-3', 0],
		['a date', 'Tue, 01 Jan 2030 12:00:30 GMT', 30_000],
		['a date in the obsolete format', 'Tuesday, 01-Jan-30 12:00:30 GMT', 30_000],
		['the current date', 'Tue, 01 Jan 2030 12:00:00 GMT', 0],
		['a date that has passed', 'Wed, 21 Oct 2015 07:28:00 GMT', 0],
	])('reads %s', (_name, header, expected) => {
		expect(retryAfterMs(header, now)).toBe(expected);
	});

	it.each([
		['nothing', undefined],
		['an empty header', ''],
		['spaces', '  '],
		['a word', 'soon'],
		['a word with a number, which is not a date', 'retry 3'],
		['a number with a unit', '30s'],
		['a decimal comma', '1,5'],
		['infinity', 'Infinity'],
		['two headers joined into one', '5, 7'],
	])('ignores %s', (_name, header) => {
		expect(retryAfterMs(header, now)).toBe(0);
	});

	it('returns a waiting time, whatever the header contains', () => {
		fc.assert(
			fc.property(fc.oneof(fc.string(), fc.date().map(String), fc.double().map(String)), (header) => {
				expect(retryAfterMs(header, now)).toBeGreaterThanOrEqual(0);
			}),
		);
	});
});

it('waits as long as the service asks, but at most five minutes', () => {
	expect(askedPauseMs('7', 0)).toBe(7_000);
	expect(askedPauseMs('86400', 0)).toBe(300_000);
	expect(askedPauseMs('Fri, 01 Jan 2100 00:00:00 GMT', 0)).toBe(300_000);
});

describe('backoffMs', () => {
	it('doubles its steps up to twenty seconds', () => {
		const longest = [1, 2, 3, 4, 5, 6, 7, 8, 50].map((tries) => backoffMs(tries, () => 1));
		expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000, 20_000]);
	});

	it('stays between 0 and its step for every random number and any number of tries', () => {
		const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
		fc.assert(
			fc.property(fc.integer({ min: 1, max: 10_000 }), draw, (tries, random) => {
				const delayMs = backoffMs(tries, () => random);
				expect(Number.isInteger(delayMs)).toBe(true);
				expect(delayMs).toBeGreaterThanOrEqual(0);
				expect(delayMs).toBeLessThanOrEqual(Math.min(20_000, 500 * 2 ** (tries - 1)));
			}),
		);
	});
});
