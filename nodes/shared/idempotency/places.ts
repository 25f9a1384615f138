import type { Clock } from '../run/clock';

/** How long a free place waits at most to be given out together with others. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Places for claims whose outcome is not known yet. With as many places as requests under way, a process that dies
 * leaves no more claims behind than requests.
 *
 * They are given out by halves: the claims of such a batch go in one write, while the other half keeps the line busy.
 * One by one, as p-limit gives them, they would take a sub-execution for each answer that comes in by itself.
 */
export class ClaimPlaces {
	private taken = 0;
	private readonly waiting: Array<() => void> = [];
	private hurry = new AbortController();
	private isWaitingForMore = false;

	/** @param signal lets everybody in at once, to see that the run has ended */
	constructor(
		private readonly most: number,
		private readonly clock: Clock,
		private readonly signal: AbortSignal,
	) {}

	/** Waits for a place, which must be given back. */
	async take(): Promise<void> {
		await new Promise<void>((enter) => {
			this.waiting.push(enter);
			this.letIn(this.most / 2);
		});
	}

	readonly giveBack = (): void => {
		this.taken--;
		this.letIn(this.most / 2);
	};

	private letIn(atLeast: number): void {
		const { waiting } = this;
		const free = this.signal.aborted ? waiting.length : Math.max(0, this.most - this.taken);
		if (free < Math.min(atLeast, waiting.length)) {
			void this.letInLater();
			return;
		}
		for (const enter of waiting.splice(0, free)) {
			this.taken++;
			enter();
		}
		if (waiting.length === 0) this.hurry.abort();
	}

	/** Requests that hang must not hold up claims that have a place. */
	private async letInLater(): Promise<void> {
		if (this.isWaitingForMore) return;
		this.isWaitingForMore = true;
		this.hurry = new AbortController();
		await this.clock.sleep(LONGEST_WAIT_MS, AbortSignal.any([this.hurry.signal, this.signal]));
		this.isWaitingForMore = false;
		this.letIn(1);
	}
}
