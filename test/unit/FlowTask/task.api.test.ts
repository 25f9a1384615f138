import { createTaskApi, type ImageFile } from '../../../nodes/FlowTask/task.api';
import { ok } from '../../../nodes/shared/failure';
import type { Json } from '../../../nodes/shared/json';

const IMAGE: ImageFile = { bytes: new Uint8Array([1]), fileName: 'a.png', mimeType: 'image/png' };

const answering = (data: Json): ReturnType<typeof createTaskApi> =>
	createTaskApi(async () => await Promise.resolve(ok(data)));

describe('ids in answers', () => {
	it.each<[Json, string]>([
		['in/a.png', 'in/a.png'],
		[' in/a.png ', 'in/a.png'],
		[123, '123'],
		['x'.repeat(1_000), 'x'.repeat(1_000)],
	])('takes %j', async (id, expected) => {
		expect(await answering({ image_id: id }).upload(IMAGE)).toEqual(ok(expected));
		expect(await answering({ prompt_id: id }).submit('w', {})).toMatchObject(ok({ taskId: expected }));
	});

	it.each<Json>([null, '', ' ', 2 ** 53, 1.5, ['a'], {}, 'x'.repeat(1_001)])(
		'does not take %j',
		async (id) => {
			expect(await answering({ image_id: id }).upload(IMAGE)).toMatchObject({ failure: { kind: 'unclear' } });
			expect(await answering({ prompt_id: id }).submit('w', {})).toMatchObject({
				failure: { kind: 'unclear' },
			});
		},
	);
});

describe('a look at tasks', () => {
	it('takes data that is null for none of the tasks', async () => {
		expect(await answering(null).info(['gone'], 60)).toEqual(ok([]));
	});

	it('takes one object for one task', async () => {
		const info = { flow_task_id: 't', status: 3 };
		expect(await answering({ flow_task_info: info }).info(['t'], 60)).toMatchObject(ok([{ taskId: 't' }]));
	});

	it('looks again where the answer holds no list', async () => {
		expect(await answering({}).info(['t'], 60)).toMatchObject({
			failure: { kind: 'unclear', passing: true },
		});
	});
});
