import { HandWoundTime } from '../platform';
import { until } from '../until';
import { openChatStage } from './ChatCompletion/chat.fixture';
import { openStage, prompts } from './FlowTask/flowTask.fixture';
import { freshStage, sayings } from './harness/stage';

let time: HandWoundTime;
const tasks = freshStage(async () => {
	time = new HandWoundTime();
	return await openStage({ taskMs: 1_000, time });
});
const chats = freshStage(openChatStage);

test('the node keeps polling tasks while the time of day is set back and stands still', async () => {
	const earlierMs = Date.now() - 60_000;
	const polls = (): number => tasks.platform.books().requests.info;
	const running = tasks.run(prompts(1), { options: { progressChannel: 'polling' } });
	await until(() => polls() > 0);
	const clock = jest.spyOn(Date, 'now').mockReturnValue(earlierMs);
	const before = polls();
	// The first of them may have been due already.
	await until(() => polls() >= before + 3, 'three more polls');
	clock.mockRestore();
	time.pass(1_000);
	expect((await running).items()).toHaveLength(1);
}, 90_000);

test('a timeout that is not a whole number of milliseconds does not hide a rejected key', async () => {
	const account = { apiKey: 'sk-wrong-0123456789' };
	const run = await chats.run(sayings('x'), { options: { timeoutSeconds: 1.0001 * 3 } }, { account });
	expect(run.error?.message).toContain('does not accept the API key');
});
