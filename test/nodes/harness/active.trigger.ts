import { TriggerContext, TriggersAndPollers } from 'n8n-core';
import { Container } from '@n8n/di';
import {
	createRunExecutionData,
	type ExecutionError,
	type INode,
	type INodeExecutionData,
	type ITriggerFunctions,
	type IWorkflowBase,
	type IWorkflowExecuteAdditionalData,
	type Workflow,
} from 'n8n-workflow';
import { until } from '../../until';
import type { CredentialStore } from './credentials.helper';
import type { Executor } from './execution';
import { logContext, type LogLine } from './log.capture';
import type { HarnessRun } from './run.result';

export interface Activation {
	executor: Executor;
	saved: IWorkflowBase;
	workflow: Workflow;
	node: INode;
	credentials: CredentialStore;
	additionalData: IWorkflowExecuteAdditionalData;
}

/**
 * The trigger of an active workflow: each `emit` starts an execution.
 * Mirrors `workflows/triggers/trigger-execution-context.factory` of n8n's `cli` package.
 */
export class ActiveTrigger {
	/** Executions in the order in which they ended. */
	readonly runs: HarnessRun[] = [];
	/** The errors passed to `emitError`. n8n would close the trigger and reactivate it later; the harness does not. */
	readonly fatalErrors: Error[] = [];
	/** The errors passed to `saveFailedExecution`, after which the trigger stays active. */
	readonly failedExecutions: ExecutionError[] = [];
	readonly logs: LogLine[] = [];
	/** n8n has a unique index on these keys for the whole instance. */
	private readonly deduplicationKeys = new Set<string>();
	private closeFunction?: () => Promise<void>;
	private closed = false;

	constructor(private readonly activation: Activation) {}

	async open(): Promise<void> {
		const { workflow, node, additionalData } = this.activation;
		const response = await logContext.run(
			(line) => this.logs.push(line),
			async () =>
				await Container.get(TriggersAndPollers).runTriggerFunction(
					workflow,
					node,
					() =>
						new TriggerContext(
							workflow,
							node,
							additionalData,
							'trigger',
							'activate',
							this.emit,
							this.emitError,
							(error) => void this.failedExecutions.push(error),
						),
					additionalData,
					'trigger',
					'activate',
				),
		);
		this.closeFunction = response?.closeFunction;
	}

	/** Resolves as soon as this many executions have ended in total. */
	async waitForRuns(count: number): Promise<HarnessRun[]> {
		await until(() => this.runs.length >= count, `${count} executions`);
		return this.runs;
	}

	async waitForFatalError(): Promise<Error> {
		return await until(() => this.fatalErrors[0], 'the error');
	}

	/** Deactivates the workflow. */
	async close(): Promise<void> {
		if (this.closed) return;
		this.closed = true;
		await this.closeFunction?.();
	}

	private readonly emit: ITriggerFunctions['emit'] = (data, response, donePromise, deduplicationKey) => {
		const done = this.execute(data, deduplicationKey, response);
		void done.then(
			// n8n skips a duplicate and resolves its promise with undefined.
			(run) => donePromise?.resolve(run?.raw as HarnessRun['raw']),
			(error: unknown) => donePromise?.reject(error instanceof Error ? error : new Error(String(error))),
		);
	};

	private readonly emitError: ITriggerFunctions['emitError'] = (error) => {
		this.fatalErrors.push(error);
		void this.close();
	};

	private async execute(
		main: INodeExecutionData[][],
		key?: string,
		response?: Parameters<ITriggerFunctions['emit']>[1],
	): Promise<HarnessRun | undefined> {
		if (key !== undefined) {
			if (this.deduplicationKeys.has(key)) return undefined;
			this.deduplicationKeys.add(key);
		}
		const { executor, saved, node, credentials } = this.activation;
		const live = executor.start({
			executionId: executor.nextExecutionId(),
			workflow: saved,
			data: createRunExecutionData({
				executionData: { nodeExecutionStack: [{ node, data: { main }, source: null }] },
			}),
			mode: 'trigger',
			credentials,
			onResponse: (given) => response?.resolve(given),
		});
		const run = await live.done;
		this.runs.push(run);
		return run;
	}
}
