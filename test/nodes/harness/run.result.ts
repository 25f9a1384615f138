import type { BinaryDataService } from 'n8n-core';
import {
	NodeConnectionTypes,
	type ExecutionError,
	type ExecutionStatus,
	type IDataObject,
	type IExecuteContextData,
	type INodeExecutionData,
	type IRun,
	type ITaskData,
	type IWorkflowBase,
	type NodeExecutionHint,
	type StructuredChunk,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import type { CredentialStore } from './credentials.helper';
import type { LogLine } from './log.capture';
import type { RunRecorder } from './run.recorder';

/** The input of an execution, which retry and resume need again. */
export interface RunOrigin {
	executionId: string;
	workflow: IWorkflowBase;
	credentials: CredentialStore;
	mode: WorkflowExecuteMode;
}

/** A finished (or suspended) execution as n8n's execution list would show it. */
export class HarnessRun {
	constructor(
		readonly origin: RunOrigin,
		private readonly recorder: RunRecorder,
		/** The row in n8n's database. After a cancel, late results are only in `raw`. */
		readonly stored: IRun,
		/** The result of WorkflowExecute, in memory. */
		readonly raw: IRun,
		private readonly binaryData: BinaryDataService,
	) {}

	get executionId(): string {
		return this.origin.executionId;
	}

	get status(): ExecutionStatus {
		return this.stored.status;
	}

	/** The error that ended the run, as plain fields that n8n stores and shows, not as an instance of its class. */
	get error(): ExecutionError | undefined {
		return this.stored.data.resultData.error;
	}

	/** The items of one output of a node's run; by default, its last run. */
	output(nodeName: string, outputIndex = 0, runIndex?: number): INodeExecutionData[] {
		const run = this.task(nodeName, runIndex);
		return run?.data?.[NodeConnectionTypes.Main]?.[outputIndex] ?? [];
	}

	runs(nodeName: string): ITaskData[] {
		return this.stored.data.resultData.runData[nodeName] ?? [];
	}

	hints(nodeName: string, runIndex?: number): NodeExecutionHint[] {
		return this.task(nodeName, runIndex)?.hints ?? [];
	}

	/** The lines of n8n's logger and the messages to the UI, in order. */
	get logs(): LogLine[] {
		return this.recorder.logs;
	}

	/** The chunks sent with `sendChunk` in a streaming run (`streaming: true`). */
	get chunks(): StructuredChunk[] {
		return this.recorder.chunks;
	}

	/** The arguments of `sendResponse`. */
	get responses(): unknown[] {
		return this.recorder.responses;
	}

	/** Executions that the node started with `executeWorkflow({ code })`. */
	get subExecutions(): HarnessRun[] {
		return this.recorder.subExecutions;
	}

	/** The workflow's static data if the run changed it; n8n keeps it only in production modes. */
	get staticData(): IDataObject | undefined {
		return this.recorder.staticData;
	}

	/** The contexts from `getContext`, by "flow" and "node:<name>". */
	get contextData(): IExecuteContextData {
		return this.stored.data.executionData?.contextData ?? {};
	}

	async binary(item: INodeExecutionData | undefined, property = 'data'): Promise<Buffer> {
		const binary = item?.binary?.[property];
		if (!binary) throw new Error(`The item has no binary property "${property}"`);
		return await this.binaryData.getAsBuffer(binary);
	}

	private task(nodeName: string, runIndex?: number): ITaskData | undefined {
		return this.runs(nodeName).at(runIndex ?? -1);
	}
}
