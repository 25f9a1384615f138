import fc from 'fast-check';

import { fillAuthFrame, readBridgeAccount } from '../../../nodes/AgentBridge/account';
import { valueOf } from '../results';

const CREDENTIAL = {
	channelToken: 'wst_abc-123',
	wsBaseUrl: 'wss://platform.example.com',
	bridgePath: '/ws/v1',
	subprotocol: 'neutral.bridge.v1',
};

test('offers the sub-protocols of §5.4, in base64url without padding', () => {
	fc.assert(
		fc.property(fc.stringMatching(/^[\w~?>+/-]{1,40}$/), (rest) => {
			const channelToken = `wst_${rest}`;
			const { protocols, secrets } = valueOf(readBridgeAccount({ ...CREDENTIAL, channelToken }));
			const [, bearer = ''] = protocols;
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
	['wss://h/ws/v1', '/channel', 'wss://h/ws/v1/channel'],
	['wss://h/api/agents/bridge', '/api/agents/bridge', 'wss://h/api/agents/bridge'],
])('%j with path %j becomes %s', (wsBaseUrl, bridgePath, url) => {
	expect(readBridgeAccount({ ...CREDENTIAL, wsBaseUrl, bridgePath })).toMatchObject({
		ok: true,
		value: { url },
	});
});

test.each([
	[{ channelToken: '' }, 'contains no secret'],
	[{ channelToken: 'sk-0123456789' }, 'FlowPlatform API'],
	[{ channelToken: 'agt_0123456789' }, 'FlowAgent API'],
	[{ channelToken: 'something' }, 'this one does not'],
	[{ wsBaseUrl: '' }, 'no WebSocket Base URL'],
	[{ wsBaseUrl: 'platform' }, 'complete URL'],
	[{ wsBaseUrl: 'ftp://platform' }, 'must start with wss://'],
	[{ wsBaseUrl: 'wss://user:0123456789@h' }, 'a user name or password'],
	[{ wsBaseUrl: 'https://0123456789@h' }, 'a user name or password'],
	[{ wsBaseUrl: 'wss://h/api/maas' }, 'contains an API path, "/api/maas"'],
	[{ wsBaseUrl: 'https://h/maas/v1/' }, 'contains an API path, "/maas/v1"'],
	[{ wsBaseUrl: 'wss://h/?token=0123456789#y' }, 'contains a "?"'],
	[{ subprotocol: 'two, names' }, 'not a valid name of a WebSocket sub-protocol'],
])('refuses %j: %s', (change, said) => {
	const account = readBridgeAccount({ ...CREDENTIAL, ...change });
	expect(account).toMatchObject({ ok: false, failure: { message: expect.stringContaining(said) } });
	expect(JSON.stringify(account)).not.toContain('0123456789');
});

describe('the authentication frame', () => {
	test.each([
		['{"type":"auth","token":"$token"}', { type: 'auth', token: 'wst_x' }],
		['{"auth":{"header":["Bearer $token",1,null]}}', { auth: { header: ['Bearer wst_x', 1, null] } }],
		[{ token: '$token' }, { token: 'wst_x' }],
	])('is filled in from %j', (template, frame) => {
		const filled = fillAuthFrame(template, 'wst_x');
		expect(filled.ok && JSON.parse(filled.value)).toEqual(frame);
	});

	test('contains every token without breaking its JSON', () => {
		fc.assert(
			fc.property(fc.string(), (rest) => {
				const token = `wst_${rest}`;
				const filled = fillAuthFrame('{"token":"$token","a":1}', token);
				expect(filled.ok && JSON.parse(filled.value)).toEqual({ token, a: 1 });
			}),
		);
	});

	test.each(['{"token":"$token","id":9007199254740993}', { token: '$token', id: 2 ** 60 }])(
		'is refused if a number would lose digits: %j',
		(template) => {
			expect(fillAuthFrame(template, 'wst_secret')).toMatchObject({
				failure: { kind: 'badInput', message: expect.stringContaining('which would lose digits') },
			});
		},
	);

	test.each(['', 'auth $token', '["$token"]', '{"token":"token"}', '{"$token":1}', null, 17])(
		'is refused without naming the token: %j',
		(template) => {
			const filled = fillAuthFrame(template, 'wst_secret');
			expect(filled).toMatchObject({ ok: false, failure: { kind: 'badInput' } });
			expect(JSON.stringify(filled)).not.toContain('wst_secret');
		},
	);
});

test('a sub-protocol of "-" offers neither a sub-protocol nor the token', () => {
	expect(readBridgeAccount({ ...CREDENTIAL, subprotocol: ' - ' })).toMatchObject({
		ok: true,
		value: { protocols: [], token: 'wst_abc-123' },
	});
});
