import { KeyedQueue } from '../../../../nodes/shared/time/keyedQueue';
import { TestClock } from '../../testClock';

let clock: TestClock;
let queue: KeyedQueue;
let done: string[];
beforeEach(() => {
	clock = new TestClock();
	queue = new KeyedQueue();
	done = [];
});

const never = new AbortController().signal;

async function take(name: string, takesMs: number, { waitMs = 60_000, signal = never, key = 'k' } = {}) {
	const ticket = queue.enter(key);
	await ticket.wait(waitMs, clock, signal);
	if (ticket.isFirst) {
		done.push(name);
		await clock.sleep(takesMs);
	} else done.push(`${name} gave up`);
	ticket.leave();
}

test('turns follow each other in order of arrival, and an empty queue is not kept', async () => {
	const turns = ['a', 'b', 'c'].map(async (name) => await take(name, 1_000));
	await clock.run(Promise.all([...turns, take('other', 10, { key: 'l' })]));
	expect(done).toEqual(['a', 'other', 'b', 'c']);
	expect([queue.size, clock.sleepers]).toEqual([0, 0]);
});

test('a ticket that waits too long or is stopped leaves the queue to those behind it', async () => {
	const stop = new AbortController();
	const turns = [
		take('a', 5_000),
		take('b', 10, { waitMs: 1_000 }),
		take('c', 10, { signal: stop.signal }),
		take('d', 10),
	];
	await clock.advance(2_000);
	stop.abort();
	await clock.run(Promise.all(turns));
	expect(done).toEqual(['a', 'b gave up', 'c gave up', 'd']);
	expect([queue.size, clock.sleepers]).toEqual([0, 0]);
});

test('a ticket says whether it is wanted, and may be left twice', () => {
	const [one, two] = [queue.enter('k'), queue.enter('k')];
	expect([one.isFirst, one.isWanted, two.isFirst, two.isWanted]).toEqual([true, true, false, false]);
	one.leave();
	one.leave();
	expect(two.isFirst).toBe(true);
	two.leave();
	expect(queue.size).toBe(0);
});
