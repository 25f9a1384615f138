import type { Result } from '../errors/failure';
import { BackgroundWriter } from '../time/backgroundWriter';
import type { Clock } from '../time/clock';
import { growingPauseMs, type PauseGrowth } from '../time/growingPause';
import type { Claim } from './claims';
import type { DataTable, TableRow } from './table';

/** How long rows wait to be written together with others. */
const BATCH_MS = 100;
const PAUSES: PauseGrowth = { firstMs: 500, factor: 2, longestMs: 20_000 };

/**
 * Writes the outcomes of a run's claims in the background, in batches, and repeats what fails. The last outcome of a
 * claim replaces all its rows. Nothing overtakes the earlier writes of its claim.
 */
export class ClaimWriter {
	private readonly outcomes = new Map<Claim, TableRow>();
	private readonly leaving = new Set<Claim>();
	/** The keys of rows that were replaced but are still there; they go with the next write, at the latest with the last. */
	private readonly replaced = new Set<string>();
	private isFlushing = false;
	/** What waits for the earlier writes of its claim. */
	private readonly waiting = new Set<Promise<unknown>>();
	private writing: Promise<unknown> | undefined;
	private readonly background: BackgroundWriter;

	constructor(
		private readonly table: DataTable,
		private readonly clock: Clock,
	) {
		this.background = new BackgroundWriter(clock, {
			isBehind: () =>
				this.outcomes.size + this.leaving.size > 0 || (this.isFlushing && this.replaced.size > 0),
			write: async () => await this.writeAll(),
			pauseMs: (failures) => (failures > 0 ? growingPauseMs(PAUSES, failures) : BATCH_MS),
		});
	}

	add(claim: Claim, cells: TableRow): void {
		this.whenQuiet(claim, () => this.outcomes.set(claim, claim.row(cells)));
	}

	/** Removes all rows of the claim. */
	takeBack(claim: Claim): void {
		this.whenQuiet(claim, () => this.leaving.add(claim));
	}

	/**
	 * Adds claims at once, together with the outcomes that wait, so that nothing new begins before the last outcome is in
	 * the table.
	 * @returns all rows of their keys after the write; after a failure, they may have been added all the same
	 */
	async addClaims(claims: readonly Claim[]): Promise<Result<readonly TableRow[]>> {
		await this.writing;
		const before = this.takeOutcomes();
		const rows = [...before.map(([, row]) => row), ...claims.map((claim) => claim.row(claim.cells()))];
		const write = this.table.insertThenRead(rows);
		for (const claim of [...claims, ...before.map(([one]) => one)]) void claim.track(write);
		const added = await write;
		if (!added.ok) this.putBack(before);
		else
			for (const [claim, row] of before) for (const rowKey of claim.goneWith(row)) this.replaced.add(rowKey);
		return added;
	}

	/** Writes what is left now. */
	async flush(): Promise<Result<undefined>> {
		this.isFlushing = true;
		while (this.waiting.size > 0) await Promise.all(this.waiting);
		return await this.background.flush();
	}

	private whenQuiet(claim: Claim, work: () => unknown): void {
		const now = (): void => {
			work();
			this.background.start();
		};
		if (claim.isQuiet) {
			now();
			return;
		}
		const waits = claim.quiet(this.clock).then(() => {
			this.waiting.delete(waits);
			now();
		});
		this.waiting.add(waits);
	}

	private takeOutcomes(): Array<[Claim, TableRow]> {
		const taken = [...this.outcomes];
		this.outcomes.clear();
		return taken;
	}

	private putBack(outcomes: ReadonlyArray<[Claim, TableRow]>): void {
		for (const [claim, row] of outcomes) if (!this.outcomes.has(claim)) this.outcomes.set(claim, row);
		if (outcomes.length > 0) this.background.start();
	}

	private async writeAll(): Promise<Result<undefined>> {
		const outcomes = this.takeOutcomes();
		const gone = outcomes.map(([claim, row]) => claim.goneWith(row));
		const before = [...this.replaced];
		const write = this.replace(
			outcomes.map(([, row]) => row),
			[...gone.flat(), ...before],
		);
		this.writing = write;
		for (const [claim] of outcomes) void claim.track(write);
		const added = await write;
		if (!added.ok) this.putBack(outcomes);
		else {
			outcomes.forEach(([claim], at) => gone[at]?.forEach((rowKey) => claim.standing.delete(rowKey)));
			for (const rowKey of before) this.replaced.delete(rowKey);
		}
		const leaving = [...this.leaving];
		this.leaving.clear();
		const removed = await this.table.remove(
			'holder',
			leaving.map(({ holder }) => holder),
		);
		if (!removed.ok) for (const claim of leaving) this.leaving.add(claim);
		return added.ok ? removed : added;
	}

	private async replace(rows: readonly TableRow[], gone: readonly string[]): Promise<Result<unknown>> {
		return rows.length > 0 ? await this.table.replace(rows, gone) : await this.table.remove('rowKey', gone);
	}
}
