import { CODES, HandWoundTime } from '../../platform';
import { Client } from './client';
import { withPlatform } from './running';

test('a task is queued, then generating, then succeeded', async () => {
	const time = new HandWoundTime();
	await withPlatform({ runners: 1, taskMs: 120, time }, async (client) => {
		const first = await client.submit({ '3': { inputs: { seed: 1 } } });
		const second = await client.submit({ '3': { inputs: { seed: 2 } } });
		const third = await client.submit({ '3': { inputs: { seed: 3 } } });
		const [a, b, c] = await client.infos([first.id, second.id, third.id]);
		expect(a).toMatchObject({ status: 2, queue_size: 2, current_position: 0, errMsg: '', files: {} });
		expect(b).toMatchObject({ status: 1, current_position: 1, progress_num: 0, final_files: [] });
		expect(c).toMatchObject({ status: 1, current_position: 2 });
		time.pass(60);
		expect(await client.info(first.id)).toMatchObject({ status: 2, progress_num: 50 });
		time.pass(299);
		expect(await client.info(third.id)).toMatchObject({ status: 2 });
		time.pass(1);
		const done = await client.info(third.id);
		expect(done).toMatchObject({ status: 3, progress_num: 100, queue_size: 0, current_position: 0 });
		expect(done.final_files).toEqual(done.files['9']);
		expect(done.final_files[0]).toMatch(/\/files\/.+\/9\/ComfyUI_00001_\.png\?Expires=\d+\\u0026KeyId=/);
	});
});

test('the run time is steps × stepMs, or taskMs if set', async () => {
	const time = new HandWoundTime();
	await withPlatform({ stepMs: 4, time }, async (client, platform) => {
		await client.submit({ '3': { inputs: { steps: 25 } } });
		time.pass(5_000);
		const [task] = platform.books().tasks;
		expect(Number(task?.finishedAtMs) - Number(task?.startedAtMs)).toBe(100);
	});
	await withPlatform({ taskMs: 0 }, async (client) => {
		const { id } = await client.submit();
		expect(await client.info(id)).toMatchObject({ status: 3, progress_num: 100 });
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

test('a batch produces as many images as its size', async () => {
	await withPlatform({ taskMs: 0 }, async (client) => {
		const { id } = await client.submit({ '5': { inputs: { batch_size: 3 } } });
		expect(new Set((await client.info(id)).final_files).size).toBe(3);
	});
});

test('previews are files, but not final files', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		await platform.hostWorkflow(
			{
				'1': { class_type: 'LoadImage', inputs: { image: 'example.png' } },
				'2': { class_type: 'ImageScale', inputs: { image: ['1', 0] } },
				'3': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
				'4': { class_type: 'SaveImage', inputs: { images: ['2', 0] } },
			},
			{ workflowId: 'scaled' },
		);
		const { id } = await client.submit({}, 'scaled');
		const info = await client.info(id);
		expect(Object.keys(info.files)).toEqual(['3', '4']);
		expect(info.final_files).toEqual(info.files['4']);
	});
});

test('a prompt text can request an outcome', async () => {
	const time = new HandWoundTime();
	await withPlatform({ taskMs: 30, time }, async (client) => {
		const failing = await client.submitText('a fox [fail: out of paint]');
		const denied = await client.submitText('a fox [deny]');
		const stalled = await client.submitText('a fox [stall]');
		const stuck = await client.submitText('a fox [stuck]');
		const strange = await client.submitText('a fox [status:9]');
		const slow = await client.submitText('a fox [takes: 5000]');
		const fine = await client.submitText('a fox');
		time.pass(90);
		expect(await client.info(fine.id)).toMatchObject({ status: 3 });
		expect(await client.info(failing.id)).toMatchObject({ status: 4, errMsg: 'out of paint', files: {} });
		expect(await client.info(denied.id)).toMatchObject({ status: 5, final_files: [] });
		expect(await client.info(stalled.id)).toMatchObject({ status: 2, progress_num: 0 });
		expect(await client.info(stuck.id)).toMatchObject({ status: 2, progress_num: 99 });
		expect(await client.info(strange.id)).toMatchObject({ status: 9 });
		expect(await client.info(slow.id)).toMatchObject({ status: 2 });
	});
});

test('task info reports many tasks and leaves out those of other owners', async () => {
	await withPlatform({ taskMs: 0 }, async (client, platform) => {
		const other = new Client(platform, platform.createOwner('other').apiKey);
		const own = [await client.submit(), await client.submitText('x')].map(({ id }) => id);
		expect((await client.infos([...own, 'nope'])).map((info) => info.flow_task_id)).toEqual(own);
		expect(await other.infos(own)).toEqual([]);
		expect(await client.answer('get_task_info', { flow_task_ids: [] })).toEqual({
			code: 0,
			msg: 'Success',
			data: { flow_task_info: [] },
		});
	});
});

test.each<[unknown, number]>([
	[{}, CODES.badTaskIds],
	[{ flow_task_ids: 'x' }, CODES.badTaskIds],
	[{ flow_task_ids: [1] }, CODES.badTaskIds],
	[{ flow_task_ids: [], url_expire_period: '60' }, CODES.badExpirePeriod],
	[{ flow_task_ids: [], url_expire_period: 0 }, CODES.badExpirePeriod],
	[{ flow_task_ids: [], url_expire_period: 1.5 }, CODES.badExpirePeriod],
])('task info refuses %j', async (body, code) => {
	await withPlatform({}, async (client) => {
		expect(await client.answer('get_task_info', body)).toMatchObject({ code });
	});
});
