import sharp from 'sharp';
import { CODES, HandWoundTime } from '../../platform';
import { Client, decodeLink, progressEnd, PROGRESS, sharedClient, withPlatform } from './client';

test('a task is queued, then generating, then succeeded', async () => {
	const time = new HandWoundTime();
	await withPlatform({ runners: 1, taskMs: 120, time }, async (client) => {
		const first = await client.submit({ '3': { inputs: { seed: 1 } } }, 'two-outputs');
		const second = await client.submit({ '3': { inputs: { seed: 2 } } });
		const third = await client.submit({ '3': { inputs: { seed: 3 } } });
		const [a, b, c] = await client.infos([first.id, second.id, third.id]);
		expect(a).toMatchObject({ status: 2, queue_size: 2, current_position: 0, errMsg: '', files: {} });
		expect(b).toMatchObject({ status: 1, current_position: 1, progress_num: 0, final_files: [] });
		expect(c).toMatchObject({ status: 1, current_position: 2 });
		time.pass(60);
		const half = await client.info(first.id);
		expect(half).toMatchObject({ status: 2, progress_num: 50 });
		time.pass(299);
		expect(await client.info(third.id)).toMatchObject({ status: 2 });
		time.pass(1);
		const whole = await client.info(first.id);
		// What is final so far is not yet all of it.
		expect(half.final_files.length).toBeLessThan(whole.final_files.length);
		const done = await client.info(third.id);
		expect(done).toMatchObject({ status: 3, progress_num: 100, queue_size: 0, current_position: 0 });
		expect(done.final_files).toEqual(done.files['9']);
	});
});

test('runners lose no time between tasks, and tasks start in the order of their submits', async () => {
	const time = new HandWoundTime();
	await withPlatform({ runners: 3, taskMs: 40, images: 'prepared', time }, async (client, platform) => {
		for (let seed = 0; seed < 12; seed++) {
			await client.submit({ '3': { inputs: { seed } } });
			time.pass(7);
		}
		// The clock jumps, as on a busy machine; planned events still happen at their planned times.
		time.pass(10_000);
		const { tasks } = platform.books();
		const starts = tasks.map(({ startedAtMs }) => Number(startedAtMs));
		expect(starts).toEqual([...starts].sort((a, b) => a - b));
		for (const [index, task] of tasks.entries()) {
			const before = tasks[index - 3];
			if (before !== undefined) expect(task.startedAtMs).toBe(before.finishedAtMs);
		}
	});
});

test('a prompt text can request an outcome', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 30, time }, async (client) => {
		const outcomes = {
			'[fail: out of paint]': { status: 4, errMsg: 'out of paint', files: {} },
			'[takes: 5000]': { status: 2 },
			'': { status: 3 },
		};
		const ids = new Map<string, object>();
		for (const [order, outcome] of Object.entries(outcomes)) {
			ids.set((await client.submitText(`a fox ${order}`)).id, outcome);
		}
		time.pass(90);
		for (const [id, outcome] of ids) expect(await client.info(id)).toMatchObject(outcome);
	});
});

describe('task info', () => {
	const client = sharedClient();

	test('leaves out the tasks of other owners', async () => {
		const other = new Client(client().platform, client().platform.createOwner('stranger').apiKey);
		const own = [await client().submit(), await client().submitText('x')].map(({ id }) => id);
		expect((await client().infos([...own, 'nope'])).map((info) => info.flow_task_id)).toEqual(own);
		expect(await other.infos(own)).toEqual([]);
	});

	test.each<[unknown, number]>([
		[{}, CODES.badTaskIds],
		[{ flow_task_ids: 'x' }, CODES.badTaskIds],
		[{ flow_task_ids: [1] }, CODES.badTaskIds],
		[{ flow_task_ids: [], url_expire_period: '60' }, CODES.badExpirePeriod],
		[{ flow_task_ids: [], url_expire_period: 0 }, CODES.badExpirePeriod],
		[{ flow_task_ids: [], url_expire_period: 1.5 }, CODES.badExpirePeriod],
		[{ flow_task_ids: [], page: 1 }, CODES.badBody],
	])('refuses %j', async (body, code) => {
		expect(await client().answer('get_task_info', body)).toMatchObject({ code });
	});

	test.each<[string, object]>([
		['seed', { '3': { inputs: { seed: 1 } } }],
		['text', { '6': { inputs: { text: '<blue> & ocean\u0000\ud800 漢字' } } }],
		['steps', { '3': { inputs: { steps: 60 } } }],
		['cfg', { '3': { inputs: { cfg: 1 } } }],
		['model', { '4': { inputs: { ckpt_name: 'line-art-2.safetensors' } } }],
	])('links images that show which %s they were made with', async (_what, change) => {
		const small = { '5': { inputs: { width: 256, height: 192 } } };
		const draw = async (prompt: object): Promise<Buffer> => {
			const { final_files: files } = await client().info((await client().submit(prompt)).id);
			const image = sharp(await (await fetch(decodeLink(files[0]))).arrayBuffer());
			expect(await image.metadata()).toMatchObject({ format: 'png', width: 256, height: 192 });
			return await image.raw().toBuffer();
		};
		const [plain, changed] = [await draw(small), await draw({ ...small, ...change })];
		const differences = plain.map((value, index) => Math.abs(value - (changed[index] ?? 0)));
		expect(differences.reduce((sum, value) => sum + value, 0) / plain.length).toBeGreaterThan(3);
	});
});

test('the progress socket requires a valid token in the query', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 0, time }, async (client, platform) => {
		const { token } = await client.submit();
		const query = `?authorization=${encodeURIComponent(token)}`;
		expect(await progressEnd(platform, query)).toBe(1000);
		expect(await progressEnd(platform, query, '/api/mass/flow_task_api/get_task_progress')).toBe(1000);
		expect(await progressEnd(platform, query, '/elsewhere')).toBe(-404);
		expect(await progressEnd(platform, '', PROGRESS, { authorization: token })).toBe(-401);
		expect(await progressEnd(platform, `?authorization=${platform.apiKey}`)).toBe(-401);
		time.pass(24 * 60 * 60 * 1000);
		expect(await progressEnd(platform, query)).toBe(-401);
		expect(platform.books().sockets).toMatchObject({ opened: 2, refused: 3 });
	});
});
