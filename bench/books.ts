// Evaluates what the platform's books say about the calls of a batch.
import type { Books, PollEntry, TaskEntry } from '../test/platform/books';

/** The calls of one poll arrive within this time. */
const ONE_POLL_MS = 300;
/** How long after its submit arrived a task counts as known to the caller. */
const KNOWN_AFTER_MS = 500;
/** The caller polls a second apart, but two polls may arrive a little closer to each other. */
const CLOSE_MS = 950;
/** With up to this many tasks left, a socket's message is followed by a poll at once. */
const TASKS_WITH_INSTANT_POLLS = 4;
export const IDS_PER_CALL = 100;

/** All calls that poll at one moment. */
interface Poll {
	readonly atMs: number;
	readonly calls: number;
	readonly ids: ReadonlySet<string>;
	readonly unfinished: number;
}

/** The number of calls to the platform, without downloads and sockets. */
export function callsIn({ requests }: Books): number {
	return requests.submit + requests.info + requests.upload + requests.other;
}

/** The number of one customer's calls, if several customers call in parallel. */
export function callsOf(owner: string, { tasks, polls }: Books): number {
	return (
		tasks.filter((task) => task.owner === owner).length + polls.filter((poll) => poll.owner === owner).length
	);
}

export function pollsIn(entries: readonly PollEntry[]): Poll[] {
	const polls: Array<Poll & { calls: number; ids: Set<string> }> = [];
	for (const { atMs, ids, unfinished } of entries) {
		const last = polls.at(-1);
		const belongs = last && atMs - last.atMs < ONE_POLL_MS && ids.every((id) => !last.ids.has(id));
		if (last && belongs) {
			last.calls++;
			for (const id of ids) last.ids.add(id);
		} else {
			polls.push({ atMs, calls: 1, ids: new Set(ids), unfinished });
		}
	}
	return polls;
}

export interface PollingFaults {
	/** Polls that took more calls than ⌈n/100⌉. */
	readonly wasteful: number;
	/** Tasks that a poll left out although they were running and known. */
	readonly leftOut: number;
	/** Polls of more than four tasks, one of them running, that came less than a second after the last one. */
	readonly hasty: number;
}

export function pollingFaults({ polls: entries, tasks }: Books): PollingFaults {
	const polls = pollsIn(entries);
	const hasty = polls.filter((poll, index) => {
		const last = polls[index - 1];
		const isInstant = poll.ids.size <= TASKS_WITH_INSTANT_POLLS || poll.unfinished === 0;
		return last && poll.atMs - last.atMs < CLOSE_MS && !isInstant;
	}).length;
	const wasteful = polls.filter(({ calls, ids }) => calls > Math.ceil(ids.size / IDS_PER_CALL)).length;
	let leftOut = 0;
	for (const { atMs, ids } of polls) {
		leftOut += tasks.filter((task) => runsAt(task, atMs) && !ids.has(task.taskId)).length;
	}
	return { wasteful, leftOut, hasty };
}

function runsAt({ answer, submittedAtMs, finishedAtMs }: TaskEntry, atMs: number): boolean {
	const isKnown = answer === 'whole' && submittedAtMs < atMs - KNOWN_AFTER_MS;
	// Requests for links and files of a finished task do not belong to a poll.
	return isKnown && (finishedAtMs === null || finishedAtMs > atMs);
}
