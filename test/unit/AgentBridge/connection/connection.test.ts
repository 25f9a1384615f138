import { openConnection, type BridgeSettings } from '../../../../nodes/AgentBridge/connection/connection';
import type { SocketEnd } from '../../../../nodes/shared/http/webSocket';
import { TestClock, turn } from '../../testClock';
import { scriptedSockets } from './sockets.script';

const SETTINGS: BridgeSettings = {
	url: 'ws://bridge.test/ws/v1',
	protocols: ['neutral.bridge.v1', 'bearer.d3N0X3g'],
	idleMs: 0,
};

function open(settings: Partial<BridgeSettings> = {}) {
	const clock = new TestClock();
	const { sockets, connect } = scriptedSockets();
	const heard: string[] = [];
	const ends: SocketEnd[] = [];
	const line = openConnection(
		{ ...SETTINGS, ...settings },
		{
			onOpen: () => heard.push('(open)'),
			onText: (text) => heard.push(text),
			onBinary: () => heard.push('(binary)'),
			onEnd: (end) => ends.push(end),
		},
		clock,
		connect,
	);
	const [socket] = sockets;
	if (!socket) throw new Error('no socket');
	return { clock, socket, line, heard, ends };
}

describe('authentication', () => {
	test('by sub-protocol sends the token with it and no frame', () => {
		const { socket } = open();
		expect(socket.protocols).toEqual(['neutral.bridge.v1', 'bearer.d3N0X3g']);
		socket.open();
		expect(socket.sent).toEqual([]);
	});

	test('without a sub-protocol offers none, and the server may choose none', () => {
		const { socket, heard } = open({ protocols: [], authFrame: '{"token":"x"}' });
		expect(socket.protocols).toEqual([]);
		socket.open('');
		expect([socket.sent, heard]).toEqual([['{"token":"x"}'], ['(open)']]);
	});

	test('in a frame sends the token first, and not in a sub-protocol', () => {
		const { socket, heard } = open({ protocols: ['neutral.bridge.v1'], authFrame: '{"token":"x"}' });
		expect(socket.protocols).toEqual(['neutral.bridge.v1']);
		socket.open();
		expect([socket.sent, heard]).toEqual([['{"token":"x"}'], ['(open)']]);
	});
});

test.each(['bearer.d3N0X3g', '', 'other'])(
	'ends the connection if the server chooses the sub-protocol %j',
	(protocol) => {
		const { socket, heard, ends } = open();
		socket.open(protocol);
		socket.say('{}');
		expect(heard).toEqual([]);
		expect(ends).toMatchObject([{ cause: 'protocol' }]);
		expect(socket.closes).toHaveLength(1);
	},
);

test('closes the connection instead of taking a text that is too large', () => {
	const { socket, heard, ends } = open();
	socket.open();
	socket.say('x'.repeat(16_000_001));
	socket.say('{}');
	expect([heard, socket.closes]).toEqual([['(open)'], [4009]]);
	expect(ends).toMatchObject([{ cause: 'tooLarge' }]);
});

test('gives up on an unanswered handshake after 10 seconds', async () => {
	const { clock, socket, ends } = open();
	await clock.advance(9_999);
	expect(ends).toEqual([]);
	await clock.advance(1);
	expect(ends).toMatchObject([{ cause: 'silent' }]);
	expect(socket.closes).toHaveLength(1);
	socket.end();
	expect(ends).toHaveLength(1);
	expect(clock.sleepers).toBe(0);
});

test("reports a refused handshake as in Node 22, and leaves an open connection's error to its close", () => {
	const refused = open();
	refused.socket.fail();
	expect(refused.ends).toEqual([{ cause: 'handshake', code: 1006, reason: '' }]);

	const broken = open();
	broken.socket.open();
	broken.socket.fail();
	expect(broken.ends).toEqual([]);
	broken.socket.end(1002, 'no frame');
	expect(broken.ends).toEqual([{ cause: 'closed', code: 1002, reason: 'no frame' }]);
});

test('reports a refused handshake, and a URL that the runtime rejects', async () => {
	const { socket, ends, clock } = open();
	socket.end(1006);
	expect(ends).toEqual([{ cause: 'handshake', code: 1006, reason: '' }]);
	await turn();
	expect(clock.sleepers).toBe(0);

	const thrown: SocketEnd[] = [];
	const events = {
		onOpen: () => {},
		onText: () => {},
		onBinary: () => {},
		onEnd: (end: SocketEnd) => thrown.push(end),
	};
	openConnection(SETTINGS, events, new TestClock(), () => {
		throw new Error(`bad ${SETTINGS.protocols[1]}`);
	});
	await turn();
	expect(thrown).toEqual([{ cause: 'handshake', code: 1006, reason: '' }]);
});

test('passes texts on, distinguishes binary frames, and reports the end once', () => {
	const { socket, heard, ends } = open();
	socket.open();
	socket.say('{"a":1}');
	socket.say(new Blob([]));
	socket.end(4409, 'displaced');
	socket.end(1006);
	socket.say('late');
	expect(heard).toEqual(['(open)', '{"a":1}', '(binary)']);
	expect(ends).toEqual([{ cause: 'closed', code: 4409, reason: 'displaced' }]);
});

test('sends heartbeats only while the connection is open', async () => {
	const { clock, socket } = open({ heartbeat: { frame: '{"type":"ping"}', everyMs: 30_000 } });
	await clock.advance(60_000 - 55_000);
	socket.open();
	await clock.advance(90_000);
	expect(socket.sent).toEqual(Array(3).fill('{"type":"ping"}'));
	socket.end(1001);
	await clock.advance(90_000);
	expect(socket.sent).toHaveLength(3);
	expect(clock.sleepers).toBe(0);
});

test('treats a connection as dead if no frame of any kind arrives in time', async () => {
	const { clock, socket, ends } = open({ idleMs: 60_000 });
	socket.open();
	await clock.advance(59_000);
	socket.say(new Blob([]));
	await clock.advance(59_999);
	expect(ends).toEqual([]);
	await clock.advance(1);
	expect(ends).toMatchObject([{ cause: 'idle' }]);
	expect(socket.closes).toHaveLength(1);
	expect(clock.sleepers).toBe(0);
});

describe('closing', () => {
	test("waits for the other side's answer and does not report an end", async () => {
		const { socket, line, ends, clock } = open();
		socket.open();
		const closed = line.close();
		expect(socket.closes).toEqual([1000]);
		expect(line.send('{}')).toBe(false);
		socket.say('late');
		socket.end(1000);
		expect(await closed).toEqual({ cause: 'ours', code: 1000, reason: '' });
		expect(ends).toEqual([]);
		await turn();
		expect(clock.sleepers).toBe(0);
	});

	test('waits no longer than a second if the other side is silent', async () => {
		const { socket, line, clock } = open();
		socket.open();
		const closed = line.close();
		expect(await clock.run(closed, 1_000)).toMatchObject({ cause: 'ours', code: 1006 });
		expect(clock.elapsedMs).toBeLessThan(1_000);
	});

	test('works during the handshake, twice, and after the end', async () => {
		const { socket, line, clock, ends } = open();
		const first = line.close();
		const second = line.close();
		socket.end();
		expect([await first, await second]).toMatchObject([{ cause: 'ours' }, { cause: 'ours' }]);
		expect(await line.close()).toMatchObject({ cause: 'ours' });
		expect(ends).toEqual([]);
		expect(clock.sleepers).toBe(0);
	});
});

test('sends nothing before the connection is open', () => {
	const { line, socket } = open();
	expect(line.send('{}')).toBe(false);
	socket.open();
	expect(line.send('{}')).toBe(true);
	expect(socket.sent).toEqual(['{}']);
});
