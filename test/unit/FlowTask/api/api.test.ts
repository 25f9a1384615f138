import { ServiceApi } from '../../../../nodes/FlowTask/api/api';
import { ok } from '../../../../nodes/shared/errors/failure';
import type { Json } from '../../../../nodes/shared/text/json';
import { redactor } from '../../../../nodes/shared/text/redact';

const KEY = 'sk-0123456789abcdef';
const IMAGE = new File([new Uint8Array([1])], 'a.png', { type: 'image/png' });

const answering = (data: Json): ServiceApi =>
	new ServiceApi(async () => await Promise.resolve(ok(data)), redactor([KEY]));

describe('an ID in an answer', () => {
	it.each<[Json, string]>([
		['in/a.png', 'in/a.png'],
		[' in/a.png ', 'in/a.png'],
		[123, '123'],
		['x'.repeat(1_000), 'x'.repeat(1_000)],
		['sk-looks-like-a-key', 'sk-looks-like-a-key'],
	])('may be %j', async (id, expected) => {
		expect(await answering({ image_id: id }).upload(IMAGE)).toEqual(ok(expected));
		expect(await answering({ prompt_id: id }).submit('w', {})).toMatchObject(ok({ taskId: expected }));
	});

	it.each<Json>([
		null,
		'',
		' ',
		0,
		'00000000-0000-0000-0000-000000000000',
		2 ** 53,
		1.5,
		['a'],
		{},
		'x'.repeat(1_001),
	])('must not be %j', async (id) => {
		expect(await answering({ image_id: id }).upload(IMAGE)).toMatchObject({ failure: { kind: 'unclear' } });
		expect(await answering({ prompt_id: id }).submit('w', {})).toMatchObject({
			failure: { kind: 'unclear' },
		});
	});
});

it.each([KEY, `t ${KEY}`, Buffer.from(KEY).toString('base64url')])(
	'refuses an ID that repeats the API key: %j',
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

it.each([
	[16_384, 16_384],
	[16_385, undefined],
])('uses no prompt token that is longer than any URL: %d characters', async (length, expected) => {
	const task = await answering({ prompt_id: 't', prompt_token: 'p'.repeat(length) }).submit('w', {});
	expect(task.ok && task.value.promptToken?.length).toBe(expected);
});

describe('a poll', () => {
	it('treats data that is null as none of the tasks', async () => {
		expect(await answering(null).info(['gone'], 60)).toEqual(ok([]));
	});

	it('treats one object as one task', async () => {
		const info = { flow_task_id: 't', status: 3 };
		expect(await answering({ flow_task_info: info }).info(['t'], 60)).toMatchObject(ok([{ taskId: 't' }]));
	});

	it('may be repeated if the answer contains no list', async () => {
		expect(await answering({}).info(['t'], 60)).toMatchObject({
			failure: { kind: 'unclear', passing: true, advice: expect.not.stringContaining('credential') },
		});
	});
});
