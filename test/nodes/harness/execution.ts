import { StorageConfig, WorkflowExecute } from 'n8n-core';
import { Container } from '@n8n/di';
import {
	createRunExecutionData,
	type ExecutionError,
	type IRun,
	type IRunExecutionData,
	type IWorkflowBase,
	type IWorkflowExecuteAdditionalData,
	type Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import { additionalDataFor, type AdditionalDataOptions, type ExecuteWorkflow } from './additional.data';
import { CredentialsHelper, type CredentialStore } from './credentials.helper';
import { noDataTables } from './dataTables';
import type { Host } from './host';
import { logContext } from './log.capture';
import { HarnessRun } from './run.result';
import { copyAsStored, RunRecorder } from './run.recorder';
import type { TypeRegistry } from './type.registry';
import { buildWorkflow } from './workflow.json';

/** A running execution. */
export interface LiveRun {
	readonly executionId: string;
	/** Stops it like "Stop" in the editor, the workflow's timeout or a shutdown of n8n. */
	cancel(): void;
	/** The log lines and chunks so far. */
	readonly said: Pick<RunRecorder, 'logs' | 'chunks'>;
	/** Settles when the node has ended as well, for which n8n may not wait after a cancel. */
	readonly done: Promise<HarnessRun>;
}

export interface ExecutionRequest {
	executionId: string;
	workflow: IWorkflowBase;
	data: IRunExecutionData;
	mode: WorkflowExecuteMode;
	credentials: CredentialStore;
	executeWorkflow?: ExecuteWorkflow;
	streaming?: boolean;
	retryOf?: string;
	restartExecutionId?: string;
	onResponse?: AdditionalDataOptions['onResponse'];
}

/** Mirrors `runMainProcess` of workflow-runner and `stopExecution` of active-executions in n8n's `cli` package. */
export class Executor {
	private readonly live = new Set<LiveRun>();
	private lastId = 0;

	constructor(
		readonly types: TypeRegistry,
		readonly host: Host,
	) {}

	nextExecutionId(): string {
		this.lastId += 1;
		return String(this.lastId);
	}

	start(request: ExecutionRequest): LiveRun {
		const { executionId, mode, workflow, data, credentials, executeWorkflow = noDataTables } = request;
		const recorder = new RunRecorder();
		const additionalData = additionalDataFor({
			...request,
			recorder,
			credentialsHelper: new CredentialsHelper(this.types, credentials),
			executeWorkflow,
		});
		const execute = new WorkflowExecute(additionalData, mode, data, Container.get(StorageConfig).modeTag);
		const origin = { executionId, workflow, mode, credentials, executeWorkflow };
		const finish = (raw: IRun): HarnessRun =>
			new HarnessRun(origin, recorder, recorder.stored ?? raw, raw, this.host.binaryData);
		const begin = () => execute.processRunExecutionData(buildWorkflow(workflow, this.types));
		let execution: ReturnType<typeof begin>;
		try {
			execution = logContext.run((line) => recorder.logs.push(line), begin);
		} catch (error) {
			// A node has issues, such as an empty required parameter: n8n refuses the workflow before anything runs.
			return {
				executionId,
				said: recorder,
				cancel() {},
				done: Promise.resolve(finish(refusedRun(mode, error))),
			};
		}
		const done = (async () => finish(await execution))();
		const live: LiveRun = { executionId, said: recorder, cancel: () => execution.cancel(), done };
		this.live.add(live);
		void done.finally(() => this.live.delete(live)).catch(() => {}); // the caller learns of a failure from `done`
		return live;
	}

	/** The data for a trigger of an active workflow, which runs outside any execution. */
	outsideExecutions(workflow: IWorkflowBase, credentials: CredentialStore): IWorkflowExecuteAdditionalData {
		const recorder = new RunRecorder();
		const data = additionalDataFor({
			executionId: '',
			workflow,
			mode: 'trigger',
			recorder,
			credentialsHelper: new CredentialsHelper(this.types, credentials),
			executeWorkflow: noDataTables,
		});
		return { ...data, executionId: undefined, hooks: undefined };
	}

	/** Ends everything that a test file started. */
	async stopAll(): Promise<void> {
		const running = [...this.live];
		for (const live of running) live.cancel();
		await Promise.allSettled(running.map(async ({ done }) => await done));
	}
}

/**
 * A copy of the stored execution for `retry`.
 * Mirrors `retry` of executions/execution.service in n8n's `cli` package; `edited` is its `loadWorkflow: true`.
 */
export function dataForRetry(run: HarnessRun, edited?: Workflow): IRunExecutionData {
	if (run.status === 'success') throw new Error('The execution succeeded, so it cannot be retried.');
	const data = copyAsStored(run.stored.data);
	if (!data.executionData)
		throw new Error('The execution was aborted before starting, so it cannot be retried');
	const { lastNodeExecuted, runData } = data.resultData;
	if (lastNodeExecuted) {
		delete data.resultData.error;
		const runs = runData[lastNodeExecuted];
		if (runs?.at(-1)?.error !== undefined) runs.pop();
	}
	for (const entry of edited ? data.executionData.nodeExecutionStack : []) {
		const node = edited?.getNode(entry.node.name);
		if (!node) throw new Error(`Could not find the node "${entry.node.name}" in workflow.`);
		entry.node = structuredClone(node);
	}
	return data;
}

/** Mirrors `startExecution` of wait-tracker in n8n's `cli` package, which passes on the stored data unchanged. */
export function dataForResume(run: HarnessRun): IRunExecutionData {
	if (run.status !== 'waiting') throw new Error(`The execution is "${run.status}", not "waiting"`);
	return copyAsStored(run.stored.data);
}

/** Mirrors executions/failed-run-factory of n8n's `cli` package. */
function refusedRun(mode: WorkflowExecuteMode, thrown: unknown): IRun {
	if (!(thrown instanceof Error)) throw thrown;
	// n8n stores errors of any class here.
	const fields = { message: thrown.message, stack: thrown.stack };
	const error = Object.assign({}, thrown, fields) as unknown as ExecutionError;
	return {
		data: createRunExecutionData({ resultData: { error, runData: {} }, executionData: null }),
		mode,
		startedAt: new Date(),
		stoppedAt: new Date(),
		status: 'error',
		storedAt: 'db',
	};
}
