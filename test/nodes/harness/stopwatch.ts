const TICK_MS = 10;

/** A stopwatch that runs from its creation. */
export interface Stopwatch {
	/** Stops it and returns the milliseconds. */
	stop(): number;
}

/**
 * Measures time in ticks of a timer of this process. A machine that is busy with other work
 * delays the ticks as well, so the result shows how long the node waits, not how busy the machine is.
 */
export function stopwatch(): Stopwatch {
	let ticks = 0;
	const timer = setInterval(() => ticks++, TICK_MS).unref();
	return {
		stop: () => {
			clearInterval(timer);
			return ticks * TICK_MS;
		},
	};
}
