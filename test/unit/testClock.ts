import type { Clock } from '../../nodes/shared/run/clock';

interface Sleeper {
	readonly atMs: number;
	readonly wake: () => void;
}

/** Some Tuesday noon: late enough that differences to 0 show up as what they are. */
const START_MS = Date.UTC(2030, 0, 1, 12);

/** Lets everything run that waits for nothing but its turn. */
export async function turn(): Promise<void> {
	for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
}

/** Virtual time: nothing passes but what a test lets pass, and no test waits for real. */
export class TestClock implements Clock {
	private timeMs = START_MS;
	private readonly asleep = new Set<Sleeper>();

	/** How far the time of day has been set ahead of `now()`, or back. */
	wallAheadMs = 0;

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

	/** Who sleeps right now: none may be left where something claims to have ended. */
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

	/** Lets time pass; whoever wakes up meanwhile acts at the time of waking. */
	async advance(ms: number): Promise<void> {
		const untilMs = this.timeMs + ms;
		await turn();
		for (let next = this.next(); next && next.atMs <= untilMs; next = this.next()) await this.wakeNext(next);
		this.timeMs = untilMs;
		await turn();
	}

	/** Lets as much time pass as `work` takes to come to its end. */
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
				await turn();
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
		await turn();
	}
}
