import type { BinaryDataService } from 'n8n-core';
import {
	NodeConnectionTypes,
	type ExecutionError,
	type ExecutionStatus,
	type IDataObject,
	type INodeExecutionData,
	type IRun,
	type ITaskData,
	type IWorkflowBase,
	type StructuredChunk,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import type { ExecuteWorkflow } from './additional.data';
import type { CredentialStore } from './credentials.helper';
import type { LogLine } from './log.capture';
import type { RunRecorder } from './run.recorder';
import { NODE_NAME } from './workflow.json';

/** The input of an execution, which retry and resume need again. */
export interface RunOrigin {
	executionId: string;
	workflow: IWorkflowBase;
	credentials: CredentialStore;
	mode: WorkflowExecuteMode;
	executeWorkflow?: ExecuteWorkflow;
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

	/** The items of one output of the node under test. */
	items(output = 0): INodeExecutionData[] {
		return this.output(NODE_NAME, output);
	}

	/** The JSON of the items of one output of the node under test. */
	jsons(output = 0): IDataObject[] {
		return this.items(output).map(({ json }) => json);
	}

	/** The items of one output of a node's run; by default, its last run. */
	output(nodeName: string, outputIndex = 0, runIndex?: number): INodeExecutionData[] {
		const run = this.task(nodeName, runIndex);
		return run?.data?.[NodeConnectionTypes.Main]?.[outputIndex] ?? [];
	}

	runs(nodeName: string): ITaskData[] {
		return this.stored.data.resultData.runData[nodeName] ?? [];
	}

	/** The texts of the hints of the node under test. */
	hints(): string[] {
		return (this.task(NODE_NAME)?.hints ?? []).map(({ message }) => message);
	}

	/** The lines of n8n's logger and the messages to the UI, in order. */
	get logs(): LogLine[] {
		return this.recorder.logs;
	}

	/** The chunks sent with `sendChunk` in a streaming run (`streaming: true`). */
	get chunks(): StructuredChunk[] {
		return this.recorder.chunks;
	}

	/** What `getContext` leaves in the execution, as text. */
	get remembered(): string {
		return JSON.stringify(this.stored.data.executionData?.contextData ?? {});
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
