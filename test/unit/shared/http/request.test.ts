import { getEventListeners } from 'node:events';
import { PassThrough, Readable } from 'node:stream';

import {
	afterStop,
	describeError,
	exchangeOfError,
	openingOf,
	requestOptions,
} from '../../../../nodes/shared/http/request';
import { readBody, type ByteStream } from '../../../../nodes/shared/http/body';

function errorWith(message: string, extra: Record<string, unknown>): Error {
	return Object.assign(new Error(message), extra);
}

const MEGABYTE = 1024 * 1024;

describe('openingOf', () => {
	const body = Readable.from(['x']);

	it('narrows an answer and converts header names to lower case', () => {
		const response = {
			statusCode: 200,
			headers: { 'Retry-After': '7', 'X-Count': 3, 'set-cookie': ['a'] },
			body,
		};
		expect(openingOf(response)).toEqual({
			kind: 'open',
			status: 200,
			headers: { 'retry-after': '7', 'x-count': '3' },
			body,
		});
	});

	it.each([
		['nothing', undefined],
		['null', null],
		['text', 'OK'],
		['no status', { headers: {}, body }],
		['a status that is text', { statusCode: '200', headers: {}, body }],
		['no headers', { statusCode: 200, body }],
		['a body that is text', { statusCode: 200, headers: {}, body: 'text' }],
		['a body that is a buffer', { statusCode: 200, headers: {}, body: Buffer.from('x') }],
		['a body that is null', { statusCode: 200, headers: {}, body: null }],
	])('does not accept %s as an answer', (_name, response) => {
		expect(openingOf(response)).toMatchObject({ kind: 'unclear', code: 'ERR_NO_BODY' });
	});

	it('tolerates headers that are null', () => {
		expect(openingOf({ statusCode: 204, headers: null, body })).toMatchObject({ headers: {} });
	});
});

describe('the signal for requests that outlive a stop', () => {
	it('adds one listener per execution, however many runs and accounts it has', () => {
		const execution = new AbortController();
		const context = { getExecutionCancelSignal: () => execution.signal };
		const signals = new Set(Array.from({ length: 100 }, () => afterStop(context)));
		expect([signals.size, getEventListeners(execution.signal, 'abort').length]).toEqual([1, 1]);
	});
});

describe('the options of a request', () => {
	it('include a timeout even if no time is left', () => {
		const { timeout } = requestOptions({ method: 'GET', url: 'http://127.0.0.1/', timeoutMs: 0 });
		expect(timeout).toBe(1);
	});
});

describe('readBody', () => {
	it('puts the pieces together', async () => {
		const body = Readable.from([Buffer.from('a'), Buffer.from('bc'), Buffer.from('')]);
		await expect(readBody(body, 1_000, 100)).resolves.toEqual(Buffer.from('abc'));
	});

	it('accepts a body that is exactly as large as allowed', async () => {
		await expect(readBody(Readable.from([Buffer.alloc(100)]), 1_000, 100)).resolves.toHaveLength(100);
	});

	it.each([
		['in one piece', [101]],
		['with its last piece', [60, 41]],
		['with a piece in the middle', [60, 60, 60]],
	])('refuses a body that is too large %s', async (_name, sizes) => {
		const body = Readable.from(sizes.map((size) => Buffer.alloc(size)));
		await expect(readBody(body, 1_000, 100)).rejects.toMatchObject({ code: 'ERR_TOO_LARGE' });
		expect(body.destroyed).toBe(true);
	});

	it('does not read an endless body to its end', async () => {
		let given = 0;
		const endless = Readable.from(
			(function* () {
				for (;;) {
					given++;
					yield Buffer.alloc(MEGABYTE);
				}
			})(),
		);
		await expect(readBody(endless, 10_000, 4 * MEGABYTE)).rejects.toMatchObject({ code: 'ERR_TOO_LARGE' });
		expect(given).toBeLessThan(50);
	});

	it('gives up on a body that does not end, and closes it', async () => {
		const silent = new PassThrough();
		silent.write('{"code":');
		await expect(readBody(silent, 20, 100)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
		expect(silent.destroyed).toBe(true);
	});

	it.each([0.4, 1_100.000_000_000_2, Infinity])('accepts a timeout of %d ms', async (timeoutMs) => {
		await expect(readBody(Readable.from([Buffer.from('ab')]), timeoutMs, 100)).resolves.toHaveLength(2);
	});

	it('leaves a body alone once it has been read', async () => {
		const destroyed = jest.fn();
		const body: ByteStream = {
			async *[Symbol.asyncIterator]() {
				yield Buffer.from('x');
			},
			destroy: destroyed,
		};
		await readBody(body, 5, 100);
		await new Promise((resolve) => setTimeout(resolve, 15));
		expect(destroyed).not.toHaveBeenCalled();
	});
});

describe('describeError', () => {
	it("finds the code inside n8n's wrappers", () => {
		const inner = errorWith('connect ECONNREFUSED 127.0.0.1:1', { code: 'ECONNREFUSED', isAxiosError: true });
		const outer = new Error('The service refused the connection', {
			cause: new Error('wrapped', { cause: inner }),
		});
		expect(describeError(outer)).toEqual({
			code: 'ECONNREFUSED',
			reason: 'connect ECONNREFUSED 127.0.0.1:1',
			fromNetwork: true,
		});
	});

	it('uses the innermost of several codes', () => {
		const error = errorWith('outer', {
			code: 'ERR_BAD_RESPONSE',
			cause: errorWith('inner', { code: 'ECONNRESET' }),
		});
		expect(describeError(error)).toMatchObject({ code: 'ECONNRESET', reason: 'inner' });
	});

	it('uses the innermost message that is not empty', () => {
		expect(describeError(new Error('words', { cause: new Error('') })).reason).toBe('words');
	});

	it.each([undefined, null, 'text', 7, {}, { message: 'x' }])(
		'returns a reason for %j, which is not an error',
		(thrown) => {
			expect(describeError(thrown)).toEqual({ code: '', reason: 'no reason was given', fromNetwork: false });
		},
	);

	it('terminates even if errors cause each other', () => {
		const first = new Error('first');
		const second = new Error('second', { cause: first });
		first.cause = second;
		expect(describeError(first).reason).toMatch(/first|second/);
	});

	it('ignores a code that is a number', () => {
		expect(describeError(errorWith('x', { code: 500 }))).toMatchObject({ code: '', fromNetwork: false });
	});
});

describe('exchangeOfError', () => {
	const network = (code: string): Error => errorWith(code, { code, isAxiosError: true });

	it.each([
		'ECONNREFUSED',
		'ENOTFOUND',
		'EAI_AGAIN',
		'EHOSTUNREACH',
		'ENETUNREACH',
		'CERT_HAS_EXPIRED',
		'ERR_TLS_CERT_ALTNAME_INVALID',
		'DEPTH_ZERO_SELF_SIGNED_CERT',
		'SELF_SIGNED_CERT_IN_CHAIN',
		'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
		'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
		'EPROTO',
	])('treats %s as a request that was not sent', (code) => {
		expect(exchangeOfError(network(code))).toEqual({ kind: 'notSent', code, text: code });
	});

	it.each([
		'ECONNRESET',
		'EPIPE',
		'ECONNABORTED',
		'ETIMEDOUT',
		'ERR_NETWORK',
		'ERR_BAD_RESPONSE',
		'ERR_STREAM_PREMATURE_CLOSE',
		'ERR_TOO_LARGE',
		'EPROTOCOL',
		'XCERT_',
	])('treats %s as a request with an unknown outcome', (code) => {
		expect(exchangeOfError(network(code))).toMatchObject({ kind: 'unclear', code });
	});

	it.each([
		['EHOSTUNREACH', 'read EHOSTUNREACH'],
		['ENETUNREACH', 'write ENETUNREACH'],
		['ENETDOWN', 'read ENETDOWN'],
		[
			'EPROTO',
			'write EPROTO 40:error:0A000119:SSL routines:ssl3_get_record:decryption failed or bad record mac',
		],
	])('treats the end of an open connection by %s as an unknown outcome', (code, message) => {
		const error = errorWith('wrapped', { cause: errorWith(message, { code, isAxiosError: true }) });
		expect(exchangeOfError(error)).toMatchObject({ kind: 'unclear', code });
	});

	it.each([
		['ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:9'],
		['EHOSTUNREACH', 'connect EHOSTUNREACH 10.0.0.1:443'],
		['ENOTFOUND', 'getaddrinfo ENOTFOUND platform.example'],
		['EPROTO', 'write EPROTO 40:error:0A00010B:SSL routines:ssl3_get_record:wrong version number'],
		['ETIMEDOUT', 'connect ETIMEDOUT 10.0.0.1:443'],
		['EACCES', 'connect EACCES 10.0.0.1:443'],
		['ECONNRESET', 'Client network socket disconnected before secure TLS connection was established'],
	])('treats a connection that failed with %s as a request that was not sent', (code, message) => {
		expect(exchangeOfError(errorWith(message, { code, isAxiosError: true }))).toMatchObject({
			kind: 'notSent',
		});
	});

	it('reads the error of the first address if a host has several, none of which answered', () => {
		const errors = ['10.0.0.1', '10.0.0.2'].map((address) =>
			errorWith(`connect ETIMEDOUT ${address}:443`, { code: 'ETIMEDOUT' }),
		);
		const cause = errorWith('', { code: 'ETIMEDOUT', errors });
		expect(exchangeOfError(errorWith('', { code: 'ETIMEDOUT', isAxiosError: true, cause }))).toEqual({
			kind: 'notSent',
			code: 'ETIMEDOUT',
			text: 'connect ETIMEDOUT 10.0.0.1:443',
		});
	});

	const BROKE = 'the connection broke before the answer was complete';
	it.each([
		['timeout of 27992ms exceeded', 'ECONNABORTED', 'no answer came within 28 seconds'],
		['read ECONNRESET', 'ECONNRESET', BROKE],
		['socket hang up', 'ECONNRESET', BROKE],
		['aborted', '', BROKE],
		['stream has been aborted', 'ERR_BAD_RESPONSE', 'stream has been aborted'],
	])('says "%s" in plain words', (message, code, reason) => {
		const error = errorWith(message, { code, isAxiosError: true });
		expect(exchangeOfError(error)).toEqual({ kind: 'unclear', code, text: reason });
	});

	it('treats a client error without a code as an unknown outcome', () => {
		expect(exchangeOfError(errorWith('x', { isAxiosError: true }))).toMatchObject({ kind: 'unclear' });
	});

	it('treats a refusal by n8n as a request that was not sent', () => {
		expect(exchangeOfError(new Error('blocked'))).toMatchObject({ kind: 'notSent', code: '' });
	});

	it('treats any error after a stop as the stop', () => {
		expect(exchangeOfError(network('ECONNRESET'), AbortSignal.abort())).toEqual({ kind: 'cancelled' });
		expect(exchangeOfError(network('ERR_CANCELED'))).toEqual({ kind: 'cancelled' });
		expect(exchangeOfError(network('ECONNRESET'), new AbortController().signal)).toMatchObject({
			kind: 'unclear',
		});
	});

	it('keeps only the message and the code of the error', () => {
		const error = errorWith('refused', {
			code: 'ECONNRESET',
			config: { headers: { Authorization: 'Bearer sk-Abcdef0123456789' } },
		});
		expect(JSON.stringify(exchangeOfError(error))).not.toContain('sk-');
	});
});
