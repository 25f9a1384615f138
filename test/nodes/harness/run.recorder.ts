import { parse, stringify } from 'flatted';
import type { IRun, IRunExecutionData, StructuredChunk } from 'n8n-workflow';
import type { LogLine } from './log.capture';

/** The results of one execution: its row in the database and its messages. */
export class RunRecorder {
	readonly logs: LogLine[] = [];
	readonly chunks: StructuredChunk[] = [];
	stored?: IRun;

	/** n8n stores a cancelled execution at the cancel, and never overwrites it (`requireNotCanceled`). */
	store(run: IRun): void {
		if (this.stored?.status === 'canceled') return;
		run.status = finalStatus(run);
		this.stored = { ...run, data: copyAsStored(run.data) };
	}
}

/** The database stores execution data as flatted JSON, which loses an Error's class and undefined values. */
export function copyAsStored(data: IRunExecutionData): IRunExecutionData {
	return parse(stringify(data));
}

/** Mirrors `determineFinalExecutionStatus` of execution-lifecycle/shared/shared-hook-functions in n8n's `cli` package. */
function finalStatus({ status, waitTill, data }: IRun): IRun['status'] {
	if (waitTill) return 'waiting';
	if (status === 'canceled' || status === 'crashed') return status;
	return status === 'error' || data.resultData.error ? 'error' : 'success';
}
