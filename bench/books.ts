// What the platform's books say of the calls of a batch.
import type { Books, PollEntry, TaskEntry } from '../test/platform/books';

/** The calls of one look arrive within this. */
const ONE_LOOK_MS = 300;
/** A task counts as known to the caller so long after its submit arrived. */
const KNOWN_AFTER_MS = 500;
/** Looks are a second apart at the caller; on their way they may gain on each other a little. */
const CLOSE_MS = 950;
/** Up to this many running tasks a socket's word is followed by a look at once. */
const TASKS_WITH_INSTANT_LOOKS = 4;
export const IDS_PER_CALL = 100;

/** All polls that ask at one moment. */
interface Look {
	readonly atMs: number;
	readonly calls: number;
	readonly ids: ReadonlySet<string>;
	readonly unfinished: number;
}

/** Calls to the platform, downloads and sockets aside. */
export function callsIn({ requests }: Books): number {
	return requests.submit + requests.info + requests.upload + requests.other;
}

/** Calls of one customer where several go beside each other. */
export function callsOf(owner: string, { tasks, polls }: Books): number {
	return (
		tasks.filter((task) => task.owner === owner).length + polls.filter((poll) => poll.owner === owner).length
	);
}

export function looksIn(polls: readonly PollEntry[]): Look[] {
	const looks: Array<Look & { calls: number; ids: Set<string> }> = [];
	for (const { atMs, ids, unfinished } of polls) {
		const last = looks.at(-1);
		const belongs = last && atMs - last.atMs < ONE_LOOK_MS && ids.every((id) => !last.ids.has(id));
		if (last && belongs) {
			last.calls++;
			for (const id of ids) last.ids.add(id);
		} else {
			looks.push({ atMs, calls: 1, ids: new Set(ids), unfinished });
		}
	}
	return looks;
}

export interface PollingFaults {
	/** Looks that took more calls than ⌈n/100⌉. */
	readonly wasteful: number;
	/** Tasks that a look left out although they ran and were known. */
	readonly leftOut: number;
	/** Looks that came sooner than a second after the last one while more than four tasks ran. */
	readonly hasty: number;
}

export function pollingFaults({ polls, tasks }: Books): PollingFaults {
	const looks = looksIn(polls);
	const hasty = looks.filter((look, index) => {
		const last = looks[index - 1];
		return last && look.atMs - last.atMs < CLOSE_MS && look.ids.size > TASKS_WITH_INSTANT_LOOKS;
	}).length;
	const wasteful = looks.filter(({ calls, ids }) => calls > Math.ceil(ids.size / IDS_PER_CALL)).length;
	let leftOut = 0;
	for (const { atMs, ids } of looks) {
		leftOut += tasks.filter((task) => runsAt(task, atMs) && !ids.has(task.taskId)).length;
	}
	return { wasteful, leftOut, hasty };
}

function runsAt({ answer, submittedAtMs, finishedAtMs }: TaskEntry, atMs: number): boolean {
	const isKnown = answer === 'whole' && submittedAtMs < atMs - KNOWN_AFTER_MS;
	// Links and downloads of a task that is done are no part of a look.
	return isKnown && (finishedAtMs === null || finishedAtMs > atMs);
}
