import sharp from 'sharp';

import { openStage, prompts, text, type Stage } from './flowTask.fixture';

let stage: Stage;
afterEach(async () => {
	await stage.close();
});

test('outputs 200 items on 8 runners in input order, with every file, in at most 1.2 calls per task', async () => {
	stage = await openStage({ runners: 8, taskMs: 200 });
	const run = await stage.run(prompts(200));

	expect(run.error).toBeUndefined();
	const items = run.items();
	expect(items.map((item) => item.pairedItem)).toEqual(prompts(200).map((_, item) => ({ item })));
	const books = stage.platform.books();
	const promptOfTask = new Map(books.tasks.map((task) => [task.taskId, textOf(task.prompt)]));
	expect(items.map(({ json }) => promptOfTask.get(text(json.taskId)))).toEqual(
		prompts(200).map(({ json }) => json?.prompt),
	);
	for (const item of items) {
		const { format } = await sharp(await run.binary(item, 'data')).metadata();
		expect(format).toBe('png');
	}
	expect(new Set(items.map((item) => item.binary?.data?.fileName)).size).toBe(200);

	expect(books.tasksMade).toBe(200);
	expect(books.duplicates).toBe(0);
	const calls = books.requests.submit + books.requests.info;
	expect(calls).toBeLessThanOrEqual(240);
	expect(books.maxIdsInPoll).toBeLessThanOrEqual(100);
	expect(books.sockets.maxOpen).toBeLessThanOrEqual(20);
	expect(books.sockets.open).toBe(0);
});

test('follows a single task over its WebSocket and confirms the result with task info', async () => {
	stage = await openStage({ taskMs: 1_500 });
	const run = await stage.run(prompts(1), { simplify: false });
	expect(run.items()).toHaveLength(1);
	const books = stage.platform.books();
	expect(books.sockets.opened).toBe(1);
	expect(books.requests.info).toBeLessThanOrEqual(3);
	const finishedAtMs = books.tasks[0]?.finishedAtMs ?? 0;
	const { timing } = run.jsons()[0] ?? {};
	const seenAtMs = Date.parse(String((timing as { finishedAt?: string }).finishedAt));
	expect(seenAtMs).toBeGreaterThanOrEqual(finishedAtMs - 5);
});

test('sends nothing if there are no input items', async () => {
	stage = await openStage();
	const run = await stage.run([]);
	expect(run.status).toBe('success');
	expect(stage.platform.books().requests.submit).toBe(0);
});

function textOf(prompt: unknown): unknown {
	return (prompt as Record<string, { inputs?: { text?: string } }>)['6']?.inputs?.text;
}
