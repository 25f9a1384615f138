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
	const polls = (): PollEntry[][] => pollsIn(stage.platform.books().polls);
	const knowsAll = (poll: readonly PollEntry[]): boolean => idsOf(poll).length === 230;
	while (!polls().some(knowsAll)) await pause();
	for (let seen = 0; await goesOn();) {
		if (polls().length === seen) continue;
		seen = polls().length;
		time.pass(3_000);
	}
	for (const poll of polls()) {
		const ids = idsOf(poll);
		expect(new Set(ids).size).toBe(ids.length);
		expect(poll).toHaveLength(Math.ceil(ids.length / 100));
	}
	const later = polls().slice(polls().findIndex(knowsAll));
	expect(later.length).toBeGreaterThan(2);
	for (const poll of later) {
		// Tasks may end between the calls of one poll.
		const asked = poll.reduce((sum, { unfinishedAsked }) => sum + unfinishedAsked, 0);
		const known = poll.map(({ unfinishedKnown }) => unfinishedKnown);
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

function idsOf(poll: readonly PollEntry[]): string[] {
	return poll.flatMap(({ ids }) => ids);
}

function textOf(prompt: unknown): unknown {
	return (prompt as Record<string, { inputs?: { text?: string } }>)['6']?.inputs?.text;
}

/** Groups the calls by poll: the first call that repeats an ID begins the next poll. */
function pollsIn(calls: readonly PollEntry[]): PollEntry[][] {
	const polls: PollEntry[][] = [];
	let asked = new Set<string>();
	for (const call of calls) {
		const poll = polls.at(-1);
		if (poll && !call.ids.some((id) => asked.has(id))) poll.push(call);
		else {
			polls.push([call]);
			asked = new Set();
		}
		for (const id of call.ids) asked.add(id);
	}
	return polls;
}
