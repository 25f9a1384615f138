import type { Clock } from '../run/clock';

/** The longest that a free place waits for others to be given out with it. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Places for claims of which nobody knows yet what came of them. A process that dies leaves no more of them than
 * requests under way, where there are as many places.
 *
 * They are given out by halves: the claims of such a wave go in one write, while the other half keeps the line busy.
 */
export class ClaimPlaces {
	private taken = 0;
	private readonly waiting: Array<() => void> = [];
	private settled = new AbortController();
	private isWaitingLonger = false;

	/** @param signal lets all who wait in at once, to see for themselves that the run has ended */
	constructor(
		private readonly most: number,
		private readonly clock: Clock,
		private readonly signal: AbortSignal,
	) {}

	/** Comes to its end when there is a place, which must be given back. */
	async take(): Promise<void> {
		if (this.signal.aborted) {
			this.taken++;
			return;
		}
		const place = Promise.withResolvers<undefined>();
		this.waiting.push(() => {
			place.resolve(undefined);
		});
		this.letIn(this.most / 2);
		await place.promise;
	}

	giveBack(): void {
		this.taken--;
		this.letIn(this.most / 2);
	}

	private letIn(atLeast: number): void {
		const free = this.signal.aborted ? this.waiting.length : Math.max(0, this.most - this.taken);
		if (this.waiting.length > 0 && free < Math.min(atLeast, this.waiting.length)) void this.letInLater();
		else for (const enter of this.waiting.splice(0, free)) this.enter(enter);
		if (this.waiting.length === 0) this.settled.abort();
	}

	private enter(enter: () => void): void {
		this.taken++;
		enter();
	}

	/** Requests that hang must not hold up what there is a place for. */
	private async letInLater(): Promise<void> {
		if (this.isWaitingLonger) return;
		this.isWaitingLonger = true;
		this.settled = new AbortController();
		await this.clock.sleep(LONGEST_WAIT_MS, AbortSignal.any([this.settled.signal, this.signal]));
		this.isWaitingLonger = false;
		this.letIn(1);
	}
}
