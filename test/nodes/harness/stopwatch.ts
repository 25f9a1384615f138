const TICK_MS = 10;

/** Started as it is made. */
export interface Stopwatch {
	/** Ends it; milliseconds. */
	stop(): number;
}

/**
 * How long something takes, counted in ticks of a timer of this very process. A machine that is busy with other work
 * makes the ticks as late as all else here, so a limit is about what the node waits for and not about the machine.
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
