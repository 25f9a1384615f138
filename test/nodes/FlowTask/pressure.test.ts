import { openStage, prompts } from './flowTask.fixture';

test('a platform that accepts five requests per second gets all tasks and refuses few requests', async () => {
	const stage = await openStage({ runners: 8, taskMs: 300, requestsPerSecond: 5 });
	const run = await stage.run(prompts(60));
	const books = stage.platform.books();
	await stage.close();

	expect(run.error).toBeUndefined();
	expect(run.jsons().map(({ status }) => status)).toEqual(prompts(60).map(() => 'succeeded'));
	expect([books.tasksMade, books.duplicates]).toEqual([60, 0]);
	const calls = books.requests.submit + books.requests.info;
	expect(books.rateLimited).toBeGreaterThan(0);
	expect(books.rateLimited / calls).toBeLessThan(0.25);
});

test('requests that are always refused slow down more and more until the timeout', async () => {
	const stage = await openStage({ runners: 8, taskMs: 100 });
	stage.platform.faults.add({ on: 'submit', kind: '429' });
	const options = { timeoutMinutes: 0.5 };
	const run = await stage.run(prompts(6), { options }, { onError: 'continueRegularOutput' });
	const { requests, tasksMade } = stage.platform.books();
	await stage.close();

	const errors = run.jsons().map(({ error }) => error);
	expect(errors).toEqual(prompts(6).map(() => expect.stringContaining('is not accepting more requests')));
	expect(tasksMade).toBe(0);
	// Six are sent at once, and after the first ten one every five seconds.
	expect(requests.submit).toBeGreaterThan(8);
	expect(requests.submit).toBeLessThan(20);
});
