import { until } from '../../until';
import { stopwatch } from '../harness';
import { freshStage } from '../harness/stage';
import { openStage } from './agentBridge.fixture';

const stage = freshStage(openStage);

test('outputs the first matching frame as the test event, and closes the connection', async () => {
	const testing = stage.test({ eventFilter: 'order' });
	await until(() => stage.channel.open === 1);
	stage.channel.push({ type: 'other' });
	stage.channel.push({ type: 'order', text: 'A-1' });
	stage.channel.push({ type: 'order', text: 'A-2' });
	const run = await testing;
	expect(run.jsons()).toMatchObject([{ event: 'order', frame: { text: 'A-1' } }]);
	await until(() => stage.platform.books().bridge.open === 0);
	expect(stage.platform.books().bridge.connections).toMatchObject([{ closeCode: 1000 }]);
});

test('says what to check if nothing arrives', async () => {
	const run = await stage.test({ options: { testTimeoutSeconds: 1 } });
	expect(run.error?.message).toBe('The connection is open, but no frame arrived within 1 seconds');
	expect(run.error?.description).toContain('bound to an agent');
	await until(() => stage.platform.books().bridge.open === 0);
});

test('names the events that arrive if none matches', async () => {
	const testing = stage.test({ eventFilter: 'order', options: { testTimeoutSeconds: 1 } });
	await until(() => stage.channel.open === 1);
	stage.channel.push({ type: 'tool_event' });
	stage.channel.push({ type: 17 });
	stage.channel.pushRaw('<html>');
	const run = await testing;
	expect(run.error?.message).toContain('none of them starts the workflow');
	expect(run.error?.description).toContain('tool_event, 17, a frame that is not a JSON object');
});

test.each([
	[401, 'refused the channel token (HTTP 401)', 'Copy it again'],
	[404, 'did not accept the WebSocket connection (HTTP 404)', 'Bridge Path'],
	[503, 'did not accept the WebSocket connection (HTTP 503)', 'currently unavailable'],
])('says what to do if the handshake is refused with HTTP %d', async (status, message, advice) => {
	stage.platform.faults.add({ on: 'bridge', kind: 'socketRefuse', status });
	const run = await stage.test();
	expect(run.error?.message).toContain(message);
	expect(run.error?.description).toContain(advice);
});

test('reports a platform that cannot be reached', async () => {
	const away = await stage.test({}, { wsBaseUrl: 'ws://127.0.0.1:9' });
	expect(away.error?.message).toBe('127.0.0.1:9 could not be reached: nothing answers there (ECONNREFUSED)');
});

test('reports a connection that is lost while it waits', async () => {
	const testing = stage.test();
	await until(() => stage.channel.open === 1);
	stage.channel.drop();
	expect((await testing).error?.message).toContain('The connection was lost');
});

test('an interval without a heartbeat is not checked', async () => {
	const live = await stage.startTest({ options: { heartbeatSeconds: 0 } });
	await until(() => stage.channel.open === 1);
	live.cancel();
	expect((await live.done).error).toBeUndefined();
	await until(() => stage.platform.books().bridge.open === 0);
});

test('Stop ends the test at once and closes the connection', async () => {
	const live = await stage.startTest();
	await until(() => stage.channel.open === 1);
	const sinceCancel = stopwatch();
	live.cancel();
	await live.done;
	expect(sinceCancel.stop()).toBeLessThan(1_000);
	await until(() => stage.platform.books().bridge.open === 0);
});

test.each([
	[{ eventPath: '', eventFilter: 'message' }, "'Event Path' is empty"],
	[{ authMode: 'inFrame', authFrame: '{"type":"auth"}' }, 'no placeholder for the token'],
	[{ options: { heartbeatFrame: 'ping' } }, "'Heartbeat Frame' is not a JSON object"],
	[{ options: { heartbeatFrame: '{"a":1}', heartbeatSeconds: 0 } }, "'Heartbeat Interval (Seconds)' must be"],
])('refuses %j before opening a connection', async (parameters, said) => {
	const run = await stage.test(parameters);
	expect(run.error?.message).toContain(said);
	expect(stage.platform.books().requests.bridge).toBe(0);
});
