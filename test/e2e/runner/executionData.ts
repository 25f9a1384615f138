import { parse } from 'flatted';

export interface BinaryFile {
	mimeType: string;
	fileName?: string;
	fileExtension?: string;
	fileSize?: string;
	/** The ID under which n8n stores the bytes; without it they are in `data`, in base64. */
	id?: string;
	data: string;
}

export interface Item {
	json: Record<string, unknown>;
	binary?: Record<string, BinaryFile>;
	pairedItem?: unknown;
}

export interface RunError {
	name?: string;
	message: string;
	description?: string | null;
	context?: Record<string, unknown>;
	node?: { name: string };
}

export interface NodeRun {
	executionStatus?: string;
	executionTime?: number;
	error?: RunError;
	hints?: Array<{ message: string }>;
	data?: Record<string, Array<Item[] | null> | undefined>;
}

export interface RunData {
	resultData: {
		runData: Record<string, NodeRun[] | undefined>;
		error?: RunError;
		lastNodeExecuted?: string;
	};
	executionData?: { contextData?: Record<string, unknown> };
}

export type ExecutionStatus =
	'new' | 'running' | 'waiting' | 'success' | 'error' | 'canceled' | 'crashed' | 'unknown';

export interface Execution {
	id: string;
	status: ExecutionStatus;
	mode: string;
	workflowId: string;
	startedAt: string | null;
	stoppedAt: string | null;
	waitTill: string | null;
	/** The run data, which lists do not contain. */
	data?: RunData;
}

/** Reads run data, which n8n stores and sends in flatted form: one JSON list in which objects refer to each other. */
export function readExecution(raw: Omit<Execution, 'data'> & { data?: string }): Execution {
	const { data, ...execution } = raw;
	return data === undefined ? execution : { ...execution, data: parse(data) as RunData };
}

/** The output items of a node, of all its runs together. */
export function outputItems(execution: Execution, nodeName: string, output = 0): Item[] {
	const runs = execution.data?.resultData.runData[nodeName] ?? [];
	return runs.flatMap((run) => run.data?.main?.[output] ?? []);
}

/** Why an execution failed, as a person reads it in the editor. */
export function failureOf(execution: Execution): string | undefined {
	const error = execution.data?.resultData.error;
	if (error === undefined) return undefined;
	const where = error.node ? `${error.node.name}: ` : '';
	const advice = error.description ? ` (${error.description})` : '';
	return `${where}${error.message}${advice}`;
}
