import type { Clock } from '../run/clock';

/** How long a free permit may wait to be granted together with others. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Permits for claims without a known outcome. If there are as many permits as requests that may be under way at once, a
 * process that dies leaves behind no more claims than requests.
 *
 * Half of the permits are granted at a time: the claims of one half share a write, while the requests of the other half
 * are under way. If permits were granted one by one, as by p-limit, each claim would need a sub-execution of its own.
 */
export class ClaimPermits {
	private taken = 0;
	private readonly waiting: Array<() => void> = [];
	private emptied = new AbortController();
	private isWaitingForMore = false;

	/** @param signal aborted at the end of the run, when all waiting claims are let in, so that they fail */
	constructor(
		private readonly most: number,
		private readonly clock: Clock,
		private readonly signal: AbortSignal,
	) {}

	/** Waits for a permit, which must be released by `giveBack`. */
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
		if (waiting.length === 0) this.emptied.abort();
	}

	/** Lets claims in after a while, because requests that hang must not hold up claims for which there is a permit. */
	private async letInLater(): Promise<void> {
		if (this.isWaitingForMore) return;
		this.isWaitingForMore = true;
		this.emptied = new AbortController();
		await this.clock.sleep(LONGEST_WAIT_MS, AbortSignal.any([this.emptied.signal, this.signal]));
		this.isWaitingForMore = false;
		this.letIn(1);
	}
}
