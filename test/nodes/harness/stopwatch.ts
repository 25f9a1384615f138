const TICK_MS = 10;

/** Runs from its creation on. */
export interface Stopwatch {
	/** Ends it; milliseconds. */
	stop(): number;
}

/**
 * How long something takes, counted in ticks of a timer of this very process. A machine that is busy with other work
 * delays the ticks, too, so a limit measures what the node waits for and not the machine.
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
