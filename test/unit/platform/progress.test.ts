import WebSocket from 'ws';
import { HandWoundTime } from '../../platform';
import { Client, decodeLink, PROGRESS, Watch } from './client';
import { withPlatform } from './running';

const OTHER_FORM = '/api/mass/flow_task_api/get_task_progress';

test.each([PROGRESS, OTHER_FORM])('%s reports each change and closes at 100', async (path) => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 400, runners: 1, time }, async (client, platform) => {
		const first = await client.submit({ '3': { inputs: { seed: 1 } } });
		const second = await client.submit({ '3': { inputs: { seed: 2 } } });
		const watch = client.watch(second.token, path);
		await watch.heard(1);
		time.pass(400);
		await watch.heard(2);
		time.pass(400);
		expect(await watch.closed).toBe(1000);
		const { messages } = watch;
		expect(messages[0]).toMatchObject({ flow_task_id: second.id, status: 1, current_position: 1 });
		expect(messages.some(({ status, progress_num: progress }) => status === 2 && progress > 20)).toBe(true);
		expect(messages.at(-1)).toMatchObject({ status: 3, progress_num: 100 });
		const steps = messages.map(({ progress_num: progress }) => progress);
		expect(steps).toEqual([...steps].sort((a, b) => a - b));
		const link = decodeLink(messages.at(-1)?.final_files[0] ?? '');
		const goodFor = Number(/Expires=(\d+)/.exec(link)?.[1]) - time.now() / 1000;
		expect(Math.abs(goodFor - 600)).toBeLessThan(5);
		expect((await fetch(link)).status).toBe(200);
		expect((await client.info(first.id)).status).toBe(3);
		expect(platform.books().sockets).toEqual({ opened: 1, refused: 0, open: 0, maxOpen: 1 });
		expect(platform.books().paths).toContain(path);
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

test('the socket stays open while nothing changes', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 10, time }, async (client, platform) => {
		const { token } = await client.submitText('[stall]');
		const watch = client.watch(token);
		await watch.heard(1);
		time.pass(60 * 60 * 1000);
		await watch.roundTrip();
		expect(watch.messages).toHaveLength(1);
		expect(platform.books().sockets.open).toBe(1);
		watch.socket.close();
		await watch.closed;
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

test('the socket accepts a token without encoding', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		for (let count = 0; count < 20; count++) {
			const { token } = await client.submit({ '3': { inputs: { seed: count } } });
			const watch = new Watch(`${platform.wsUrl}${PROGRESS}?authorization=${token}`);
			expect(await watch.closed).toBe(1000);
		}
	});
});

test('one of the path forms can be turned off', async () => {
	await withPlatform({ progressPaths: 'api/mass', taskMs: 0 }, async (client) => {
		const { token } = await client.submit();
		expect(await client.watch(token, PROGRESS).closed).toBe(-404);
		expect(await client.watch(token, OTHER_FORM).closed).toBe(1000);
	});
});

test('the socket reports the end at once', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 100, runners: 4, time }, async (client) => {
		const { token } = await client.submit();
		const watch = client.watch(token);
		await watch.heard(1);
		time.pass(100);
		// The clock does not advance any further.
		expect(await watch.closed).toBe(1000);
		expect(watch.messages.at(-1)).toMatchObject({ status: 3 });
	});
});

test('a prompt token works for any owner, unlike the task info', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		const other = new Client(platform, platform.createOwner('other').apiKey);
		const { token, id } = await client.submit();
		expect(await other.infos([id])).toEqual([]);
		const watch = other.watch(token);
		await watch.closed;
		expect(watch.messages[0]?.flow_task_id).toBe(id);
	});
});
