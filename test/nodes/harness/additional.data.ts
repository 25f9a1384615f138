import { Container } from '@n8n/di';
import { ExecutionLifecycleHooks, ExternalSecretsProxy } from 'n8n-core';
import {
	UnexpectedError,
	type IExecuteResponsePromiseData,
	type IWorkflowBase,
	type IWorkflowExecuteAdditionalData,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import type { CredentialsHelper } from './credentials.helper';
import type { RunRecorder } from './run.recorder';

export type ExecuteWorkflow = IWorkflowExecuteAdditionalData['executeWorkflow'];

export interface AdditionalDataOptions {
	executionId: string;
	workflow: IWorkflowBase;
	mode: WorkflowExecuteMode;
	credentialsHelper: CredentialsHelper;
	recorder: RunRecorder;
	/** Called with a response of the execution, for which webhooks wait. */
	onResponse?: (response: IExecuteResponsePromiseData) => void;
	executeWorkflow: ExecuteWorkflow;
	streaming?: boolean;
	retryOf?: string;
	/** Set if a suspended execution continues with its old ID. */
	restartExecutionId?: string;
}

const BASE_URL = 'http://localhost:5678';

/** Mirrors `getBase` of workflow-execute-additional-data in n8n's `cli` package, and what workflow-runner adds to it. */
export function additionalDataFor(options: AdditionalDataOptions): IWorkflowExecuteAdditionalData {
	const { executionId, workflow, recorder } = options;
	const absent = (what: string) => async () => {
		throw new UnexpectedError(`The harness has no ${what}`);
	};
	return {
		currentNodeExecutionIndex: 0,
		credentialsHelper: options.credentialsHelper,
		executeWorkflow: options.executeWorkflow,
		executionId,
		restartExecutionId: options.restartExecutionId,
		streamingEnabled: options.streaming,
		hooks: lifecycleHooks(options),
		restApiUrl: `${BASE_URL}/rest`,
		instanceBaseUrl: `${BASE_URL}/`,
		formBaseUrl: `${BASE_URL}/form`,
		formWaitingBaseUrl: `${BASE_URL}/form-waiting`,
		formTestBaseUrl: `${BASE_URL}/form-test`,
		webhookBaseUrl: `${BASE_URL}/webhook`,
		webhookWaitingBaseUrl: `${BASE_URL}/webhook-waiting`,
		webhookTestBaseUrl: `${BASE_URL}/webhook-test`,
		mcpBaseUrl: `${BASE_URL}/mcp`,
		mcpTestBaseUrl: `${BASE_URL}/mcp-test`,
		userId: 'harness-user',
		workflowId: workflow.id,
		projectId: 'harness-project',
		variables: {},
		workflowSettings: workflow.settings,
		externalSecretsProxy: Container.get(ExternalSecretsProxy),
		setExecutionStatus: (status) =>
			recorder.logs.push({ level: 'debug', message: `Execution ${executionId} is now "${status}"` }),
		sendDataToUI: (type, data) =>
			recorder.logs.push({ level: 'ui', message: messageText(data), metadata: { type, data } }),
		getRunExecutionData: absent('stored executions'),
		getRuntimeCredential: absent('runtime credentials'),
		startRunnerTask: absent('task runner'),
		logAiEvent: (eventName, payload) =>
			recorder.logs.push({ level: 'debug', message: eventName, metadata: payload }),
	};
}

function lifecycleHooks(options: AdditionalDataOptions): ExecutionLifecycleHooks {
	const { mode, executionId, workflow, retryOf, recorder, streaming } = options;
	const hooks = new ExecutionLifecycleHooks(mode, executionId, workflow, retryOf);
	hooks.addHandler('workflowExecuteAfter', (run) => recorder.store(run));
	hooks.addHandler('sendResponse', (response) => options.onResponse?.(response));
	// A handler for chunks is what makes `isStreaming()` true, so an ordinary run must not have one.
	if (streaming) hooks.addHandler('sendChunk', (chunk) => void recorder.chunks.push(chunk));
	return hooks;
}

/** The message as the editor prints it: `[Node: "…"] message …`. */
function messageText(data: unknown): string {
	if (typeof data !== 'object' || data === null || !('messages' in data)) return JSON.stringify(data);
	const { messages } = data;
	if (!Array.isArray(messages)) return JSON.stringify(data);
	return messages
		.map((message) => (typeof message === 'string' ? message : JSON.stringify(message)))
		.join(' ');
}
