import { TestClock } from './testClock';

describe('TestClock', () => {
	it('wakes sleepers in the order of their times, not in the order in which they fell asleep', async () => {
		const clock = new TestClock();
		const woken: string[] = [];
		const note = async (name: string, ms: number): Promise<void> => {
			await clock.sleep(ms);
			woken.push(`${name}@${clock.elapsedMs}`);
		};
		await clock.run(Promise.all([note('c', 300), note('a', 100), note('b', 200)]));
		expect(woken).toEqual(['a@100', 'b@200', 'c@300']);
	});

	it('ends a sleep early when its signal is aborted, and forgets the sleeper', async () => {
		const clock = new TestClock();
		const stop = new AbortController();
		const sleep = clock.sleep(1_000, stop.signal);
		expect(clock.sleepers).toBe(1);
		stop.abort();
		await sleep;
		expect([clock.sleepers, clock.elapsedMs]).toEqual([0, 0]);
	});

	it('throws if nothing could ever end the work', async () => {
		await expect(new TestClock().run(new Promise(() => undefined))).rejects.toThrow('Nobody sleeps');
	});

	it('lets time pass without sleepers', async () => {
		const clock = new TestClock();
		await clock.advance(250);
		expect(clock.elapsedMs).toBe(250);
	});
});
