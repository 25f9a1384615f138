import { ok, type Result } from '../errors/failure';
import type { Clock } from './clock';

interface BackgroundWork {
	isBehind(): boolean;
	/** @param isLast whether no other write follows, so that nothing may be left for later */
	write(isLast: boolean): Promise<Result<undefined>>;
	/** How long to wait for more to write. @param failures the number of consecutive failures before this write */
	pauseMs(failures: number): number;
}

/**
 * Writes in the background, one write after the other, and retries a failed one until the flush. `lastWrite` ends after
 * all writes before it; `working` is set while `run` still has a pause or a write to make.
 */
export class BackgroundWriter {
	private working: Promise<void> | undefined;
	private lastWrite: Promise<Result<undefined>> | undefined;
	private flushNow = new AbortController();
	private isFlushed = false;
	private failures = 0;

	constructor(
		private readonly clock: Clock,
		private readonly work: BackgroundWork,
	) {}

	start(): void {
		this.working ??= this.run();
	}

	/** Writes without a pause; if the write fails before the flush, the background tries again. */
	async now(): Promise<Result<undefined>> {
		const written = await this.writeInTurn(false);
		if (!written.ok && !this.isFlushed) this.start();
		return written;
	}

	/**
	 * Writes what is left without further delay, and tries once more if that fails, because a later run must know what
	 * this one has spent.
	 * @returns the failure if something could not be written
	 */
	async flush(): Promise<Result<undefined>> {
		const written = await this.writeRest();
		return written.ok ? written : await this.writeRest();
	}

	/** Waits for writes in progress first, because what they have taken is not written yet. */
	private async writeRest(): Promise<Result<undefined>> {
		this.isFlushed = true;
		this.flushNow.abort();
		await this.working;
		await this.lastWrite;
		return this.work.isBehind() ? await this.writeInTurn(true) : ok(undefined);
	}

	private async run(): Promise<void> {
		const { signal } = (this.flushNow = new AbortController());
		do {
			await this.clock.sleep(this.work.pauseMs(this.failures), signal);
			if (signal.aborted) break;
			const written = await this.writeInTurn(false);
			// After the flush a write is tried only once, because no caller waits for it.
			if (!written.ok && this.isFlushed) break;
		} while (this.work.isBehind());
		this.working = undefined;
	}

	/** Waits for the previous write, because writes that arrive during the flush must not overtake it. */
	private async writeInTurn(isLast: boolean): Promise<Result<undefined>> {
		const before = this.lastWrite;
		const write = async (): Promise<Result<undefined>> => {
			await before;
			const done = await this.work.write(isLast);
			this.failures = done.ok ? 0 : this.failures + 1;
			return done;
		};
		return await (this.lastWrite = write());
	}
}
