import { sharedStage, sayings } from '../harness/stage';
import { openChatStage } from './chat.fixture';

const stage = sharedStage(openChatStage);

const ITEMS = ['one', 'two', 'three', 'four'];
const ONE_AT_A_TIME = { options: { concurrency: 1, retries: 0 } };

/** The messages of all calls that the model answered. */
function answered(): string[] {
	return stage.platform
		.books()
		.chats.map(({ body }) => JSON.stringify(body.messages))
		.sort();
}

const EACH_ONCE = ITEMS.map((content) => JSON.stringify([{ role: 'user', content }])).sort();

test.each(ITEMS.map((_, k) => k))('Retry On Fail requests no answer twice, after %i answer(s)', async (k) => {
	stage.platform.faults.add({ on: 'chat', kind: '5xx', skip: k, times: 1 });
	const settings = { retryOnFail: true, maxTries: 3, waitBetweenTries: 20 };
	const run = await stage.run(sayings(...ITEMS), ONE_AT_A_TIME, settings);
	expect(run.error).toBeUndefined();
	expect(run.jsons().map(({ content }) => content)).toEqual(ITEMS.map((say) => `You said: ${say}`));
	expect(answered()).toEqual(EACH_ONCE);
});

test.each(ITEMS.map((_, k) => k))(
	'Retry Execution requests no answer twice, after %i answer(s)',
	async (k) => {
		stage.platform.faults.add({ on: 'chat', kind: '5xx', skip: k, times: 1 });
		const failed = await stage.run(sayings(...ITEMS), ONE_AT_A_TIME);
		expect(failed.error?.description).toContain(k > 0 ? `${k} other item(s) were answered` : 'later');
		const run = await stage.harness.retry(failed);
		expect(run.error).toBeUndefined();
		expect(run.items()).toHaveLength(ITEMS.length);
		expect(answered()).toEqual(EACH_ONCE);
	},
);

test('a retry with another question requests new answers, and a run without failures saves none', async () => {
	stage.platform.faults.add({ on: 'chat', kind: '5xx', skip: 3, times: 1 });
	const failed = await stage.run(sayings(...ITEMS), ONE_AT_A_TIME);
	const edited = stage.workflow({
		...ONE_AT_A_TIME,
		messages: { message: [{ role: 'user', content: '=again {{ $json.say }}' }] },
	});
	const run = await stage.harness.retry(failed, edited);
	expect(run.jsons().map(({ content }) => content)).toEqual(ITEMS.map((say) => `You said: again ${say}`));
	expect(JSON.stringify(run.stored.data.executionData?.contextData ?? {})).not.toContain('You said: again');
});
