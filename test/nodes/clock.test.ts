import { until } from '../until';
import { openChatStage } from './ChatCompletion/chat.fixture';
import { openStage, prompts } from './FlowTask/flowTask.fixture';
import { stopwatch } from './harness';
import { freshStage, sayings } from './harness/stage';

const tasks = freshStage(openStage, { taskMs: 3_000 });
const chats = freshStage(openChatStage);

test('the node keeps polling tasks if the time of day is set back by a minute', async () => {
	const now = Date.now.bind(Date);
	const clock = jest.spyOn(Date, 'now');
	const watch = stopwatch();
	const running = tasks.run(prompts(1), { options: { progressChannel: 'polling' } });
	await until(() => tasks.platform.books().requests.info > 0);
	clock.mockImplementation(() => now() - 60_000);
	expect((await running).items()).toHaveLength(1);
	expect(watch.stop()).toBeLessThan(15_000);
	clock.mockRestore();
}, 90_000);

test('a timeout that is not a whole number of milliseconds does not hide a rejected key', async () => {
	const account = { apiKey: 'sk-wrong-0123456789' };
	const run = await chats.run(sayings('x'), { options: { timeoutSeconds: 1.0001 * 3 } }, { account });
	expect(run.error?.message).toContain('does not accept the API key');
});
