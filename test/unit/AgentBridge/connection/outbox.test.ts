import { KEPT_MS, Outbox } from '../../../../nodes/AgentBridge/connection/outbox';

function scene() {
	const state = { sent: new Array<string>(), lost: new Array<string>(), nowMs: 5, isUp: true };
	const outbox = new Outbox(
		() => state.nowMs,
		(text) => {
			if (state.isUp) state.sent.push(text);
			return state.isUp;
		},
		(names, why) => state.lost.push(`${names.join(' ')}: ${why}`),
	);
	return Object.assign(state, { outbox });
}

function goDown(at: ReturnType<typeof scene>): void {
	at.isUp = false;
	at.outbox.down();
}

function comeUp(at: ReturnType<typeof scene>): void {
	at.isUp = true;
	at.outbox.up();
}

const LATE = 'the connection was not restored within 120 seconds';

test('while the connection is open, a frame is sent at once', () => {
	const { outbox, sent } = scene();
	outbox.send('a', '1');
	expect(sent).toEqual(['a']);
});

test('queued frames are sent once, in order, before later ones', () => {
	const at = scene();
	goDown(at);
	at.outbox.send('a', '1');
	at.outbox.send('b', '2');
	at.nowMs += KEPT_MS - 1;
	at.isUp = true;
	at.outbox.send('c', '3');
	expect(at.sent).toEqual([]);
	comeUp(at);
	comeUp(at);
	expect([at.sent, at.lost]).toEqual([['a', 'b', 'c'], []]);
});

test('each frame expires after its own time, and is never sent later', () => {
	const at = scene();
	goDown(at);
	at.outbox.send('a', '1');
	at.nowMs += KEPT_MS / 2;
	at.outbox.send('b', '2');
	at.nowMs += KEPT_MS / 2;
	at.outbox.down();
	expect(at.lost).toEqual([`1: ${LATE}`]);
	comeUp(at);
	expect([at.sent, at.lost.length]).toEqual([['b'], 1]);
});

test('a frame that has expired when the connection is restored is not sent', () => {
	const at = scene();
	goDown(at);
	at.outbox.send('a', '1');
	at.nowMs += KEPT_MS;
	comeUp(at);
	expect([at.sent, at.lost]).toEqual([[], [`1: ${LATE}`]]);
});

test('the time in which the node itself kept the connection closed does not count', () => {
	const at = scene();
	at.isUp = false;
	at.outbox.send('a', '1');
	at.outbox.send('b', '2');
	at.nowMs += 10 * KEPT_MS;
	at.outbox.down();
	at.nowMs += KEPT_MS - 1;
	at.outbox.down();
	comeUp(at);
	at.isUp = false;
	at.outbox.send('c', '3');
	at.nowMs += 10 * KEPT_MS;
	comeUp(at);
	expect([at.sent, at.lost]).toEqual([['a', 'b', 'c'], []]);
});

test('the send queue is limited', () => {
	const at = scene();
	at.isUp = false;
	for (let i = 0; i < 6; i++) at.outbox.send('x'.repeat(10_000_000), `${i}`);
	expect(at.lost).toEqual(['5: the send queue is full']);
	at.isUp = true;
	at.outbox.up();
	at.isUp = false;
	at.outbox.send('x'.repeat(10_000_000), 'again');
	expect([at.sent.length, at.lost.length]).toEqual([5, 1]);
});

test('once it is closed, queued and later frames are lost', () => {
	const at = scene();
	at.isUp = false;
	at.outbox.send('a', '1');
	at.outbox.close('it is over');
	comeUp(at);
	at.outbox.send('b', '2');
	expect([at.sent, at.lost]).toEqual([[], ['1: it is over', '2: it is over']]);
});
