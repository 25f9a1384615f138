import {
	createRunExecutionData,
	mergeRunsPerBranch,
	NodeOperationError,
	OperationalError,
	STARTING_NODE_TYPES,
	SubworkflowOperationError,
	type ExecuteWorkflowData,
	type INode,
} from 'n8n-workflow';
import type { ExecuteWorkflow } from './additional.data';
import type { CredentialStore } from './credentials.helper';
import type { Executor } from './execution';
import type { HarnessRun } from './run.result';
import type { RunRecorder } from './run.recorder';
import { savedWorkflow } from './workflow.json';

/**
 * Creates `executeWorkflow({ code })`: an inline sub-workflow runs as an execution of its own, in mode "integrated",
 * with a context of its own. Mirrors workflow-execute-additional-data of n8n's `cli` package.
 */
export function inlineSubworkflows(
	executor: Executor,
	credentials: CredentialStore,
	recorder: RunRecorder,
): ExecuteWorkflow {
	const executeWorkflow: ExecuteWorkflow = async (info, additionalData, options) => {
		const { code } = info;
		if (!code) throw new OperationalError('The harness stores no workflows: only { code } can be executed');
		// n8n also writes these two into the given object.
		code.id ||= options.parentWorkflowId;
		code.settings ??= options.parentWorkflowSettings;
		const workflow = savedWorkflow(code, executor.types);
		const executionId = executor.nextExecutionId();
		const live = executor.start({
			executionId,
			workflow,
			data: createRunExecutionData({
				executionData: {
					nodeExecutionStack: [
						{
							node: startOf(workflow.nodes),
							data: { main: [options.inputData ?? [{ json: {} }]] },
							metadata: { parentExecution: options.parentExecution },
							source: null,
						},
					],
				},
				parentExecution: options.parentExecution,
			}),
			mode: 'integrated',
			credentials,
			executeWorkflow,
			rootExecutionMode: additionalData.rootExecutionMode ?? options.executionMode,
		});
		const done = live.done.then((run) => {
			recorder.subExecutions.push(run);
			return run;
		});
		if (options.doNotWaitToFinish) return { executionId, data: [null] };
		return resultOf(await done, options.returnLastRunOnly);
	};
	return executeWorkflow;
}

const SUBWORKFLOW_TRIGGER = 'n8n-nodes-base.executeWorkflowTrigger';

function startOf(nodes: INode[]): INode {
	const start =
		nodes.find(({ type }) => type === SUBWORKFLOW_TRIGGER) ??
		nodes.find(({ type }) => STARTING_NODE_TYPES.includes(type));
	if (start) return start;
	throw new SubworkflowOperationError(
		'Missing node to start execution',
		"Please make sure the workflow you're calling contains an Execute Workflow Trigger node",
	);
}

/**
 * Mirrors `buildSubWorkflowOutput` of n8n's `cli` package. Triggers before 1.2 return the last node's last run, later ones
 * all its runs.
 */
function resultOf(run: HarnessRun, returnLastRunOnly = false): ExecuteWorkflowData {
	const { executionId, stored } = run;
	if (stored.status !== 'success' && stored.status !== 'waiting') throw failureOf(run);
	const { lastNodeExecuted, runData } = stored.data.resultData;
	const runs = [...((lastNodeExecuted && runData[lastNodeExecuted]) || [])].sort(
		(a, b) => a.executionIndex - b.executionIndex,
	);
	const trigger = run.origin.workflow.nodes.find(({ type }) => type === SUBWORKFLOW_TRIGGER);
	const lastOnly =
		returnLastRunOnly ||
		((trigger?.typeVersion ?? 1) < 1.2 && trigger?.parameters.returnOutput !== 'allRuns');
	const data = lastOnly ? (runs.at(-1)?.data?.main ?? [null]) : mergeRunsPerBranch(runs);
	return { executionId, data, waitTill: stored.waitTill };
}

/** The Error for the caller of a failed sub-workflow. Mirrors utils/object-to-error of n8n's `cli` package. */
function failureOf({ executionId, error, origin }: HarnessRun): Error {
	const { id: workflowId, nodes } = origin.workflow;
	const cause = new Error(error?.message ?? 'An error occurred');
	const name = error && 'node' in error ? error.node?.name : undefined;
	const node = nodes.find((candidate) => candidate.name === name);
	const { description, stack } = error ?? {};
	const fields = { executionId, workflowId, ...(description && { description }), ...(stack && { stack }) };
	return Object.assign(node ? new NodeOperationError(node, cause) : cause, fields);
}
