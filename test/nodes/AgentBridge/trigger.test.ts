import { until } from '../../until';
import { stopwatch, type ActiveTrigger } from '../harness';
import { everythingSaid, freshStage } from '../harness/stage';
import { escaped, framesOf, openStage } from './agentBridge.fixture';

const stage = freshStage(openStage);

const textsOf = (trigger: ActiveTrigger): unknown[] => framesOf(trigger).map(({ text }) => text);
const messages = (trigger: ActiveTrigger): string[] => trigger.logs.map(({ message }) => message);

describe('frames', () => {
	test('in a burst of 10,000 arrive in order and complete, in batches, one execution at a time', async () => {
		const trigger = await stage.activate({ idPath: 'id' });
		const ids = stage.channel.pushBurst(10_000);
		await until(() => framesOf(trigger).length >= 10_000, 'all frames');
		expect(framesOf(trigger).map(({ id }) => id)).toEqual(ids);
		const sizes = trigger.runs.map((run) => run.items().length);
		expect(Math.max(...sizes)).toBe(100);
		expect(sizes.length).toBeLessThan(300);
		expect(trigger.logs.filter(({ level }) => level === 'error')).toEqual([]);
	});

	test('are output with their event and ID', async () => {
		const trigger = await stage.activate({ idPath: 'id' });
		const id = stage.channel.push({ text: 'hello', data: { any: [1] } });
		await trigger.waitForRuns(1);
		expect(trigger.runs[0]?.items()).toMatchObject([
			{ json: { frame: { id, type: 'message', data: { any: [1] } }, event: 'message', frameId: id } },
		]);
	});

	test('are filtered by event, at a configured path', async () => {
		const trigger = await stage.activate({ eventPath: 'data.event', eventFilter: 'order, refund' });
		for (const event of ['order', 'other', 'refund']) stage.channel.push({ data: { event }, text: event });
		await until(() => textsOf(trigger).length === 2);
		expect(textsOf(trigger)).toEqual(['order', 'refund']);
	});

	test('are skipped if they are duplicates, within a connection and across two', async () => {
		stage.platform.faults.add({ on: 'bridge', kind: 'duplicateFrames' });
		const trigger = await stage.activate({ idPath: 'id', maxBatch: 1 });
		stage.channel.push({ id: 'f-1', text: 'one' });
		await trigger.waitForRuns(1);
		stage.channel.drop(1012);
		await until(() => stage.platform.books().bridge.connections.length === 2, 'the new connection');
		stage.channel.push({ id: 'f-1', text: 'one' });
		stage.channel.push({ id: 'f-2', text: 'two' });
		await trigger.waitForRuns(2);
		expect(textsOf(trigger)).toEqual(['one', 'two']);
		expect(stage.platform.books().bridge.sent).toHaveLength(6);
	});

	test('are not compared without an ID path', async () => {
		const trigger = await stage.activate();
		stage.channel.push({ id: 'same' });
		stage.channel.push({ id: 'same' });
		await until(() => framesOf(trigger).length === 2);
	});

	test('above the queue limit close the connection and are reported; it reopens when there is room', async () => {
		const trigger = await stage.activate({ maxBatch: 5, options: { maxQueued: 50 } });
		stage.channel.pushBurst(500);
		await until(() => trigger.failedExecutions.length > 0, 'the report');
		expect(trigger.failedExecutions[0]?.message).toMatch(/^50 frames are waiting for the workflow/);
		await until(() => stage.platform.books().bridge.connections.length === 2, 'the new connection');
		await until(() => stage.platform.books().bridge.connections[0]?.closeCode !== null, 'the close');
		expect(stage.platform.books().bridge.connections[0]).toMatchObject({
			closeCode: 4013,
			closedBy: 'client',
		});
		const before = framesOf(trigger).length;
		expect(before).toBeGreaterThanOrEqual(50);
		expect(framesOf(trigger).map(({ index }) => index)).toEqual(Array.from({ length: before }, (_, i) => i));
		await until(() => stage.channel.open === 1);
		stage.channel.push({ text: 'again' });
		await until(() => textsOf(trigger).at(-1) === 'again');
		expect(trigger.fatalErrors).toEqual([]);
	});
});

describe('authentication', () => {
	test('by sub-protocol exposes the token in no URL, other header or frame', async () => {
		await stage.activate();
		await until(() => stage.channel.open === 1);
		const { bridge, leaks } = stage.platform.books();
		expect(bridge.connections).toMatchObject([{ auth: 'subprotocol' }]);
		expect([bridge.received, leaks]).toEqual([[], []]);
	});

	test("in a frame works with the default template, and the platform's answer is a frame", async () => {
		const trigger = await stage.activate({ authMode: 'inFrame' });
		await trigger.waitForRuns(1);
		expect(framesOf(trigger)).toMatchObject([{ type: 'auth_ok' }]);
		expect(stage.platform.books().bridge.connections).toMatchObject([{ auth: 'inFrame' }]);
	});

	test('hides a token that the platform echoes in a frame, also encoded or with JSON escapes', async () => {
		const trigger = await stage.activate({ idPath: 'id', eventPath: 'event' });
		const { token } = stage.channel;
		const echoed = escaped(token);
		stage.channel.pushRaw(`{"id":"${echoed}","event":"${echoed}","x":{"${echoed}":"no ${echoed}!"}}`);
		stage.channel.push({ text: `you are ${token}`, encoded: Buffer.from(token).toString('base64url') });
		await until(() => framesOf(trigger).length === 2);
		expect(framesOf(trigger)).toMatchObject([
			{ id: '[hidden]', event: '[hidden]', x: { '[hidden]': 'no [hidden]!' } },
			{ text: 'you are [hidden]', encoded: '[hidden]' },
		]);
		expect(JSON.stringify([trigger.runs.map(everythingSaid), trigger.logs])).not.toContain(token);
	});

	test.each([401, 403])(
		'stops the activation if the handshake is refused with HTTP %d, without another attempt',
		async (status) => {
			stage.platform.faults.add({ on: 'bridge', kind: 'socketRefuse', status });
			// n8n shows only the message, so it contains the advice.
			await expect(stage.activate()).rejects.toThrow(
				new RegExp(`refused the channel token \\(HTTP ${status}\\)\\. .*Copy it again`),
			);
			// One handshake and one request for the reason; the native socket repeats the handshake after a 401.
			expect(stage.platform.books().requests.bridge).toBe(status === 401 ? 3 : 2);
			expect(stage.platform.books().leaks).toEqual([]);
		},
	);

	test.each([4401, 4403, 1008])('stops and reports an error after a close with code %d', async (code) => {
		stage.platform.faults.add({ on: 'bridge', kind: 'socketClose', code, msg: `no ${stage.channel.token}` });
		const trigger = await stage.activate();
		const error = await trigger.waitForFatalError();
		expect(error.message).toContain(`refused the channel account (close code ${code}`);
		expect(error.message).not.toContain(stage.channel.token);
		expect(JSON.stringify(trigger.logs)).not.toContain(stage.channel.token);
		expect(stage.platform.books().requests.bridge).toBe(1);
	});

	test('stops and reports an error if the token is revoked while the trigger runs', async () => {
		const trigger = await stage.activate();
		await until(() => stage.channel.open === 1);
		stage.channel.refuse(403);
		stage.channel.drop(1001);
		expect((await trigger.waitForFatalError()).message).toContain('HTTP 403');
		expect(stage.platform.books().bridge.refused).toHaveLength(2);
	});

	// As n8n does after a refusal: it activates the trigger again in two ways at once, and forgets one of the two.
	test('is only the newest one if n8n starts the trigger twice', async () => {
		await stage.activate({ idPath: 'id' });
		const kept = await stage.activate({ idPath: 'id' });
		await until(() => stage.channel.open === 1, 'the earlier connection is closed');
		const { connections } = stage.platform.books().bridge;
		expect(connections.map(({ closedBy }) => closedBy)).toEqual(['client', null]);
		stage.channel.push({ text: 'once' });
		await kept.waitForRuns(1);
		expect(textsOf(kept)).toEqual(['once']);
	});

	test('stays open next to that of another trigger, even if both nodes have the same ID', async () => {
		const first = await stage.activate();
		const other = await stage.harness.activate({
			workflow: {
				nodes: [{ name: 'Other', type: 'n8n-nodes-flowtask.agentBridgeTrigger', parameters: {} }],
				connections: {},
			},
			credentials: stage.credentials,
		});
		// One frame at a time, because a connection that is being closed may still output one.
		for (const count of [1, 2, 3]) {
			stage.channel.push({ text: `${count}` });
			await Promise.all([first.waitForRuns(count), other.waitForRuns(count)]);
		}
		expect(messages(first)).not.toContainEqual(expect.stringContaining('disconnected'));
	});
});

describe('a connection that does not last', () => {
	test.each([
		['closed with a code', () => stage.channel.drop(4500, 'maintenance')],
		['closed without a code', () => stage.channel.drop(1005)],
		['reset', () => stage.channel.drop()],
	])('%s: is reopened, and frames arrive again', async (_how, drop) => {
		const trigger = await stage.activate();
		await until(() => stage.channel.open === 1);
		drop();
		await until(() => stage.platform.books().bridge.connections.length === 2, 'the new connection');
		await until(() => stage.channel.open === 1);
		stage.channel.push({ text: 'after' });
		await trigger.waitForRuns(1);
		expect(textsOf(trigger)).toEqual(['after']);
		expect(trigger.fatalErrors).toEqual([]);
		expect(messages(trigger).join('\n')).toMatch(/connected to .*\n.*Next try in .*\n.*reconnected after 1/s);
	});

	test.each([
		[
			'another sub-protocol',
			() => `bearer.${Buffer.from(stage.channel.token).toString('base64url')}`,
			'did not choose the sub-protocol',
		],
		['no sub-protocol', () => undefined, 'did not say why'],
	])('outputs no frame from a server that chooses %s', async (_what, msg, said) => {
		stage.platform.faults.add({ on: 'bridge', kind: 'wrongProtocol', msg: msg(), times: 2 });
		const trigger = await stage.activate();
		expect(messages(trigger)[0]).toContain(said);
		stage.channel.push({ text: 'not for us' });
		await until(() => stage.platform.books().bridge.connections.length >= 2);
		expect(JSON.stringify(trigger.logs)).not.toContain(stage.channel.token);
		expect(framesOf(trigger)).toEqual([]);
	});

	test('is kept open by heartbeats and closed on silence', async () => {
		const options = { heartbeatFrame: '{"type":"ping"}', heartbeatSeconds: 1, idleTimeoutSeconds: 2 };
		const trigger = await stage.activate({ eventFilter: 'message', options });
		await until(() => stage.platform.books().bridge.heartbeats >= 3, 'three heartbeats');
		expect(stage.platform.books().bridge.connections).toHaveLength(1);
		await trigger.close();

		stage.platform.faults.add({ on: 'bridge', kind: 'socketSilent', times: 1 });
		const second = await stage.activate({ eventFilter: 'message', options });
		await until(() => stage.platform.books().bridge.connections.length === 3, 'the new connection');
		expect(messages(second).join('\n')).toContain('Nothing arrived');
	});
});

describe('closing', () => {
	test('happens cleanly within a second of deactivation, and nothing is reopened', async () => {
		const trigger = await stage.activate();
		await until(() => stage.channel.open === 1);
		const watch = stopwatch();
		await trigger.close();
		expect(watch.stop()).toBeLessThan(1_000);
		await until(() => stage.platform.books().bridge.open === 0);
		expect(stage.platform.books().bridge.connections).toMatchObject([
			{ closeCode: 1000, closedBy: 'client' },
		]);
		// What the trigger logs when it closes belongs to no execution.
		expect(stage.harness.logs.at(-1)?.message).toContain('disconnected');
	});

	test('still starts executions for frames that wait', async () => {
		const trigger = await stage.activate({ maxBatch: 1, idPath: 'id' });
		const ids = stage.channel.pushBurst(200);
		await trigger.waitForRuns(1);
		await trigger.close();
		const said = stage.harness.logs.map(({ message }) => /(\d+) frame\(s\) were waiting/.exec(message)?.[1]);
		// Without this message, all frames were processed while the socket closed.
		const waited = Number(said.find(Boolean) ?? 0);
		const taken = (): unknown[] => framesOf(trigger).map(({ id }) => id);
		await until(() => taken().length > waited && isStartOf(ids, taken()), 'all frames');
		await until(() => stage.platform.books().bridge.open === 0);
	});
});

/** Whether `some` are the first of `all`, in any order. */
function isStartOf(all: readonly unknown[], some: readonly unknown[]): boolean {
	const first = new Set(all.slice(0, some.length));
	return first.size === some.length && some.every((id) => first.delete(id));
}

describe('unusual frames', () => {
	test('that are nested too deeply or binary are skipped, logged and counted; the others arrive', async () => {
		const trigger = await stage.activate({ maxBatch: 1 });
		await until(() => stage.channel.open === 1);
		stage.channel.pushRaw(`{"text":${'['.repeat(50_000)}${']'.repeat(50_000)}}`);
		stage.channel.pushRaw(Buffer.from([1, 2]));
		stage.channel.push({ text: 'after' });
		await trigger.waitForRuns(1);
		expect(textsOf(trigger)).toEqual(['after']);
		await trigger.close();
		const said = [...messages(trigger), ...stage.harness.logs.map(({ message }) => message)].join('\n');
		expect(said.match(/skipped a frame that is .*/g)).toEqual([
			expect.stringContaining('not a JSON object, or is nested too deeply'),
		]);
		expect(said).toContain('skipped 2 unreadable frames');
		expect(trigger.fatalErrors).toEqual([]);
	});

	test('that are too large close the connection, which the trigger opens again', async () => {
		const trigger = await stage.activate();
		await until(() => stage.channel.open === 1);
		stage.channel.pushRaw(`{"text":"${'x'.repeat(17_000_000)}"}`);
		await until(() => messages(trigger).some((message) => message.includes('reconnected')));
		stage.channel.push({ text: 'after' });
		await trigger.waitForRuns(1);
		expect(textsOf(trigger)).toEqual(['after']);
		expect(messages(trigger).join()).toContain('sent a frame of more than 16 million characters');
	});
});
