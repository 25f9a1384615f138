import { Readable } from 'node:stream';
import type { IHttpRequestOptions } from 'n8n-workflow';

import { probeHandshake } from '../../../../nodes/AgentBridge/connection/connection';
import { TestClock } from '../../testClock';

const TARGET = { url: 'wss://bridge.test/ws/v1', protocols: ['neutral.bridge.v1', 'bearer.abc'] };

function endless(): Readable {
	return new Readable({ read: () => undefined });
}

test('sends the headers of the handshake, follows no redirect and accepts any status', async () => {
	const asked: IHttpRequestOptions[] = [];
	const clock = new TestClock();
	const body = endless();
	const request = async (options: IHttpRequestOptions): Promise<unknown> => {
		asked.push(options);
		return { statusCode: 403, headers: {}, body };
	};
	expect(await probeHandshake(TARGET, request, clock)).toEqual({ kind: 'status', status: 403 });
	expect(asked).toMatchObject([
		{
			method: 'GET',
			url: 'https://bridge.test/ws/v1',
			disableFollowRedirect: true,
			ignoreHttpStatusErrors: true,
			headers: { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': 'neutral.bridge.v1, bearer.abc' },
		},
	]);
	const { 'Sec-WebSocket-Key': key } = asked[0]?.headers ?? {};
	expect(typeof key === 'string' && Buffer.from(key, 'base64').length).toBe(16);
	expect(clock.sleepers).toBe(0);
	// The answer's body is neither awaited nor left open.
	expect([body.destroyed, asked[0]?.encoding]).toEqual([true, 'stream']);
});

test('gives up after 3 seconds, because a bridge that accepts the upgrade never answers an HTTP client', async () => {
	const clock = new TestClock();
	const asked: IHttpRequestOptions[] = [];
	const request = async (options: IHttpRequestOptions): Promise<unknown> => {
		asked.push(options);
		return await new Promise(() => undefined);
	};
	expect(await clock.run(probeHandshake(TARGET, request, clock))).toEqual({ kind: 'nothing' });
	expect([clock.elapsedMs, asked[0]?.abortSignal?.aborted]).toEqual([3_000, true]);
});

test.each([
	[{ statusCode: 101 }, { kind: 'nothing' }],
	[
		{ statusCode: 301, headers: { location: 'https://new.test/ws/v2/?a=1' } },
		{ kind: 'status', status: 301, redirectsTo: 'wss://new.test/ws/v2/' },
	],
	[
		{ statusCode: 308, headers: { location: '/ws/v1/' } },
		{ kind: 'status', status: 308, redirectsTo: 'wss://bridge.test/ws/v1/' },
	],
	[
		{ statusCode: 302, headers: { location: 'http://' } },
		{ kind: 'status', status: 302 },
	],
	[
		{ statusCode: 503, headers: { location: '/elsewhere' } },
		{ kind: 'status', status: 503 },
	],
	['text', { kind: 'nothing' }],
	[{ statusCode: '401' }, { kind: 'nothing' }],
	[null, { kind: 'nothing' }],
])('reads the answer %j as %j', async (answer, probe) => {
	const response = typeof answer === 'object' && answer ? { ...answer, body: endless() } : answer;
	expect(await probeHandshake(TARGET, async () => response, new TestClock())).toEqual(probe);
});

test.each([
	[
		new Error('x', { cause: Object.assign(new Error('y'), { code: 'ECONNREFUSED' }) }),
		{ kind: 'unreachable', code: 'ECONNREFUSED' },
	],
	[Object.assign(new Error('x'), { code: 'ENOTFOUND' }), { kind: 'unreachable', code: 'ENOTFOUND' }],
	[Object.assign(new Error('x'), { code: 'ECONNRESET' }), { kind: 'nothing' }],
	[Object.assign(new Error('x'), { code: 'ERR_BAD_REQUEST' }), { kind: 'nothing' }],
	[
		Object.assign(new Error('x'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' }),
		{ kind: 'unreachable', code: 'SELF_SIGNED_CERT_IN_CHAIN' },
	],
	[new Error('socket hang up wst_secret'), { kind: 'nothing' }],
])('reads the error %s as %j', async (error, probe) => {
	const request = async (): Promise<unknown> => await Promise.reject(error);
	expect(await probeHandshake(TARGET, request, new TestClock())).toEqual(probe);
});
