import { BRIDGE_CLOSE, startPlatform, type BridgeChannel, type LocalPlatform } from '../../platform';
import { until } from '../../until';
import { BridgeClient, bearer, PROTOCOL } from './bridgeClient';

let platform: LocalPlatform;
let channel: BridgeChannel;
beforeEach(async () => {
	platform = await startPlatform();
	channel = platform.createChannel();
});
afterEach(async () => {
	await platform.close();
});

const connect = async (): Promise<BridgeClient> =>
	await new BridgeClient(platform, [PROTOCOL, bearer(channel.token)]).open();

describe('authentication', () => {
	test('by sub-protocol: the server selects the protocol and never the token', async () => {
		const client = await connect();
		expect(client.socket.protocol).toBe(PROTOCOL);
		client.socket.close(1000);
		await until(() => platform.books().bridge.open === 0);
		expect(platform.books().bridge.connections).toMatchObject([
			{ channel: channel.name, auth: 'subprotocol', closeCode: 1000, closedBy: 'client' },
		]);
		expect(platform.books()).toMatchObject({ requests: { bridge: 1 }, leaks: [] });
	});

	test('in a frame: the first one, which is answered', async () => {
		const client = await new BridgeClient(platform, [PROTOCOL]).open();
		client.send({ type: 'auth', token: channel.token });
		expect(await client.heard(1)).toEqual([{ type: 'auth_ok', channel: channel.name }]);
		expect(platform.books().bridge.connections).toMatchObject([{ auth: 'inFrame', channel: channel.name }]);
	});

	test.each([
		['an unknown token', () => [PROTOCOL, bearer('wst_unknown')], 401],
		['a token that is not base64url', () => [PROTOCOL, 'bearer.wst_a+b'], 401],
		['a padded token', () => [PROTOCOL, `bearer.${encodeURIComponent(btoa('wst_abcd'))}`], 401],
		['two tokens', () => [PROTOCOL, bearer(channel.token), bearer('wst_other')], 400],
		['no protocol version', () => [bearer(channel.token)], 400],
		['another protocol version', () => ['neutral.bridge.v2', bearer(channel.token)], 400],
	])('refuses %s', async (_what, protocols, status) => {
		expect(await new BridgeClient(platform, protocols()).ended).toMatchObject({ code: -status });
		expect(platform.books().bridge.refused).toMatchObject([{ status }]);
		expect(platform.books().bridge.connections).toEqual([]);
	});

	test.each([
		['no token', { type: 'message', text: 'hello' }],
		['a wrong token', { type: 'auth', token: 'wst_unknown' }],
	])('closes an in-frame connection whose first frame contains %s', async (_what, frame) => {
		const client = await new BridgeClient(platform, [PROTOCOL]).open();
		client.send(frame);
		expect(await client.ended).toMatchObject({ opened: true, code: BRIDGE_CLOSE.tokenRefused });
		expect(platform.books().bridge.connections).toMatchObject([{ auth: 'none', closedBy: 'platform' }]);
	});

	test('cannot be done both ways on one connection', async () => {
		const client = await connect();
		client.send({ type: 'auth', token: channel.token });
		expect(await client.ended).toMatchObject({ code: BRIDGE_CLOSE.authenticatedTwice });
	});

	test('can be refused temporarily', async () => {
		channel.refuse(403);
		expect((await new BridgeClient(platform, [PROTOCOL, bearer(channel.token)]).ended).code).toBe(-403);
		const inFrame = await new BridgeClient(platform, [PROTOCOL]).open();
		inFrame.send({ type: 'auth', token: channel.token });
		expect((await inFrame.ended).code).toBe(BRIDGE_CLOSE.tokenForbidden);
		channel.refuse(undefined);
		await connect();
	});

	test('records a token in the URL as a leak', async () => {
		new BridgeClient(platform, [PROTOCOL], `/ws/v1?token=${channel.token}`);
		await until(() => platform.books().leaks.length > 0);
		expect(platform.books().leaks).toEqual([{ where: '/ws/v1', header: 'address' }]);
	});
});

describe('frames', () => {
	test('a message is answered, with tool events and interrupts on request', async () => {
		const client = await connect();
		client.send({ type: 'message', id: 'm-1', conversation_id: 'c-1', text: 'hello' });
		client.send({ type: 'message', id: 'm-2', text: 'where is it? [tool]' });
		client.send({ type: 'message', id: 'm-3', text: '[interrupt]' });
		client.send({ type: 'interrupt_result', id: 'm-4', interrupt_id: 'int-11', result: 'yes' });
		client.send({ type: 'message', id: 'm-5', text: '[silent]' });
		client.send({ type: 'message', id: 'm-6', reply_to: 'f-1', text: 'an answer' });
		client.send({ type: 'echo', id: 'm-7', any: [1] });
		const frames = await client.heard(7);
		expect(frames.map(({ type, correlation_id: of }) => `${String(type)} ${String(of)}`)).toEqual([
			'message m-1',
			'tool_event m-2',
			'tool_event m-2',
			'message m-2',
			'interrupt m-3',
			'message m-4',
			'echo m-7',
		]);
		expect(frames[0]).toMatchObject({ conversation_id: 'c-1', text: 'Agent: hello' });
		expect(new Set(frames.map(({ id }) => id)).size).toBe(7);
		const { received, sent } = platform.books().bridge;
		expect(received.map(({ frame }) => frame.id)).toEqual(['m-1', 'm-2', 'm-3', 'm-4', 'm-5', 'm-6', 'm-7']);
		expect(sent.map(({ frame }) => frame)).toEqual(frames);
	});

	test('heartbeats are answered and counted, and invalid frames are reported', async () => {
		const client = await connect();
		client.send({ type: 'ping' });
		client.socket.send('no frame');
		client.socket.send(Buffer.from([1, 2]));
		client.send({ type: 'unheard-of' });
		expect((await client.heard(4)).map(({ type }) => type)).toEqual(['pong', 'error', 'error', 'error']);
		expect(platform.books().bridge.heartbeats).toBe(1);
	});

	test('a burst of 10,000 arrives complete and in order', async () => {
		const client = await connect();
		const ids = channel.pushBurst(10_000);
		const frames = await client.heard(10_000);
		expect(frames.map(({ id }) => id)).toEqual(ids);
		expect(platform.books().bridge.sent).toHaveLength(10_000);
	});

	test('a push reaches every open connection, and none that opens later', async () => {
		channel.push({ text: 'nobody' });
		const clients = [await connect(), await connect()];
		channel.push({ id: 'f-x', text: 'all' });
		for (const client of clients)
			expect(await client.heard(1)).toMatchObject([{ id: 'f-x', type: 'message' }]);
		expect(platform.books().bridge).toMatchObject({ unheard: 1, open: 2, maxOpen: 2 });
		expect(channel.open).toBe(2);
	});

	test('a channel can be limited to one connection', async () => {
		channel = platform.createChannel({ oneSocket: true });
		const first = await connect();
		await connect();
		expect(await first.ended).toMatchObject({ code: BRIDGE_CLOSE.displaced });
		expect(channel.open).toBe(1);
	});
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

test('a channel refuses a token of another kind', () => {
	expect(() => platform.createChannel({ token: 'sk-x' })).toThrow('wst_');
});
