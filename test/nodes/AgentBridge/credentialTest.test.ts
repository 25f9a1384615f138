import { startPlatform, type BridgeChannel, type LocalPlatform } from '../../platform';
import type { Harness } from '../harness';
import { createHarness } from '../harness';
import { until } from '../../until';

let harness: Harness;
let platform: LocalPlatform;
let channel: BridgeChannel;
beforeAll(async () => {
	harness = await createHarness();
});
afterAll(async () => {
	await harness.close();
});
beforeEach(async () => {
	platform = await startPlatform();
	channel = platform.createChannel();
});
afterEach(async () => {
	await platform.close();
});

async function result(change: Record<string, string> = {}): ReturnType<Harness['testCredential']> {
	const data = { channelToken: channel.token, wsBaseUrl: platform.wsUrl, ...change };
	return await harness.testCredential('flowBridgeApi', data);
}

test('opens, then closes, and sends nothing', async () => {
	expect(await result()).toEqual({ status: 'OK', message: 'The bridge accepted the channel account' });
	// The platform notices the close a moment later.
	await until(() => platform.books().bridge.open === 0);
	const { connections, received } = platform.books().bridge;
	expect(connections).toMatchObject([{ auth: 'subprotocol', closeCode: 1000, closedBy: 'client' }]);
	expect(received).toEqual([]);
});

test.each([
	['an unknown token', { channelToken: 'wst_unknown' }, 'refused the channel token (HTTP 401)'],
	['a token of another kind', { channelToken: 'sk-0123456789' }, 'FlowPlatform API'],
	['a missing address', { wsBaseUrl: '' }, 'no WebSocket Base URL'],
	['a wrong path', { bridgePath: '/elsewhere' }, 'Bridge Path'],
	['an unused port', { wsBaseUrl: 'ws://127.0.0.1:9' }, 'nothing answers there (ECONNREFUSED)'],
])('reports %s in a sentence', async (_what, change, said) => {
	expect(await result(change)).toEqual({ status: 'Error', message: expect.stringContaining(said) });
});

test('reports a server that accepts the connection and then closes it', async () => {
	platform.faults.add({ on: 'bridge', kind: 'socketClose', code: 4401, msg: channel.token });
	const { status, message } = await result();
	expect(status).toBe('Error');
	expect(message).toContain('refused the channel account (close code 4401');
	expect(message).not.toContain(channel.token);
});

test('reports a server that chooses another sub-protocol', async () => {
	platform.faults.add({
		on: 'bridge',
		kind: 'wrongProtocol',
		msg: `bearer.${btoa(channel.token).replace(/=+$/, '')}`,
	});
	expect((await result()).message).toContain('did not choose the sub-protocol');
});
