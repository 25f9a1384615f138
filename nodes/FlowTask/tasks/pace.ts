/** Polls are at least this far apart; the platform limits the frequency of requests (§8.1). */
export const SHORTEST_POLL_INTERVAL_MS = 1_000;
export const LONGEST_POLL_INTERVAL_MS = 10_000;

/** With this many tasks or fewer each is worth a poll of its own, and a socket. */
export const FEW_TASKS = 20;

/** A poll of many tasks should find about this many finished for each call that it costs. */
const FINISHED_PER_CALL = 10;

export interface PollFacts {
	/** Calls that the poll took. */
	readonly calls: number;
	/** Tasks that the poll found finished. */
	readonly finished: number;
	/** Whether anything about any task was new. */
	readonly changed: boolean;
	/** Tasks not finished yet, those not submitted yet included. */
	readonly remaining: number;
	/** Whether items wait for a task to finish before they can be submitted. */
	readonly backlog: boolean;
	/** Whether at least one call of the poll got no answer. */
	readonly failed: boolean;
}

/**
 * How long to wait before the next poll: short where something moves, longer where a poll learns little.
 * @param previousMs the interval before the poll that `facts` tells of
 */
export function nextIntervalMs(previousMs: number, facts: PollFacts): number {
	const wantedMs = Math.min(stretch(previousMs, facts), untilFewMs(previousMs, facts));
	return Math.min(LONGEST_POLL_INTERVAL_MS, Math.max(SHORTEST_POLL_INTERVAL_MS, wantedMs));
}

/** When only few tasks will be left at the rate of the last interval: the end of a batch is not to be slept through. */
function untilFewMs(previousMs: number, { finished, remaining }: PollFacts): number {
	if (finished === 0 || remaining <= FEW_TASKS) return Infinity;
	return ((remaining - FEW_TASKS) * previousMs) / finished;
}

function stretch(previousMs: number, facts: PollFacts): number {
	if (facts.failed) return previousMs * 2;
	if (facts.remaining <= FEW_TASKS) return facts.changed ? previousMs / 2 : previousMs * 1.25;
	// Free places are worth more than calls: every moment unseen is one in which no task is submitted.
	if (facts.backlog && facts.finished > 0) return SHORTEST_POLL_INTERVAL_MS;
	if (facts.finished < FINISHED_PER_CALL * facts.calls) return previousMs * 1.5;
	if (facts.finished > 2 * FINISHED_PER_CALL * facts.calls) return previousMs / 1.5;
	return previousMs;
}
