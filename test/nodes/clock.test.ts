import { sayings } from './harness/stage';
import { openChatStage } from './ChatCompletion/chat.fixture';
import { openStage, prompts } from './FlowTask/flowTask.fixture';
import { NODE_NAME, stopwatch } from './harness';

test('the node keeps polling tasks if the time of day is set back by a minute', async () => {
	const stage = await openStage({ taskMs: 3_000 });
	const now = Date.now.bind(Date);
	const clock = jest.spyOn(Date, 'now');
	try {
		const watch = stopwatch();
		const running = stage.run(prompts(1), { options: { progressChannel: 'polling' } });
		while (stage.platform.books().requests.info < 1) await new Promise((resolve) => setTimeout(resolve, 20));
		clock.mockImplementation(() => now() - 60_000);
		const run = await running;
		expect(run.output(NODE_NAME)).toHaveLength(1);
		expect(watch.stop()).toBeLessThan(15_000);
	} finally {
		clock.mockRestore();
		await stage.close();
	}
}, 90_000);

test('a timeout that is not a whole number of milliseconds does not hide a rejected key', async () => {
	const stage = await openChatStage();
	try {
		const flowPlatformApi = { ...stage.credentials.flowPlatformApi, apiKey: 'sk-wrong-0123456789' };
		const run = await stage.harness.run({
			workflow: stage.workflow({ options: { timeoutSeconds: 1.0001 * 3 } }),
			items: sayings('x'),
			credentials: { flowPlatformApi },
		});
		expect(run.error?.message).toContain('does not accept the API key');
	} finally {
		await stage.close();
	}
});
