import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failRun } from '../errors/nodeError';
import { badInput, type Failure, type Result } from '../errors/failure';
import { systemClock, within, type Clock } from '../time/clock';
import { showHint } from './deliver';

export interface RunFrame {
	readonly clock: Clock;
	/** Aborted when the run ends; aborting it ends the run. */
	readonly ending: AbortController;
	readonly signal: AbortSignal;
	/** Aborted when all work is done; after a stop, later than `signal`, because sent requests are still answered. */
	readonly over: AbortSignal;
	/** Whether the execution was stopped, by a person or by its timeout. */
	readonly cancelled: () => boolean;
	/** Adds a write that the run waits for when it ends. @param hint shown if the write fails */
	readonly writeLast: (write: () => Promise<Result<unknown>>, hint: string) => void;
}

/** How long a stopped run waits for its last writes, once its requests have ended (`OUTLIVES_STOP_MS`). */
const AFTER_CANCEL_MS = 700;

/**
 * The frame of every run: `open` checks options and opens the account, `work` works, and nothing is left running. A stop
 * aborts `signal` at once, so that nothing more is sent; requests that were sent may still be answered; then the last
 * writes are made, for which a stopped run waits only briefly; only then is `over` aborted.
 */
export async function inRunFrame<T>(
	context: IExecuteFunctions,
	open: (frame: RunFrame) => Promise<Result<T>>,
	work: (run: T) => Promise<INodeExecutionData[][]>,
): Promise<INodeExecutionData[][]> {
	if (context.getInputData().length === 0) return [[]];
	const ending = new AbortController();
	const end = (): void => ending.abort();
	const over = new AbortController();
	const cancelSignal = context.getExecutionCancelSignal();
	cancelSignal?.addEventListener('abort', end, { once: true });
	if (cancelSignal?.aborted) end();
	const cancelled = (): boolean => cancelSignal?.aborted ?? false;
	const lastWrites: Array<() => Promise<string | undefined>> = [];
	const writeLast: RunFrame['writeLast'] = (write, hint) =>
		lastWrites.push(async () => {
			const isWritten = write().then(({ ok }) => ok);
			const wait = cancelled() ? within(systemClock, AFTER_CANCEL_MS, isWritten, true) : isWritten;
			return (await wait) ? undefined : hint;
		});
	try {
		const opened = await open({
			clock: systemClock,
			ending,
			signal: ending.signal,
			over: over.signal,
			cancelled,
			writeLast,
		});
		return opened.ok ? await work(opened.value) : failRun(context, opened.failure);
	} finally {
		const hints = await Promise.all(lastWrites.map(async (write) => await write()));
		for (const hint of new Set(hints)) if (hint !== undefined) showHint(context, hint);
		cancelSignal?.removeEventListener('abort', end);
		end();
		over.abort();
	}
}

/**
 * Refuses a batch that is larger than its budget, as a whole and before anything is sent.
 * @param most 0 = no limit
 * @param what e.g. "submit 7 tasks"
 * @param option the label of the option
 */
export function overBudget(count: number, most: number, what: string, option: string): Failure | undefined {
	if (most <= 0 || count <= most) return undefined;
	return badInput(
		`This run would ${what}, more than the ${most} that '${option}' allows`,
		`Nothing was sent. Send fewer items, or raise '${option}' under 'Cost and Speed'.`,
	);
}
