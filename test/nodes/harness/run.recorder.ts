import { parse, stringify } from 'flatted';
import type { IDataObject, IRun, IRunExecutionData, StructuredChunk } from 'n8n-workflow';
import type { LogLine } from './log.capture';
import type { HarnessRun } from './run.result';

/** What one execution leaves behind: its row in the database and its messages. */
export class RunRecorder {
	readonly logs: LogLine[] = [];
	readonly chunks: StructuredChunk[] = [];
	readonly responses: unknown[] = [];
	readonly subExecutions: HarnessRun[] = [];
	stored?: IRun;
	staticData?: IDataObject;

	/** n8n writes a cancelled execution when it is cancelled and lets nothing overwrite it (`requireNotCanceled`). */
	store(run: IRun, newStaticData?: IDataObject): void {
		if (this.stored?.status === 'canceled') return;
		run.status = finalStatus(run);
		this.stored = { ...run, data: copyAsStored(run.data) };
		if (newStaticData && run.mode !== 'manual') this.staticData = structuredClone({ ...newStaticData });
	}
}

/** The database keeps execution data as flatted JSON: what is not JSON (an Error's class, undefined) is gone. */
export function copyAsStored(data: IRunExecutionData): IRunExecutionData {
	return parse(stringify(data));
}

/** cli: execution-lifecycle/shared/shared-hook-functions.js, determineFinalExecutionStatus */
function finalStatus({ status, waitTill, data }: IRun): IRun['status'] {
	if (waitTill) return 'waiting';
	if (status === 'canceled' || status === 'crashed') return status;
	return status === 'error' || data.resultData.error ? 'error' : 'success';
}
