import { ServiceApi } from '../../../../nodes/FlowTask/api/api';
import { ok } from '../../../../nodes/shared/errors/failure';
import type { Json } from '../../../../nodes/shared/text/json';
import { redactor } from '../../../../nodes/shared/text/redact';

const KEY = 'sk-0123456789abcdef';
const IMAGE = new File([new Uint8Array([1])], 'a.png', { type: 'image/png' });

const answering = (data: Json): ServiceApi =>
	new ServiceApi(async () => await Promise.resolve(ok(data)), redactor([KEY]));

describe('ids in answers', () => {
	it.each<[Json, string]>([
		['in/a.png', 'in/a.png'],
		[' in/a.png ', 'in/a.png'],
		[123, '123'],
		['x'.repeat(1_000), 'x'.repeat(1_000)],
		['sk-looks-like-a-key', 'sk-looks-like-a-key'],
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

it.each([KEY, `t ${KEY}`, KEY.replace('-', '\\u002d'), Buffer.from(KEY).toString('base64url')])(
	'takes no id that repeats the API key: %j',
	async (id) => {
		const answers = [
			await answering({ image_id: id }).upload(IMAGE),
			await answering({ prompt_id: id }).submit('w', {}),
		];
		for (const answer of answers) {
			expect(answer).toMatchObject({ failure: { kind: 'unclear' } });
			expect(JSON.stringify(answer)).not.toContain(id);
		}
	},
);

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
			failure: { kind: 'unclear', passing: true, advice: expect.not.stringContaining('credential') },
		});
	});
});
