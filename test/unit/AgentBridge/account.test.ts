import fc from 'fast-check';

import { readBridgeAccount } from '../../../nodes/AgentBridge/account';

const CREDENTIAL = {
	channelToken: 'wst_abc-123',
	wsBaseUrl: 'wss://platform.example.com',
	bridgePath: '/ws/v1',
	subprotocol: 'neutral.bridge.v1',
};

test('the sub-protocols of §5.4, base64url without padding', () => {
	fc.assert(
		fc.property(fc.stringMatching(/^[\w~?>+/-]{1,40}$/), (rest) => {
			const channelToken = `wst_${rest}`;
			const account = readBridgeAccount({ ...CREDENTIAL, channelToken });
			if (!account.ok) throw new Error(account.failure.message);
			const { bearer, secrets } = account.value;
			expect(bearer).toMatch(/^bearer\.[A-Za-z0-9_-]+$/);
			expect(Buffer.from(bearer.slice('bearer.'.length), 'base64url').toString()).toBe(channelToken);
			expect(secrets).toEqual([channelToken, bearer.slice('bearer.'.length)]);
		}),
	);
});

test.each([
	['wss://platform.example.com', '/ws/v1', 'wss://platform.example.com/ws/v1'],
	['  ws://127.0.0.1:4010/ ', 'ws/v1', 'ws://127.0.0.1:4010/ws/v1'],
	['https://platform.example.com/', '', 'wss://platform.example.com/ws/v1'],
	['http://h:1/base', '/bridge', 'ws://h:1/base/bridge'],
	['wss://platform.example.com/ws/v1/', '/ws/v1', 'wss://platform.example.com/ws/v1'],
])('%j with path %j is %s', (wsBaseUrl, bridgePath, url) => {
	expect(readBridgeAccount({ ...CREDENTIAL, wsBaseUrl, bridgePath })).toMatchObject({
		ok: true,
		value: { url },
	});
});

test.each([
	[{ channelToken: '' }, 'holds no secret'],
	[{ channelToken: 'sk-0123456789' }, 'FlowPlatform API'],
	[{ channelToken: 'agt_0123456789' }, 'FlowAgent API'],
	[{ channelToken: 'something' }, 'starts otherwise'],
	[{ wsBaseUrl: '' }, 'no WebSocket Base URL'],
	[{ wsBaseUrl: 'platform' }, 'complete address'],
	[{ wsBaseUrl: 'ftp://platform' }, 'must start with wss://'],
	[{ wsBaseUrl: 'wss://user:0123456789@h' }, 'a user name or a password'],
	[{ wsBaseUrl: 'https://0123456789@h' }, 'a user name or a password'],
	[{ wsBaseUrl: 'wss://h/?token=0123456789#y' }, 'holds a "?"'],
	[{ subprotocol: 'two, names' }, 'not a name'],
])('%j is refused: %s', (change, said) => {
	const account = readBridgeAccount({ ...CREDENTIAL, ...change });
	expect(account).toMatchObject({ ok: false, failure: { message: expect.stringContaining(said) } });
	expect(JSON.stringify(account)).not.toContain('0123456789');
});
