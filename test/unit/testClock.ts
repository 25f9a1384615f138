import type { Clock } from '../../nodes/shared/time/clock';

interface Sleeper {
	readonly atMs: number;
	readonly wake: () => void;
}

/** A Tuesday at noon, long enough after 0 that a time is never confused with a duration. */
const START_MS = Date.UTC(2030, 0, 1, 12);

/** Lets everything run that is ready to run. */
export async function turn(): Promise<void> {
	for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
}

/** The same for code that waits for nothing but promises, at a third of the cost: the event loop does not go round. */
export async function promisesOnly(): Promise<void> {
	await new Promise<void>((resolve) => process.nextTick(resolve));
}

/** Virtual time, which passes only as far as a test lets it, so that no test really waits. */
export class TestClock implements Clock {
	private timeMs = START_MS;
	private readonly asleep = new Set<Sleeper>();

	/** How far the time of day has been set ahead of `now()`, or back. */
	wallAheadMs = 0;

	/** @param letRun lets everything run that is ready to run, before time passes */
	constructor(private readonly letRun = turn) {}

	now(): number {
		return this.timeMs;
	}

	wallNow(): number {
		return this.timeMs + this.wallAheadMs;
	}

	/** Milliseconds since the test began. */
	get elapsedMs(): number {
		return this.timeMs - START_MS;
	}

	/** The number of current sleepers, which must be 0 once the code under test has ended. */
	get sleepers(): number {
		return this.asleep.size;
	}

	async sleep(ms: number, signal?: AbortSignal): Promise<void> {
		if (signal?.aborted) return;
		await new Promise<void>((resolve) => {
			const wake = (): void => {
				this.asleep.delete(sleeper);
				signal?.removeEventListener('abort', wake);
				resolve();
			};
			const sleeper = { atMs: this.timeMs + Math.max(0, ms), wake };
			this.asleep.add(sleeper);
			signal?.addEventListener('abort', wake, { once: true });
		});
	}

	/** Lets time pass. Sleepers that wake up meanwhile continue at the time of waking. */
	async advance(ms: number): Promise<void> {
		const untilMs = this.timeMs + ms;
		await this.letRun();
		for (let next = this.next(); next && next.atMs <= untilMs; next = this.next()) await this.wakeNext(next);
		this.timeMs = untilMs;
		await this.letRun();
	}

	/** Lets as much time pass as `work` needs to end. */
	async run<T>(work: Promise<T>, limitMs = 24 * 60 * 60 * 1000): Promise<T> {
		const giveUpMs = this.timeMs + limitMs;
		let done = false;
		const settle = (): void => {
			done = true;
		};
		const isDone = (): boolean => done;
		work.then(settle, settle);
		for (;;) {
			for (let more = 0; more < 20 && !isDone(); more++) {
				await this.letRun();
				if (this.asleep.size > 0) break;
			}
			if (isDone()) return await work;
			const next = this.next();
			if (!next) throw new Error('Nobody sleeps, and what is waited for has not come to its end');
			if (next.atMs > giveUpMs) throw new Error(`What is waited for takes more than ${limitMs} ms`);
			await this.wakeNext(next);
		}
	}

	private next(): Sleeper | undefined {
		let soonest: Sleeper | undefined;
		for (const sleeper of this.asleep) if (!soonest || sleeper.atMs < soonest.atMs) soonest = sleeper;
		return soonest;
	}

	private async wakeNext(sleeper: Sleeper): Promise<void> {
		this.timeMs = Math.max(this.timeMs, sleeper.atMs);
		sleeper.wake();
		await this.letRun();
	}
}
