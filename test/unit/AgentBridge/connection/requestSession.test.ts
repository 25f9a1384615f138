import { createEventFilter, readPath, type ReplyRule } from '../../../../nodes/AgentBridge/frames';
import type { Failure } from '../../../../nodes/shared/errors/failure';
import type { Peer } from '../../../../nodes/AgentBridge/connection/failures';
import type { Probe } from '../../../../nodes/AgentBridge/connection/connection';
import { RequestSession } from '../../../../nodes/AgentBridge/connection/requestSession';
import { turn } from '../../testClock';
import { bridgeScene } from './bridge.scene';
import { valueOf } from '../../results';

function scene(
	probe: Probe = { kind: 'nothing' },
	refusal: () => Failure | undefined = () => undefined,
	tokenIn: Peer['tokenIn'] = 'handshake',
) {
	const bridge = bridgeScene(() => probe, refusal);
	const peer = { ...bridge.bridge.peer, tokenIn };
	const { sockets, last } = bridge;
	const stopping = new AbortController();
	return {
		...bridge,
		stopping,
		session: new RequestSession({ ...bridge.bridge, peer }, stopping.signal),
		/** The newest socket, once `count` sockets exist. */
		socket: async (count = 1) => {
			for (let round = 0; sockets.length < count && round < 50; round++) await turn();
			if (sockets.length !== count) throw new Error(`${sockets.length} sockets, not ${count}`);
			return last();
		},
	};
}

/** A session that has sent one request over its first connection. */
async function asked(text = '{}', answered = rule(), made = scene()) {
	const asking = made.session.request(text, answered, 1_000);
	const open = await made.socket();
	open.open();
	await turn();
	return { ...made, asking, open };
}

/** A session that has sent one frame over its first connection. */
async function sentOne() {
	const made = scene();
	const sending = made.session.send('one', 0);
	const open = await made.socket();
	open.open();
	expect(await sending).toMatchObject({ ok: true });
	return { ...made, open };
}

const FILTER = valueOf(createEventFilter('type', 'reply'));
const RE = valueOf(readPath('ID in Reply', 're'));
const rule = (value = '1'): ReplyRule => ({
	id: RE && { at: RE, value },
	filter: FILTER,
	isOneMessage: true,
	silenceMs: 0,
});
/** Replies that name no ID. */
const anyReply = (silenceMs = 0): ReplyRule => ({ filter: FILTER, isOneMessage: silenceMs === 0, silenceMs });

test('the reply is the frame that repeats the value and names the event, and the token in it is hidden', async () => {
	const { session, socket, clock } = scene();
	const asking = session.request('{"id":1}', rule(), 1_000);
	const open = await socket();
	open.open();
	await clock.advance(400);
	expect(open.sent).toEqual(['{"id":1}']);
	open.say('{"type":"tool","re":1}');
	open.say('no frame');
	open.say('{"type":"reply","re":2}');
	open.say('{"type":"reply","re":1,"text":"you are wst_secret"}');
	expect(await asking).toEqual({
		ok: true,
		value: {
			replies: [{ type: 'reply', re: 1, text: 'you are [hidden]' }],
			collected: [{ type: 'tool', re: 1 }],
			notCollected: 0,
			elapsedMs: 400,
		},
	});
});

test('the timeout counts from the moment of sending, and its error contains what was and was not collected', async () => {
	const { session, socket, clock } = scene();
	const asking = session.request('{}', rule(), 1_000);
	const open = await socket();
	await clock.advance(5_000);
	open.open();
	await clock.advance(999);
	open.say('{"type":"tool","re":1}');
	open.say('{"type":"tool","re":2}');
	const outcome = await clock.run(asking);
	expect(outcome).toMatchObject({
		ok: false,
		failure: { kind: 'timedOut', details: { collected: [{ type: 'tool', re: 1 }], otherFrames: 1 } },
	});
	expect(clock.elapsedMs).toBe(6_000);
	expect(clock.sleepers).toBe(0);
});

test.each([
	['{"type":"tool","re":1}', /^Check 'Reply Events' against the frames in the error's details/],
	// Its text is not shown: it may be about another person.
	['{"type":"reply","re":2}', /^Check 'ID in Reply': other frames arrived/],
	['', /^Check in the platform's console that the account is bound/],
	['unreadable', /^Raise 'Timeout \(Seconds\)'/],
])('the advice on a missing reply fits what arrived: %s', async (text, advice) => {
	const { clock, asking, open } = await asked();
	if (text) open.say(text);
	expect(await clock.run(asking)).toMatchObject({ failure: { advice: expect.stringMatching(advice) } });
});

test('requests whose replies name an ID share a connection, and a late reply is counted and dropped', async () => {
	const { session, sockets, clock, asking, open } = await asked();
	expect(await clock.run(asking)).toMatchObject({ ok: false, failure: { kind: 'timedOut' } });
	const second = session.request('{"id":2}', rule('2'), 1_000);
	await turn();
	open.say('{"type":"reply","re":1}');
	open.say('{"type":"reply","re":2}');
	expect(await second).toMatchObject({ ok: true, value: { replies: [{ re: 2 }] } });
	open.say('{"type":"reply","re":1}');
	open.say('{"type":"reply","re":2}');
	open.say('{"type":"reply","re":"of another client"}');
	expect([session.late, sockets.length, clock.sleepers]).toEqual([3, 1, 0]);
});

test('a request whose replies name no ID has a connection alone, so no other message can be its reply', async () => {
	const { session, socket, sockets, asking, open: old } = await asked('one', anyReply());
	old.say('{"type":"reply","text":"first of one"}');
	old.say('{"type":"reply","text":"second of one"}');
	expect(await asking).toMatchObject({ value: { replies: [{ text: 'first of one' }] } });
	expect(session.late).toBe(1);
	const second = session.request('two', anyReply(), 1_000);
	await turn();
	old.say('{"type":"reply","text":"third of one"}');
	old.end(1000);
	const current = await socket(2);
	current.open();
	await turn();
	old.say('{"type":"reply","text":"fourth of one"}');
	current.say('{"type":"reply","text":"of two"}');
	expect(await second).toMatchObject({ value: { replies: [{ text: 'of two' }] } });
	expect(sockets.map(({ sent }) => sent)).toEqual([['one'], ['two']]);
});

test('a request without an ID does not follow one with an ID on its connection', async () => {
	const { session, socket, asking, open: old } = await asked();
	old.say('{"type":"reply","re":1}');
	await asking;
	const second = session.request('two', anyReply(), 1_000);
	await turn();
	old.end(1000);
	const current = await socket(2);
	current.open();
	await turn();
	expect(current.sent).toEqual(['two']);
	current.say('{"type":"reply"}');
	expect(await second).toMatchObject({ ok: true });
});

describe('a reply that is complete after 200 ms of silence', () => {
	test('has all messages until then, and each frame of the request begins the silence anew', async () => {
		const { clock, asking, open } = await asked('one', anyReply(200));
		await clock.advance(300);
		open.say('{"type":"reply","n":1}');
		await clock.advance(199);
		open.say('{"type":"typing"}');
		await clock.advance(199);
		open.say('{"type":"reply","n":2}');
		const outcome = await clock.run(asking);
		expect(outcome).toMatchObject({
			value: { replies: [{ n: 1 }, { n: 2 }], collected: [{ type: 'typing' }], elapsedMs: 898 },
		});
		expect(clock.sleepers).toBe(0);
	});

	test('is no reply before the silence if the time is up, and the error has the messages', async () => {
		const { clock, asking, open } = await asked('one', anyReply(200));
		for (let at = 0; at < 1_000; at += 100) {
			open.say('{"type":"reply"}');
			await clock.advance(100);
		}
		const outcome = await asking;
		expect(outcome).toMatchObject({
			failure: { kind: 'timedOut', message: expect.stringContaining('was not complete within 1 seconds') },
		});
		expect(!outcome.ok && outcome.failure.details?.replies).toHaveLength(10);
		expect(clock.sleepers).toBe(0);
	});

	test.each([
		[1000, true],
		[1006, false],
	])('is complete when the platform closes the connection with %d: %s', async (code, isOk) => {
		const { asking, open } = await asked('one', anyReply(200));
		open.say('{"type":"reply"}');
		open.end(code);
		expect(await asking).toMatchObject({ ok: isOk });
	});
});

test.each([
	['after a reply, until silence', '{"type":"reply"}', 200],
	['after a timeout, as long again', undefined, 1_000],
	['after a timeout, until silence once the late reply came', undefined, 500],
])('the next request without an ID waits on the old connection: %s', async (what, said, waitedMs) => {
	const rule = { ...anyReply(), silenceMs: 200 };
	const { session, socket, clock, asking, open: old } = await asked('one', rule);
	if (said !== undefined) old.say(said);
	await clock.run(asking);
	const startedMs = clock.elapsedMs;
	const second = session.request('two', rule, 1_000);
	if (what.includes('late')) {
		await clock.advance(300);
		old.say('{"type":"reply"}');
	}
	while (old.closes.length === 0) await clock.advance(10);
	expect(clock.elapsedMs - startedMs).toBeGreaterThanOrEqual(waitedMs);
	expect(clock.elapsedMs - startedMs).toBeLessThan(waitedMs + 210);
	old.end(1000);
	const current = await socket(2);
	current.open();
	await turn();
	current.say('{"type":"reply"}');
	expect(await second).toMatchObject({ ok: true });
});

test('a test in the editor listens for a second more, to tell of messages after the reply', async () => {
	const { session, clock, asking, open } = await asked('one', anyReply());
	open.say('{"type":"reply"}');
	await asking;
	const closing = session.close(true);
	await clock.advance(900);
	open.say('{"type":"reply"}');
	await clock.advance(100);
	open.end(1000);
	await closing;
	expect(session.late).toBe(1);
});

test('after a timeout, a request with the same value gets a connection without the late reply', async () => {
	const { session, socket, sockets, clock, asking, open: old } = await asked('{"id":1,"text":"a"}');
	expect(await clock.run(asking)).toMatchObject({ ok: false, failure: { kind: 'timedOut' } });
	const second = session.request('{"id":1,"text":"b"}', rule(), 1_000);
	await turn();
	old.end(1000);
	const current = await socket(2);
	current.open();
	await turn();
	old.say('{"type":"reply","re":1,"text":"a"}');
	current.say('{"type":"reply","re":1,"text":"b"}');
	expect(await clock.run(second)).toMatchObject({ ok: true, value: { replies: [{ text: 'b' }] } });
	// A second message may follow the reply, so the next request with this value gets another connection, too.
	const third = session.request('{"id":1,"text":"c"}', rule(), 1_000);
	await turn();
	current.end(1000);
	const last = await socket(3);
	last.open();
	await turn();
	last.say('{"type":"reply","re":1,"text":"c"}');
	expect(await clock.run(third)).toMatchObject({ ok: true, value: { replies: [{ text: 'c' }] } });
	expect(sockets).toHaveLength(3);
});

test('a chatty platform does not fill the memory', async () => {
	const { asking, open } = await asked();
	for (let frame = 0; frame < 5_000; frame++) open.say('{"type":"tool","re":1}');
	open.say('{"type":"reply","re":1}');
	const outcome = await asking;
	expect(outcome.ok && outcome.value.collected).toHaveLength(200);
	expect(outcome).toMatchObject({ value: { notCollected: 4_800 } });
});

test('large frames do not fill the memory either, because all items of a run share one limit', async () => {
	const { session, clock, asking, open } = await asked();
	const large = (re: number): string => `{"type":"tool","re":${re},"text":"${'x'.repeat(8_000_000)}"}`;
	for (let frame = 0; frame < 60; frame++) open.say(large(1));
	open.say('{"type":"reply","re":1}');
	const outcome = await asking;
	expect(outcome.ok && [outcome.value.collected.length, outcome.value.notCollected]).toEqual([3, 57]);

	const second = session.request('{}', rule('2'), 1_000);
	await turn();
	open.say(large(2));
	open.say('{"type":"tool","re":1}');
	const late = await clock.run(second);
	expect(late).toMatchObject({ failure: { details: { collected: [], otherFrames: 1, notCollected: 1 } } });
});

test('a frame that cannot be read is reported if no reply arrives', async () => {
	const { clock, asking, open } = await asked();
	open.say('no frame');
	open.say(new ArrayBuffer(2));
	expect(await clock.run(asking)).toMatchObject({
		failure: {
			kind: 'timedOut',
			advice: expect.stringContaining('A frame arrived that is not a JSON object'),
			details: { collected: [], otherFrames: 0, unreadableFrames: 2 },
		},
	});
});

test('a frame is not sent over a closing connection but over a new one', async () => {
	const { session, socket, clock, open: old } = await sentOne();
	// The other side has begun to close, but the end has not been reported yet.
	old.readyState = 2;
	const second = session.send('two', 1);
	await clock.advance(1_000);
	const fresh = await socket(2);
	fresh.open();
	expect(await second).toMatchObject({ ok: true });
	expect([old.sent, fresh.sent]).toEqual([['one'], ['two']]);
	const closing = session.close();
	await clock.advance(200);
	fresh.end(1000);
	// What was sent over the first connection may not have arrived.
	await closing;
	expect(session.losses()).toMatchObject([[0, { kind: 'unclear' }]]);
});

test('a refused handshake counts for all later requests', async () => {
	const { session, socket, sockets } = scene({ kind: 'status', status: 401 });
	const first = session.send('one', 0);
	(await socket()).end();
	expect(await first).toMatchObject({ ok: false, failure: { kind: 'credential' } });
	expect(await session.send('two', 1)).toMatchObject({ ok: false, failure: { kind: 'credential' } });
	expect(sockets).toHaveLength(1);
	await session.close();
	expect(session.losses()).toEqual([]);
});

describe('a platform that refuses a connection after it has accepted one', () => {
	async function refusedOnce() {
		const made = scene({ kind: 'status', status: 401 });
		const first = made.session.send('one', 0);
		const open = await made.socket();
		open.open();
		await first;
		open.end(1006);
		const second = made.session.send('two', 1);
		(await made.socket(2)).end();
		await made.clock.advance(1_000);
		return { ...made, second, third: await made.socket(3) };
	}

	test('is asked once more a second later', async () => {
		const { second, third } = await refusedOnce();
		third.open();
		expect(await second).toMatchObject({ ok: true });
		expect(third.sent).toEqual(['two']);
	});

	test('and refuses again has not been given a mistyped token, and later items do not try', async () => {
		const { session, sockets, second, third } = await refusedOnce();
		third.end();
		expect(await second).toMatchObject({
			failure: { kind: 'credential', advice: expect.stringContaining('not mistyped') },
		});
		expect(await session.send('three', 2)).toMatchObject({ failure: { kind: 'credential' } });
		expect(sockets).toHaveLength(3);
	});
});

test('a frame after the reply belongs to no request', async () => {
	const { asking, open } = await asked();
	open.say('{"type":"reply","re":1}');
	const outcome = await asking;
	open.say('{"type":"tool","re":1}');
	expect(outcome).toMatchObject({ ok: true, value: { collected: [] } });
});

test.each([1008, 4401, 4403])(
	'a frame sent over an accepted connection may have been processed, although code %d refuses the account',
	async (code) => {
		const { session, sockets, asking, open } = await asked();
		open.end(code, 'message violates policy');
		expect(await asking).toMatchObject({
			failure: {
				kind: 'unclear',
				message: `bridge.test refused the channel account (close code ${code}: message violates policy)`,
				advice: expect.stringContaining('was not sent again'),
			},
		});
		expect(await session.request('{}', rule(), 1_000)).toMatchObject({ failure: { kind: 'credential' } });
		expect(sockets).toHaveLength(1);
	},
);

test.each([
	['{"type":"auth_error"}', 'credential'],
	['{"type":"tool","re":1}', 'unclear'],
])('after a token in a frame and the frame %s, code 4401 makes the request %s', async (frame, kind) => {
	const { asking, open } = await asked('{}', rule(), scene(undefined, undefined, 'frame'));
	open.say(frame);
	open.end(4401);
	expect(await asking).toMatchObject({ failure: { kind } });
});

test('after an answer, code 1008 is about a frame and not about the account, so the next frame is sent', async () => {
	const { session, socket, asking, open } = await asked();
	open.say('{"type":"reply","re":1}');
	expect(await asking).toMatchObject({ ok: true });
	const second = session.request('{"id":2}', rule('2'), 1_000);
	await turn();
	open.end(1008, 'rate limit exceeded');
	expect(await second).toMatchObject({
		failure: {
			kind: 'unclear',
			message: 'The connection to bridge.test ended. It was closed with code 1008: rate limit exceeded',
		},
	});
	const third = session.send('three', 2);
	(await socket(2)).open();
	expect(await third).toMatchObject({ ok: true });
});

test('a platform that closes every connection at once is given up in the end', async () => {
	const { session, sockets, clock } = scene();
	let sent: unknown;
	void session.send('one', 0).then((result) => (sent = result));
	for (let round = 0; sent === undefined && round < 5_000; round++) {
		const newest = sockets.at(-1);
		if (newest?.readyState === 0) {
			newest.open();
			newest.readyState = 2;
		}
		await clock.advance(800);
	}
	expect(sent).toMatchObject({ ok: false, failure: { kind: 'unreachable' } });
	expect(sockets).toHaveLength(10);
});

test('a request whose connection breaks is unclear, and the next one gets a new connection', async () => {
	const { session, socket, asking: first, open: old } = await asked();
	old.end(1006);
	expect(await first).toMatchObject({ ok: false, failure: { kind: 'unclear' } });
	const second = session.request('{}', rule(), 1_000);
	const fresh = await socket(2);
	fresh.open();
	await turn();
	fresh.say('{"type":"reply","re":1}');
	expect(await second).toMatchObject({ ok: true });
});

test.each([
	[1000, []],
	[1005, []],
	[1006, ['unclear']],
	[1008, ['unclear']],
	[4401, ['unclear']],
	[4403, ['unclear']],
	[4409, ['unclear']],
])('a close answered with code %d reports the losses %j', async (code, kinds) => {
	const { session, clock, open } = await sentOne();
	const closing = session.close();
	await clock.advance(200);
	expect(open.closes).toEqual([1000]);
	open.end(code);
	await closing;
	expect(session.losses().map(([, { kind }]) => kind)).toEqual(kinds);
});

test('a platform that closes a fresh connection with code 1000 has not confirmed what was sent over it', async () => {
	const { session, clock, open } = await sentOne();
	const closing = session.close();
	await clock.advance(100);
	open.end(1000, 'too many connections');
	await clock.run(closing);
	expect(session.losses()).toMatchObject([[0, { kind: 'unclear' }]]);
});

test('after requests alone, a platform that does not answer the close is not waited for', async () => {
	const { session, asking, clock } = await asked('{}', rule());
	await clock.run(asking);
	const beforeMs = clock.elapsedMs;
	await clock.run(session.close());
	expect(clock.elapsedMs - beforeMs).toBeLessThan(1_000);
});

test.each([
	[1000, '', 'unclear'],
	[1005, '', 'unclear'],
	[1000, 'auth failed', 'unclear'],
	[1008, 'message violates policy', 'unclear'],
	[4403, 'forbidden', 'unclear'],
	// This code alone says that the token was not accepted, so no frame after it was read.
	[4401, 'unauthorized', 'credential'],
])(
	'a platform that reads the token from a frame may refuse it with code %d, reason "%s": %s',
	async (code, reason, kind) => {
		const { clock, session, last } = scene(undefined, undefined, 'frame');
		const sending = session.send('one', 0);
		await turn();
		last().open();
		await sending;
		const closing = session.close();
		await clock.advance(300);
		last().end(code, reason);
		await clock.run(closing);
		expect(session.losses()).toMatchObject([[0, { kind }]]);
	},
);

test('a platform that does not answer the close is given up after 15 seconds, and the frame counts as unconfirmed', async () => {
	const { session, socket, clock } = scene();
	const sending = session.send('one', 0);
	(await socket()).open();
	await sending;
	await clock.run(session.close());
	expect(session.losses()).toHaveLength(1);
	expect(clock.elapsedMs).toBe(15_200);
});

test.each([
	['during the handshake', false],
	['during a request', true],
])('when stopped %s, it ends within a second and leaves nothing behind', async (_when, isOpen) => {
	const { session, socket, clock, stopping } = scene();
	const asking = session.request('{}', rule(), 60_000);
	const open = await socket();
	if (isOpen) open.open();
	await turn();
	stopping.abort();
	expect(await clock.run(asking, 1_000)).toMatchObject({ ok: false, failure: { kind: 'cancelled' } });
	await clock.run(session.close(), 1_000);
	expect(clock.elapsedMs).toBeLessThan(1_000);
	expect(open.closes.length).toBeGreaterThan(0);
	expect(await session.send('late', 0)).toMatchObject({ ok: false, failure: { kind: 'cancelled' } });
	expect(clock.sleepers).toBe(0);
});

test("n8n's guard is asked again before a second connection, and nothing is sent if it refuses", async () => {
	let refusal: Failure | undefined = undefined;
	const { session, socket, sockets } = scene(undefined, () => refusal);
	const first = session.send('{"id":1}', 0);
	const open = await socket();
	open.open();
	expect(await first).toMatchObject({ ok: true });
	refusal = { kind: 'badInput', message: 'This n8n does not allow connections to bridge.test', advice: '' };
	open.end(1006);
	expect(await session.send('{"id":2}', 0)).toEqual({ ok: false, failure: refusal });
	expect(sockets).toHaveLength(1);
});
