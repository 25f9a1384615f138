import { KEPT_MS, Outbox } from '../../../../nodes/AgentBridge/connection/outbox';
import { TestClock, turn } from '../../testClock';

interface Scene {
	readonly outbox: Outbox;
	readonly clock: TestClock;
	readonly sent: string[];
	readonly lost: string[];
	isUp: boolean;
	isHeldOff: boolean;
}

function scene(): Scene {
	const clock = new TestClock();
	const state = { clock, sent: new Array<string>(), lost: new Array<string>(), isUp: true, isHeldOff: false };
	const outbox = new Outbox(
		clock,
		(text) => {
			if (state.isUp) state.sent.push(text);
			return state.isUp;
		},
		() => state.isHeldOff,
		(names, why) => state.lost.push(`${names.join(' ')}: ${why}`),
	);
	return Object.assign(state, { outbox });
}

test('while the connection is open a frame leaves at once', () => {
	const { outbox, sent, clock } = scene();
	outbox.send('a', '1');
	expect([sent, clock.sleepers]).toEqual([['a'], 0]);
});

test('what waits leaves once, in order, before what comes later', async () => {
	const at = scene();
	at.isUp = false;
	at.outbox.send('a', '1');
	at.outbox.send('b', '2');
	await at.clock.advance(KEPT_MS - 1);
	at.isUp = true;
	at.outbox.send('c', '3');
	expect(at.sent).toEqual([]);
	at.outbox.flush();
	at.outbox.flush();
	await turn();
	expect([at.sent, at.lost, at.clock.sleepers]).toEqual([['a', 'b', 'c'], [], 0]);
});

test('each frame is given up after its own time, and never sent later', async () => {
	const at = scene();
	at.isUp = false;
	at.outbox.send('a', '1');
	await at.clock.advance(KEPT_MS / 2);
	at.outbox.send('b', '2');
	await at.clock.advance(KEPT_MS / 2);
	expect(at.lost).toEqual(['1: the connection was not restored within 120 seconds']);
	at.isUp = true;
	at.outbox.flush();
	expect(at.sent).toEqual(['b']);
	await at.clock.advance(KEPT_MS);
	expect([at.lost.length, at.clock.sleepers]).toEqual([1, 0]);
});

test('a new watch starts after the first has ended', async () => {
	const at = scene();
	at.isUp = false;
	at.outbox.send('a', '1');
	at.isUp = true;
	at.outbox.flush();
	at.isUp = false;
	at.outbox.send('b', '2');
	await at.clock.advance(KEPT_MS);
	expect([at.sent, at.lost.length]).toEqual([['a'], 1]);
});

test('while we keep the connection closed ourselves, nothing is given up', async () => {
	const at = scene();
	at.isUp = false;
	at.isHeldOff = true;
	at.outbox.send('a', '1');
	await at.clock.advance(10 * KEPT_MS);
	at.isHeldOff = false;
	at.isUp = true;
	at.outbox.flush();
	expect([at.sent, at.lost]).toEqual([['a'], []]);
});

test('there is an end to what waits', () => {
	const at = scene();
	at.isUp = false;
	for (let i = 0; i < 6; i++) at.outbox.send('x'.repeat(10_000_000), `${i}`);
	expect(at.lost).toEqual(['5: the send queue is full']);
	at.isUp = true;
	at.outbox.flush();
	at.isUp = false;
	at.outbox.send('x'.repeat(10_000_000), 'again');
	expect([at.sent.length, at.lost.length]).toEqual([5, 1]);
});

test('closed: what waits is lost, and so is all that comes', async () => {
	const at = scene();
	at.isUp = false;
	at.outbox.send('a', '1');
	at.outbox.close();
	at.isUp = true;
	at.outbox.send('b', '2');
	at.outbox.flush();
	await turn();
	const why = 'the workflow is no longer active';
	expect([at.sent, at.lost, at.clock.sleepers]).toEqual([[], [`1: ${why}`, `2: ${why}`], 0]);
});
