/** The source of the platform's time. */
export interface TimeSource {
	/** Returns the milliseconds since 1970, which never go back. */
	now(): number;
	/** Calls `run` once, after `delayMs`. The returned function cancels the call. */
	wake(delayMs: number, run: () => void): () => void;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The system's time, except that it never goes back. */
export function systemTime(): TimeSource {
	const epochMs = Date.now() - performance.now();
	return {
		now: () => epochMs + performance.now(),
		wake: (delayMs, run) => {
			const timer = setTimeout(run, Math.min(delayMs, LONGEST_TIMER_MS));
			return () => clearTimeout(timer);
		},
	};
}

/** Waits by the timers of this realm, which a test may have sped up, or until `signal` is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
	if (signal?.aborted) return;
	await new Promise<void>((resolve) => {
		const timer = setTimeout(end, Math.min(ms, LONGEST_TIMER_MS));
		// A pause must not keep the process alive.
		timer.unref();
		signal?.addEventListener('abort', end, { once: true });
		function end(): void {
			clearTimeout(timer);
			signal?.removeEventListener('abort', end);
			resolve();
		}
	});
}

/** The system's time, which a test can stop, so that what it looks at does not change meanwhile. */
export class StoppableTime implements TimeSource {
	readonly #time = systemTime();
	#stoppedAtMs: number | undefined;
	#stoppedMs = 0;

	now(): number {
		return (this.#stoppedAtMs ?? this.#time.now()) - this.#stoppedMs;
	}

	wake(delayMs: number, run: () => void): () => void {
		// Nothing becomes due while the time is stopped, so the caller only plans anew.
		return this.#time.wake(this.#stoppedAtMs === undefined ? delayMs : Math.max(delayMs, 100), run);
	}

	stop(): void {
		this.#stoppedAtMs ??= this.#time.now();
	}

	goOn(): void {
		if (this.#stoppedAtMs !== undefined) this.#stoppedMs += this.#time.now() - this.#stoppedAtMs;
		this.#stoppedAtMs = undefined;
	}
}

interface Alarm {
	readonly atMs: number;
	readonly run: () => void;
}

/**
 * Time that stands still until a test lets it pass, so that the results of a test do not depend on how busy the machine
 * is. It controls everything that the platform plans; data over sockets still takes real time.
 */
export class HandWoundTime implements TimeSource {
	// It starts at the system's time, because callers compare some times with their own clock, e.g. the expiry of a link.
	#nowMs = Date.now();
	#alarms: Alarm[] = [];

	now(): number {
		return this.#nowMs;
	}

	wake(delayMs: number, run: () => void): () => void {
		const alarm: Alarm = { atMs: this.#nowMs + delayMs, run };
		this.#alarms.push(alarm);
		return () => this.#drop(alarm);
	}

	/** Lets time pass. Everything that becomes due meanwhile runs at its own time and in order. */
	pass(ms: number): void {
		const endMs = this.#nowMs + ms;
		for (let next = this.#nextUntil(endMs); next !== undefined; next = this.#nextUntil(endMs)) {
			this.#drop(next);
			this.#nowMs = Math.max(this.#nowMs, next.atMs);
			next.run();
		}
		this.#nowMs = endMs;
	}

	#nextUntil(endMs: number): Alarm | undefined {
		const due = this.#alarms.filter(({ atMs }) => atMs <= endMs);
		return due.sort((a, b) => a.atMs - b.atMs)[0];
	}

	#drop(alarm: Alarm): void {
		this.#alarms = this.#alarms.filter((other) => other !== alarm);
	}
}
