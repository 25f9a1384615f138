import { everythingSaid, sharedStage } from '../harness/stage';
import { openStage, prompts } from './flowTask.fixture';

const stage = sharedStage(openStage);

function expectNoLeak(): void {
	expect(stage.platform.books().leaks).toEqual([]);
}

test('the file host never sees a key', async () => {
	const run = await stage.run(prompts(6));
	expect(run.items()).toHaveLength(6);
	expect(stage.platform.books().requests.file).toBe(6);
	expectNoLeak();
});

test.each([301, 302, 307, 308].flatMap((status) => [['submit', status] as const, ['info', status] as const]))(
	'a redirect of %s with HTTP %d is not followed with the key, and the error names the address',
	async (on, status) => {
		stage.platform.faults.add({ on, kind: 'redirect', status });
		// A run tolerates refused polls for minutes; "Get" asks once.
		const parameters = on === 'info' ? { operation: 'get', taskIds: 'some-task' } : {};
		const run = await stage.run(prompts(1), parameters);
		expect(run.error?.message).toContain('base URL redirects to another address');
		expect(run.error?.description).toContain(stage.platform.fileUrl);
		expect(stage.platform.books().requests.trap).toBe(0);
		expectNoLeak();
	},
);

test('a key that the platform echoes in its errors appears in no item, error or log', async () => {
	const key = stage.platform.apiKey;
	stage.platform.faults.add({ on: 'submit', kind: 'code', msg: `bad key ${key}, header Bearer ${key}` });
	const failed = await stage.run(prompts(2));
	expect(failed.error?.message).toContain('refused the request to submit the task');
	expect(everythingSaid(failed)).not.toContain(key);

	stage.platform.faults.clear();
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', msg: `model loader said ${key}` });
	const items = await stage.run(prompts(2), { simplify: false }, { onError: 'continueErrorOutput' });
	expect(items.items(1)).toHaveLength(2);
	expect(everythingSaid(items)).not.toContain(key);
});

test('no run, whether it succeeds or fails, leaves a key or a prompt token behind', async () => {
	stage.platform.faults.add({ on: 'submit', kind: 'failTask', match: 'picture 1' });
	for (const operation of ['run', 'submit']) {
		const run = await stage.run(
			prompts(3),
			{ operation, simplify: false },
			{ onError: 'continueErrorOutput' },
		);
		const said = everythingSaid(run);
		expect(said).not.toContain(stage.platform.apiKey);
		expect(said).not.toContain('prompt_token');
		expect(said).not.toMatch(/[?&]authorization=/);
	}
	const unreachable = await stage.run(prompts(1), {}, { account: { baseUrl: 'http://127.0.0.1:9' } });
	expect(unreachable.error?.message).toContain('could not be reached');
	expect(everythingSaid(unreachable)).not.toContain(stage.platform.apiKey);
});
