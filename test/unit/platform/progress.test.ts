import WebSocket from 'ws';
import { HandWoundTime } from '../../platform';
import { PROGRESS, Watch } from './client';
import { withPlatform } from './running';

const OTHER_FORM = '/api/mass/flow_task_api/get_task_progress';

test.each([PROGRESS, OTHER_FORM])('%s stays open while nothing changes', async (path) => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 10, time }, async (client, platform) => {
		const { token } = await client.submitText('[stall]');
		const watch = client.watch(token, path);
		await watch.heard(1);
		time.pass(60 * 60 * 1000);
		await watch.roundTrip();
		expect(watch.messages).toHaveLength(1);
		expect(platform.books().sockets.open).toBe(1);
		watch.socket.close();
		await watch.closed;
	});
});

test('the socket closes after a failure, and at once if the task has already ended', async () => {
	await withPlatform({ taskMs: 40 }, async (client) => {
		const { token } = await client.submitText('[fail: no paint]');
		const watch = client.watch(token);
		expect(await watch.closed).toBe(1000);
		expect(watch.messages.at(-1)).toMatchObject({ status: 4, errMsg: 'no paint' });
		const late = client.watch(token);
		expect(await late.closed).toBe(1000);
		expect(late.messages).toHaveLength(1);
	});
});

test('the socket requires a valid token in the query', async () => {
	const time = new HandWoundTime();
	await withPlatform({ promptTokenSeconds: 60, time }, async (client, platform) => {
		const { token } = await client.submit();
		const bare = `${platform.wsUrl}${PROGRESS}`;
		expect(await new Watch(bare).closed).toBe(-401);
		expect(await client.watch('wrong').closed).toBe(-401);
		expect(await client.watch(platform.apiKey).closed).toBe(-401);
		time.pass(60_000);
		expect(await client.watch(token).closed).toBe(-401);
		expect(await client.watch(token, '/elsewhere').closed).toBe(-404);
		expect(platform.books().sockets).toMatchObject({ opened: 0, refused: 4 });
	});
});

test('the socket ignores a token in a header', async () => {
	await withPlatform({}, async (client, platform) => {
		const { token } = await client.submit();
		const socket = new WebSocket(`${platform.wsUrl}${PROGRESS}`, { headers: { authorization: token } });
		const status = await new Promise((resolve) => {
			socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
			socket.on('error', () => undefined);
		});
		expect(status).toBe(401);
	});
});
