import { getEventListeners } from 'node:events';
import { PassThrough, Readable } from 'node:stream';

import {
	afterStop,
	describeError,
	exchangeOfError,
	openReply,
	readBody,
	requestOptions,
} from '../../../../nodes/shared/http/request';
import type { ByteStream } from '../../../../nodes/shared/http/abortableStream';

function errorWith(message: string, extra: Record<string, unknown>): Error {
	return Object.assign(new Error(message), extra);
}

const MEGABYTE = 1024 * 1024;

describe('openReply', () => {
	const body = Readable.from(['x']);

	it('narrows an answer and writes header names small', () => {
		const response = {
			statusCode: 200,
			headers: { 'Retry-After': '7', 'X-Count': 3, 'set-cookie': ['a'] },
			body,
		};
		expect(openReply(response)).toEqual({
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
	])('takes %s for no answer', (_name, response) => {
		expect(openReply(response)).toBeUndefined();
	});

	it('bears with headers that are none', () => {
		expect(openReply({ statusCode: 204, headers: null, body })?.headers).toEqual({});
	});
});

describe('what ends requests that outlive a stop', () => {
	it('leaves an execution one listener, however many runs and accounts it has', () => {
		const execution = new AbortController();
		const context = { getExecutionCancelSignal: () => execution.signal };
		const signals = new Set(Array.from({ length: 100 }, () => afterStop(context)));
		expect([signals.size, getEventListeners(execution.signal, 'abort').length]).toEqual([1, 1]);
	});
});

describe('readBody', () => {
	it('puts the pieces together', async () => {
		const body = Readable.from([Buffer.from('a'), Buffer.from('bc'), Buffer.from('')]);
		await expect(readBody(body, 1_000, 100)).resolves.toEqual(Buffer.from('abc'));
	});

	it('takes a body that is exactly as large as allowed', async () => {
		await expect(readBody(Readable.from([Buffer.alloc(100)]), 1_000, 100)).resolves.toHaveLength(100);
	});

	it.each([
		['in one piece', [101]],
		['with its last piece', [60, 41]],
		['with a piece in the middle', [60, 60, 60]],
	])('refuses one that is too large %s', async (_name, sizes) => {
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

	it('gives up on one that does not end, and lets go of it', async () => {
		const silent = new PassThrough();
		silent.write('{"code":');
		await expect(readBody(silent, 20, 100)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
		expect(silent.destroyed).toBe(true);
	});

	it('whose time is up does not wait for ever', () => {
		const { timeout } = requestOptions({ method: 'GET', url: 'http://127.0.0.1/', timeoutMs: 0 });
		expect(timeout).toBe(1);
	});

	it.each([0.4, 1_100.000_000_000_2, Infinity])('bears with a timeout of %d ms', async (timeoutMs) => {
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
	it('finds the code below what n8n wraps around it', () => {
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

	it('takes the innermost of several codes', () => {
		const error = errorWith('outer', {
			code: 'ERR_BAD_RESPONSE',
			cause: errorWith('inner', { code: 'ECONNRESET' }),
		});
		expect(describeError(error)).toMatchObject({ code: 'ECONNRESET', reason: 'inner' });
	});

	it('keeps the last words that were said where the innermost has none', () => {
		expect(describeError(new Error('words', { cause: new Error('') })).reason).toBe('words');
	});

	it.each([undefined, null, 'text', 7, {}, { message: 'x' }])(
		'finds words for %j, which is no error',
		(thrown) => {
			expect(describeError(thrown)).toEqual({ code: '', reason: 'no reason was given', fromNetwork: false });
		},
	);

	it('comes to an end where errors cause each other', () => {
		const first = new Error('first');
		const second = new Error('second', { cause: first });
		first.cause = second;
		expect(describeError(first).reason).toMatch(/first|second/);
	});

	it('does not take a code that is a number for one', () => {
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
	])('knows that nothing was sent at %s', (code) => {
		expect(exchangeOfError(network(code))).toEqual({ kind: 'lost', sent: 'no', code, reason: code });
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
	])('does not know what became of the request at %s', (code) => {
		expect(exchangeOfError(network(code))).toMatchObject({ kind: 'lost', sent: 'unknown', code });
	});

	it.each([
		['EHOSTUNREACH', 'read EHOSTUNREACH'],
		['ENETUNREACH', 'write ENETUNREACH'],
		['ENETDOWN', 'read ENETDOWN'],
		[
			'EPROTO',
			'write EPROTO 40:error:0A000119:SSL routines:ssl3_get_record:decryption failed or bad record mac',
		],
	])('does not know what became of the request where an open connection ended by %s', (code, message) => {
		const error = errorWith('wrapped', { cause: errorWith(message, { code, isAxiosError: true }) });
		expect(exchangeOfError(error)).toMatchObject({ kind: 'lost', sent: 'unknown', code });
	});

	it.each([
		['ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:9'],
		['EHOSTUNREACH', 'connect EHOSTUNREACH 10.0.0.1:443'],
		['ENOTFOUND', 'getaddrinfo ENOTFOUND platform.example'],
		['EPROTO', 'write EPROTO 40:error:0A00010B:SSL routines:ssl3_get_record:wrong version number'],
	])('knows that nothing was sent where no connection came about by %s', (code, message) => {
		expect(exchangeOfError(errorWith(message, { code, isAxiosError: true }))).toMatchObject({ sent: 'no' });
	});

	it('takes an error of the client without a code for one after sending', () => {
		expect(exchangeOfError(errorWith('x', { isAxiosError: true }))).toMatchObject({ sent: 'unknown' });
	});

	it('knows that nothing was sent where n8n refused to', () => {
		expect(exchangeOfError(new Error('blocked'))).toMatchObject({ sent: 'no', code: '' });
	});

	it('takes any error after a stop for the stop', () => {
		expect(exchangeOfError(network('ECONNRESET'), AbortSignal.abort())).toEqual({ kind: 'cancelled' });
		expect(exchangeOfError(network('ERR_CANCELED'))).toEqual({ kind: 'cancelled' });
		expect(exchangeOfError(network('ECONNRESET'), new AbortController().signal)).toMatchObject({
			kind: 'lost',
		});
	});

	it('keeps nothing of the error but words and a code', () => {
		const error = errorWith('refused', {
			code: 'ECONNRESET',
			config: { headers: { Authorization: 'Bearer sk-Abcdef0123456789' } },
		});
		expect(JSON.stringify(exchangeOfError(error))).not.toContain('sk-');
	});
});
