import sharp from 'sharp';

import { HandWoundTime, type PollEntry } from '../../platform';
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

test('every poll asks for all unfinished IDs, a hundred per call', async () => {
	const time = new HandWoundTime();
	stage = await openStage({ runners: 8, taskMs: 400, time });
	const limits = { requestsPerSecond: 0, progressChannel: 'polling' };
	const live = await stage.start(prompts(230), { limits });
	const goesOn = async (): Promise<boolean> =>
		await Promise.race([live.done.then(() => false), pause().then(() => true)]);
	// No task ends before the node knows all of them; after that, a few end between two polls.
	const looks = (): PollEntry[][] => looksOf(stage.platform.books().polls);
	const knowsAll = (look: readonly PollEntry[]): boolean => idsOf(look).length === 230;
	while (!looks().some(knowsAll)) await pause();
	for (let seen = 0; await goesOn();) {
		if (looks().length === seen) continue;
		seen = looks().length;
		time.pass(3_000);
	}
	for (const look of looks()) {
		const ids = idsOf(look);
		expect(new Set(ids).size).toBe(ids.length);
		expect(look).toHaveLength(Math.ceil(ids.length / 100));
	}
	const later = looks().slice(looks().findIndex(knowsAll));
	expect(later.length).toBeGreaterThan(2);
	for (const look of later) {
		// Tasks may end between the calls of one poll.
		const asked = look.reduce((sum, { unfinishedAsked }) => sum + unfinishedAsked, 0);
		const known = look.map(({ unfinishedKnown }) => unfinishedKnown);
		expect(asked).toBeGreaterThanOrEqual(Math.min(...known));
		expect(asked).toBeLessThanOrEqual(Math.max(...known));
	}
});

test('follows a single task over its WebSocket and confirms the result with task info', async () => {
	stage = await openStage({ taskMs: 1_500 });
	const run = await stage.run(prompts(1));
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

async function pause(): Promise<void> {
	await new Promise((resolve) => setTimeout(resolve, 20));
}

function idsOf(look: readonly PollEntry[]): string[] {
	return look.flatMap(({ ids }) => ids);
}

function textOf(prompt: unknown): unknown {
	return (prompt as Record<string, { inputs?: { text?: string } }>)['6']?.inputs?.text;
}

/** Groups the calls by poll: the first call that repeats an ID begins the next poll. */
function looksOf(polls: readonly PollEntry[]): PollEntry[][] {
	const looks: PollEntry[][] = [];
	let askedInLook = new Set<string>();
	for (const poll of polls) {
		const look = looks.at(-1);
		if (look && !poll.ids.some((id) => askedInLook.has(id))) look.push(poll);
		else {
			looks.push([poll]);
			askedInLook = new Set();
		}
		for (const id of poll.ids) askedInLook.add(id);
	}
	return looks;
}
