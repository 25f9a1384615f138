import { once } from 'node:events';
import WebSocket from 'ws';
import { BRIDGE_CLOSE, startPlatform, type BridgeChannel, type LocalPlatform } from '../../platform';
import { until } from '../../until';

const PROTOCOL = 'neutral.bridge.v1';
const bearer = (token: string): string => `bearer.${Buffer.from(token).toString('base64url')}`;

let platform: LocalPlatform;
let channel: BridgeChannel;
beforeEach(async () => {
	platform = await startPlatform();
	channel = platform.createChannel();
});
afterEach(async () => {
	await platform.close();
});

function offer(protocols: string[], path = '/ws/v1'): WebSocket {
	return new WebSocket(`${platform.wsUrl}${path}`, protocols).on('error', () => undefined);
}

async function connect(): Promise<WebSocket> {
	const socket = offer([PROTOCOL, bearer(channel.token)]);
	await once(socket, 'open');
	return socket;
}

test.each([
	['an unknown token', () => [PROTOCOL, bearer('wst_unknown')], 401],
	['a token that is not base64url', () => [PROTOCOL, 'bearer.wst_a+b'], 401],
	['a padded token', () => [PROTOCOL, `bearer.${encodeURIComponent(btoa('wst_abcd'))}`], 401],
	['two tokens', () => [PROTOCOL, bearer(channel.token), bearer('wst_other')], 400],
	['no protocol version', () => [bearer(channel.token)], 400],
	['another protocol version', () => ['neutral.bridge.v2', bearer(channel.token)], 400],
])('the handshake refuses %s', async (_what, protocols, status) => {
	offer(protocols());
	await until(() => platform.books().bridge.refused.length > 0);
	expect(platform.books().bridge).toMatchObject({ refused: [{ status }], connections: [] });
});

test('a first frame with the token authenticates, and is answered', async () => {
	const socket = offer([PROTOCOL]);
	await once(socket, 'open');
	const answered = once(socket, 'message');
	socket.send(JSON.stringify({ type: 'auth', token: channel.token }));
	expect(JSON.parse(String((await answered)[0]))).toEqual({ type: 'auth_ok', channel: channel.name });
	expect(platform.books().bridge).toMatchObject({ open: 1, connections: [{ auth: 'inFrame' }] });
	expect(channel.open).toBe(1);
});

test('a token in the URL is a leak', async () => {
	offer([PROTOCOL], `/ws/v1?token=${channel.token}`);
	await until(() => platform.books().leaks.length > 0);
	expect(platform.books().leaks).toEqual([{ where: '/ws/v1', header: 'address' }]);
});

test('a push reaches every open connection, and none that opens later', async () => {
	channel.push({ text: 'nobody' });
	const heard = [await connect(), await connect()].map(async (socket) => once(socket, 'message'));
	channel.push({ id: 'f-x', text: 'all' });
	for (const [frame] of await Promise.all(heard))
		expect(JSON.parse(String(frame))).toMatchObject({ id: 'f-x', type: 'message' });
	expect(platform.books().bridge).toMatchObject({ unheard: 1, open: 2, maxOpen: 2 });
});

test('a channel can be limited to one connection', async () => {
	channel = platform.createChannel({ oneSocket: true });
	const displaced = once(await connect(), 'close');
	await connect();
	expect((await displaced)[0]).toBe(BRIDGE_CLOSE.displaced);
	expect(channel.open).toBe(1);
});

test('a token can be refused temporarily, in the handshake and in a frame', async () => {
	channel.refuse(403);
	offer([PROTOCOL, bearer(channel.token)]);
	await until(() => platform.books().bridge.refused.some(({ status }) => status === 403));
	const inFrame = offer([PROTOCOL]);
	await once(inFrame, 'open');
	inFrame.send(JSON.stringify({ type: 'auth', token: channel.token }));
	expect((await once(inFrame, 'close'))[0]).toBe(BRIDGE_CLOSE.tokenForbidden);
	channel.refuse(undefined);
	await connect();
});

test('the books can be reset', async () => {
	await connect();
	channel.push({});
	platform.resetBooks();
	expect(platform.books().bridge).toMatchObject({
		open: 1,
		maxOpen: 1,
		sent: [],
		connections: [{ connection: 1 }],
	});
	expect(JSON.parse(JSON.stringify(platform.books().bridge))).toEqual(platform.books().bridge);
});
