import type { DataTable } from '../shared/dataTable/table';
import type { Clock } from '../shared/run/clock';
import { CLAIM_LIFE_MS } from './sessionRows';

/** Three signs may be lost before others take a claim for one of the dead. */
const RENEW_MS = CLAIM_LIFE_MS / 4;
/** From then on others may take a claim for one of the dead. */
const LATE_MS = (CLAIM_LIFE_MS * 3) / 4;

/** By both clocks: the steady one stands still while a machine sleeps. */
interface Since {
	readonly ms: number;
	readonly wallMs: number;
	/** It once gave no sign for so long that others may have gone ahead, whatever signs came later. */
	readonly wasLate: boolean;
}

/** Gives signs of life for the rows that a run holds. */
export class RowKeeper {
	/** When each row was last alive. */
	private readonly held = new Map<string, Since>();
	private idle = new AbortController();
	private lastSign: Promise<unknown> = Promise.resolve();

	constructor(
		private readonly table: DataTable,
		private readonly clock: Clock,
	) {}

	hold(rowKey: string): void {
		const isFirst = this.held.size === 0;
		this.held.set(rowKey, { ...this.time(), wasLate: false });
		if (isFirst) void this.keep();
	}

	drop(rowKey: string): void {
		this.held.delete(rowKey);
		if (this.held.size === 0) this.idle.abort();
	}

	/** Whether a row that is held may have looked dead to others. */
	isLate(rowKey: string): boolean {
		const since = this.held.get(rowKey);
		if (!since) return false;
		const { ms, wallMs } = this.time();
		return since.wasLate || Math.max(ms - since.ms, wallMs - since.wallMs) > LATE_MS;
	}

	/** Nothing is written any more once this has ended and no row is held. */
	async flush(): Promise<void> {
		await this.lastSign;
	}

	private async keep(): Promise<void> {
		const idle = new AbortController();
		this.idle = idle;
		const isIdle = (): boolean => idle.signal.aborted;
		for (;;) {
			await this.clock.sleep(RENEW_MS, idle.signal);
			if (isIdle()) return;
			const rowKeys = [...this.held.keys()];
			const since = this.time();
			// Nothing but the sign: a row may have become that of a session meanwhile.
			const lastUsedAt = new Date(since.wallMs).toISOString();
			const sign = this.table.update(
				'rowKey',
				rowKeys.map((rowKey) => ({ rowKey, lastUsedAt })),
			);
			this.lastSign = sign;
			const kept = await sign;
			if (isIdle()) return;
			for (const rowKey of kept.ok ? rowKeys : []) {
				if (this.held.has(rowKey)) this.held.set(rowKey, { ...since, wasLate: this.isLate(rowKey) });
			}
		}
	}

	private time(): Omit<Since, 'wasLate'> {
		return { ms: this.clock.now(), wallMs: this.clock.wallNow() };
	}
}
