import { CODES, HandWoundTime, SAMPLE_WORKFLOWS, startPlatform } from '../../platform';
import { Client, sharedClient } from './client';

describe('submit', () => {
	const client = sharedClient();

	test.each<[string, unknown, number, RegExp]>([
		['the export', SAMPLE_WORKFLOWS['text-to-image'], CODES.fullExport, /exported file/],
		['text', 'text', CODES.badPrompt, /object/],
		['a list', [], CODES.badPrompt, /object/],
		['null', null, CODES.badPrompt, /required/],
		['a node without inputs', { '3': { seed: 1 } }, CODES.badPrompt, /Node 3/],
		['a key other than inputs', { '3': { inputs: {}, title: 'x' } }, CODES.badPrompt, /Node 3/],
		['a class_type', { '3': { inputs: {}, class_type: 'KSampler' } }, CODES.fullExport, /node 3/],
		['a link', { '3': { inputs: { model: ['4', 0] } } }, CODES.linkOverride, /parameter model/],
		['a value for a link', { '3': { inputs: { model: 'x' } } }, CODES.linkOverride, /parameter model/],
		['an unknown node', { '99': { inputs: {} } }, CODES.unknownNode, /node 99/],
		['an unknown parameter', { '3': { inputs: { sede: 1 } } }, CODES.unknownParameter, /sede.*seed/],
		['a number as text', { '3': { inputs: { steps: '20' } } }, CODES.wrongType, /steps must be an integer/],
		['a broken integer', { '3': { inputs: { steps: 2.5 } } }, CODES.wrongType, /steps must be an integer/],
		['null for a text', { '6': { inputs: { text: null } } }, CODES.wrongType, /text must be a string/],
		['too many steps', { '3': { inputs: { steps: 151 } } }, CODES.outOfRange, /from 1 to 150, got 151/],
		['a negative seed', { '3': { inputs: { seed: -1 } } }, CODES.outOfRange, /seed/],
		['too much cfg', { '3': { inputs: { cfg: 100.5 } } }, CODES.outOfRange, /cfg/],
		['an unknown sampler', { '3': { inputs: { sampler_name: 'x' } } }, CODES.notInList, /one of euler/],
		['an unknown model', { '4': { inputs: { ckpt_name: 'x' } } }, CODES.notInList, /model x/],
	])('refuses %s as the prompt and names the problem', async (_what, prompt, code, msg) => {
		const answer = await client().submit(prompt);
		expect(answer.code).toBe(code);
		expect(answer.msg).toMatch(msg);
	});

	test('names every problem of a prompt', async () => {
		const { msg } = await client().submit({ '3': { inputs: { steps: 0, cfg: 'x' } }, '77': { inputs: {} } });
		expect(msg).toMatch(/steps.*cfg.*77/);
	});

	test('refuses the parameter view', async () => {
		const view = client().platform.parameterView('text-to-image');
		expect(await client().submit(view)).toMatchObject({ code: CODES.parameterView });
		const withoutClass = Object.fromEntries(Object.entries(view).map(([id, { inputs }]) => [id, { inputs }]));
		expect(await client().submit(withoutClass)).toMatchObject({ code: CODES.parameterView });
	});

	test('refuses unknown and foreign workflows with codes of their own', async () => {
		expect(await client().submit({}, 'nope')).toMatchObject({ code: CODES.unknownWorkflow });
		const other = new Client(client().platform, client().platform.createOwner('other').apiKey);
		expect(await other.submit()).toMatchObject({ code: CODES.foreignWorkflow });
		expect(await client().answer('prompt', { prompt: {} })).toMatchObject({ code: CODES.badWorkflowId });
		expect(await client().answer('prompt', [])).toMatchObject({ code: CODES.badBody });
		const body = { workflow_id: 'text-to-image', prompt: {} };
		expect(await client().answer('prompt', { ...body, client_id: 'x' })).toMatchObject({
			code: CODES.badBody,
		});
		const headers = { accept: '*/*' };
		expect(await client().answer('prompt', body, headers)).toMatchObject({ code: CODES.badBody });
	});

	test('keeps seeds above 2^53 exact, up to the largest', async () => {
		const body = (seed: string): string =>
			`{"workflow_id":"text-to-image","prompt":{"3":{"inputs":{"seed":${seed}}}}}`;
		client().platform.resetBooks();
		expect(await client().answer('prompt', body('18446744073709551615'))).toMatchObject({ code: 0 });
		expect(await client().answer('prompt', body('12345678901234567891'))).toMatchObject({ code: 0 });
		expect(await client().answer('prompt', body('18446744073709551616'))).toMatchObject({
			code: CODES.outOfRange,
		});
		expect(JSON.stringify(client().platform.books().tasks)).toContain('"seed":12345678901234567891}');
	});

	test('refuses images that this owner did not upload', async () => {
		expect(
			await client().submit({ '10': { inputs: { image: 'input/x/cat.png' } } }, 'image-to-image'),
		).toMatchObject({ code: CODES.unknownImage });
	});

	test.each([
		// Up to three pass at 0.9 s; those that pass at 1 s and 1.9 s distinguish the ways of counting.
		{ limitCounts: 'bucket', passed: [2, 0, 2] },
		{ limitCounts: 'fixedWindow', passed: [2, 2, 0] },
		{ limitCounts: 'slidingWindow', passed: [2, 0, 2] },
	] as const)('counts requests: %j', async ({ passed, ...limits }) => {
		const time = new HandWoundTime();
		const limited = await startPlatform({ requestsPerSecond: 2, ...limits, time });
		const who = new Client(limited);
		const seen = [];
		for (const stepMs of [1_900 - (time.now() % 1_000), 100, 900]) {
			time.pass(stepMs);
			let count = 0;
			for (let asked = 0; asked < 3; asked++) {
				const { status } = await who.call('get_task_info', { flow_task_ids: [] });
				if (status === 200) count++;
			}
			seen.push(count);
		}
		expect(seen).toEqual(passed);
		await limited.close();
	});

	test('can limit all keys together, and sends the configured Retry-After', async () => {
		const limited = await startPlatform({ requestsPerSecond: 1, limitIsShared: true, retryAfterSeconds: 5 });
		const other = new Client(limited, limited.createOwner('second').apiKey);
		const answers = [];
		for (const who of [new Client(limited), other]) {
			answers.push(await who.call('get_task_info', { flow_task_ids: [] }));
		}
		expect(answers.map(({ status }) => status)).toEqual([200, 429]);
		expect(answers[1]?.headers.get('retry-after')).toBe('5');
		await limited.close();
	});
});
