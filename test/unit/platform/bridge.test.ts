import WebSocket from 'ws';
import { startPlatform, type LocalPlatform } from '../../platform';
import { until } from '../../until';

const PROTOCOL = 'neutral.bridge.v1';
const bearer = (token: string): string => `bearer.${Buffer.from(token).toString('base64url')}`;

let platform: LocalPlatform;
beforeEach(async () => {
	platform = await startPlatform();
	platform.createChannel({ token: 'wst_open' });
});
afterEach(async () => {
	await platform.close();
});

function offer(protocols: string[], path = '/ws/v1'): void {
	new WebSocket(`${platform.wsUrl}${path}`, protocols).on('error', () => undefined);
}

test.each([
	['an unknown token', [PROTOCOL, bearer('wst_unknown')], 401],
	['a token that is not base64url', [PROTOCOL, 'bearer.wst_a+b'], 401],
	['a padded token', [PROTOCOL, `bearer.${encodeURIComponent(btoa('wst_open'))}`], 401],
	['two tokens', [PROTOCOL, bearer('wst_open'), bearer('wst_other')], 400],
	['no protocol version', [bearer('wst_open')], 400],
	['another protocol version', ['neutral.bridge.v2', bearer('wst_open')], 400],
])('the handshake refuses %s', async (_what, protocols, status) => {
	offer(protocols);
	await until(() => platform.books().bridge.refused.length > 0);
	expect(platform.books().bridge).toMatchObject({ refused: [{ status }], connections: [] });
});

test('a token in the URL is a leak', async () => {
	offer([PROTOCOL], '/ws/v1?token=wst_open');
	await until(() => platform.books().leaks.length > 0);
	expect(platform.books().leaks).toEqual([{ where: '/ws/v1', header: 'address' }]);
});
