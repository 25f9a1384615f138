import { Listener, type ListenerEvents } from '../../../../nodes/AgentBridge/connection/listener';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import type { Peer } from '../../../../nodes/AgentBridge/connection/failures';
import type { Probe } from '../../../../nodes/AgentBridge/connection/connection';
import { turn } from '../../testClock';
import { bridgeScene, type BridgeScene } from './bridge.scene';
import type { ScriptedSocket } from './sockets.script';

interface Scene extends BridgeScene {
	readonly said: string[];
	readonly listener: Listener;
	readonly started: Promise<Failure | undefined>;
	probe: Probe | Promise<Probe>;
	refusal: Failure | undefined;
	hasRoom: boolean;
	makeRoom: () => void;
}

/** @param random returns 1 if the pauses are to be predictable */
function listenTo(random = () => 1, tokenIn: Peer['tokenIn'] = 'handshake'): Scene {
	const said: string[] = [];
	const bridge = bridgeScene(
		() => {
			said.push('probe');
			return scene.probe;
		},
		() => scene.refusal,
	);
	const scene: Omit<Scene, 'listener' | 'started'> = {
		...bridge,
		said,
		probe: { kind: 'nothing' },
		refusal: undefined,
		hasRoom: true,
		makeRoom: () => undefined,
	};
	const events: ListenerEvents = {
		onText: (text) => {
			if (scene.hasRoom) said.push(text);
			return scene.hasRoom;
		},
		onBinary: () => said.push('binary'),
		onUp: (failures) => said.push(`up ${failures}`),
		onDown: (_failure, pauseMs) => said.push(`down ${pauseMs} ms`),
		onRefused: ({ message }) => said.push(`refused: ${message}`),
		onFull: async () => {
			said.push('full');
			await new Promise<void>((resolve) => (scene.makeRoom = resolve));
		},
	};
	const peer = { ...bridge.bridge.peer, tokenIn };
	const listener = new Listener({ ...bridge.bridge, peer }, events, random);
	return Object.assign(scene, { listener, started: listener.start() });
}

test('during an outage of eight hours, tries every minute and reconnects within a minute', async () => {
	const { clock, sockets, said, last } = listenTo();
	last().open();
	await clock.advance(60_000);
	last().end(1006);
	const endMs = clock.now() + 8 * 60 * 60 * 1000;
	while (clock.now() < endMs) {
		await clock.advance(1_000);
		if (last().readyState === 0) last().end(1006);
		await turn();
	}
	expect(sockets.length).toBeGreaterThan(8 * 59);
	expect(sockets.length).toBeLessThan(8 * 61 + 10);
	for (let seconds = 0; last().readyState !== 0 && seconds < 61; seconds++) await clock.advance(1_000);
	last().open();
	expect(said.at(-1)).toMatch(/^up \d+$/);
});

test('counts failures from one again after a stable minute', async () => {
	const { clock, said, last } = listenTo();
	for (let failure = 0; failure < 4; failure++) {
		last().end();
		await clock.advance(1_000 * 2 ** failure);
	}
	last().open();
	await clock.advance(59_999);
	last().end(1001);
	await clock.advance(16_000);
	// A failed handshake is not a connection, however long ago the last one was.
	last().end();
	await clock.advance(32_000);
	last().open();
	await clock.advance(60_000);
	last().end(1001);
	await turn();
	expect(said.filter((line) => line.startsWith('down'))).toEqual([
		'down 1000 ms',
		'down 2000 ms',
		'down 4000 ms',
		'down 8000 ms',
		'down 16000 ms',
		'down 32000 ms',
		'down 1000 ms',
	]);
});

test('probes once after a refused handshake, and stops if the token is refused', async () => {
	const scene = listenTo();
	scene.probe = { kind: 'status', status: 401 };
	scene.last().end();
	await turn();
	expect(scene.said).toEqual(['probe', 'refused: bridge.test refused the channel token (HTTP 401)']);
	expect(await scene.started).toMatchObject({ kind: 'credential' });
	await scene.clock.advance(600_000);
	expect(scene.sockets).toHaveLength(1);
	expect(scene.clock.sleepers).toBe(0);
});

test.each([4401, 4403, 1008])('stops without a probe after a close with %d', async (code) => {
	const { clock, sockets, said, last } = listenTo();
	last().open();
	last().end(code);
	await clock.advance(600_000);
	expect([sockets.length, said.length, said.at(-1)?.startsWith('refused')]).toEqual([1, 2, true]);
});

type Before = (scene: Scene) => unknown;
const say: Before = ({ last }) => last().say('{}');
const minute: Before = async ({ clock }) => await clock.advance(60_000);

test.each<[string, boolean, Before, Peer['tokenIn']?, number?]>([
	['after a frame', true, say],
	['after a minute', true, minute],
	['after a minute', true, minute, 'handshake', 4403],
	// This code is always about the token.
	['after a minute', false, minute, 'handshake', 4401],
	// The frame may be the refusal in words.
	['after a frame that may answer the token', false, say, 'frame'],
	[
		'after a frame that cannot answer the token',
		true,
		(scene) => [1, 2].forEach(() => void say(scene)),
		'frame',
	],
])('a close %s: reconnects is %j', async (_when, reconnects, before, tokenIn = 'handshake', code = 1008) => {
	const scene = listenTo(undefined, tokenIn);
	scene.last().open();
	await before(scene);
	scene.last().end(code, 'rate limit exceeded');
	await scene.clock.advance(1_000);
	expect([scene.sockets.length, scene.said.at(-1)?.startsWith('refused')]).toEqual(
		reconnects ? [2, false] : [1, true],
	);
	if (!reconnects) return;
	// A token that was revoked is refused again.
	scene.last().open();
	scene.last().end(1008);
	await scene.clock.advance(600_000);
	expect([scene.sockets.length, scene.said.at(-1)?.startsWith('refused')]).toEqual([2, true]);
});

test.each([1000, 1001, 1006, 1011, 1013, 4000, 4409])('reconnects after a close with %d', async (code) => {
	const { clock, sockets, last } = listenTo();
	last().open();
	last().end(code);
	await clock.advance(1_000);
	expect(sockets).toHaveLength(2);
});

test('closes the connection if the queue is full, and reopens it when there is room', async () => {
	const scene = listenTo();
	scene.last().end();
	await scene.clock.advance(1_000);
	scene.last().open();
	scene.hasRoom = false;
	scene.last().say('one too many');
	scene.last().say('not heard any more');
	scene.last().end(4013);
	await turn();
	expect(scene.last().closes).toEqual([4013]);
	expect(scene.said.slice(-2)).toEqual(['up 1', 'full']);
	await scene.clock.advance(600_000);
	expect(scene.sockets).toHaveLength(2);
	scene.hasRoom = true;
	scene.makeRoom();
	await turn();
	scene.last().open();
	scene.last().say('again');
	// The full queue was no failure of the connection.
	expect(scene.said.slice(-2)).toEqual(['up 0', 'again']);
});

test('reports nothing after a stop during a probe', async () => {
	const scene = listenTo();
	let answer: (probe: Probe) => void = () => undefined;
	scene.probe = new Promise<Probe>((resolve) => (answer = resolve));
	scene.last().end();
	await turn();
	await scene.clock.run(scene.listener.stop(), 1_000);
	answer({ kind: 'status', status: 401 });
	await turn();
	expect(scene.said).toEqual(['probe']);
});

test('has started once the first try has succeeded or failed', async () => {
	for (const outcome of [
		(socket: ScriptedSocket) => socket.open(),
		(socket: ScriptedSocket) => socket.end(),
	]) {
		const { started, last } = listenTo();
		let hasStarted = false;
		void started.then(() => {
			hasStarted = true;
		});
		await turn();
		expect(hasStarted).toBe(false);
		outcome(last());
		await turn();
		expect(hasStarted).toBe(true);
	}
});

test.each([
	['while it waits for the handshake', () => undefined],
	['while it is connected', (socket: ScriptedSocket) => socket.open()],
	['while it waits for the next try', (socket: ScriptedSocket) => socket.end()],
])('stops %s within a second and leaves nothing behind', async (_when, before) => {
	const { listener, started, last, clock, sockets } = listenTo();
	before(last());
	await turn();
	await clock.run(listener.stop(), 1_000);
	expect(clock.elapsedMs).toBeLessThan(1_000);
	last().end(1000);
	await clock.advance(600_000);
	expect([sockets.length, clock.sleepers]).toEqual([1, 0]);
	await started;
});

test('half of each pause is random, so that many n8n instances do not reconnect at once', async () => {
	const { clock, sockets, said, last } = listenTo(() => 0);
	last().end();
	await turn();
	expect(said).toContain('down 500 ms');
	await clock.advance(500);
	expect(sockets).toHaveLength(2);
});

test('sends only over an open connection', async () => {
	const { clock, last, listener } = listenTo();
	expect(listener.send('too early')).toBe(false);
	last().open();
	const first = last();
	expect(listener.send('one')).toBe(true);
	first.end(1006);
	expect(listener.send('in between')).toBe(false);
	await clock.advance(1_000);
	expect(listener.send('before it is open')).toBe(false);
	last().open();
	expect(listener.send('two')).toBe(true);
	expect([first.sent, last().sent]).toEqual([['one'], ['two']]);
	void listener.stop();
	expect(listener.send('too late')).toBe(false);
});

test("calls n8n's guard before each further connection, and retries after a refusal", async () => {
	const scene = listenTo();
	scene.last().open();
	scene.refusal = {
		kind: 'badInput',
		message: 'This n8n does not allow connections to bridge.test',
		advice: '',
	};
	scene.last().end(1006);
	await scene.clock.advance(4_000);
	expect(scene.sockets).toHaveLength(1);
	expect(scene.said).toEqual(['up 0', 'down 1000 ms', 'down 2000 ms', 'down 4000 ms']);
	scene.refusal = undefined;
	await scene.clock.advance(4_000);
	expect(scene.sockets).toHaveLength(2);
	await scene.clock.run(scene.listener.stop(), 1_000);
});
