import type { INodeParameters } from 'n8n-workflow';

import { startPlatform, type LocalPlatform, type PlatformOptions } from '../../platform';
import {
	createHarness,
	singleNode,
	type Harness,
	type HarnessRun,
	type ItemInput,
	type RunOptions,
	type SingleNode,
	type WorkflowJson,
} from '../harness';
import { createDataTables, type DataTables } from '../harness/dataTables';

/** A local platform and n8n-core with the built agent node: real sockets all the way. */
export interface AgentStage {
	readonly platform: LocalPlatform;
	readonly harness: Harness;
	readonly credentials: { flowAgentApi: Record<string, string | boolean> };
	/** What n8n's Data Tables hold. */
	readonly tables: DataTables;
	/** A workflow with AgentInvoke as its only node, which says `{{ $json.say }}` in new sessions unless told otherwise. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	run(
		items: ItemInput[],
		parameters?: INodeParameters,
		settings?: Partial<SingleNode> &
			Pick<RunOptions, 'streaming' | 'mode' | 'executeWorkflow'> & {
				/** Fields of the credential that are other than usual. */
				account?: Record<string, string | boolean>;
			},
	): Promise<HarnessRun>;
	/** New books, no faults, empty tables. */
	reset(): void;
	close(): Promise<void>;
}

/** Items that each say one thing. */
export function sayings(...texts: string[]): ItemInput[] {
	return texts.map((say) => ({ json: { say } }));
}

export async function openAgentStage(options: PlatformOptions = {}): Promise<AgentStage> {
	const platform = await startPlatform({ pictures: 'prepared', seed: 1, ...options });
	const harness = await createHarness();
	let tables = createDataTables();
	const credentials = {
		flowAgentApi: {
			agentToken: platform.agentToken,
			baseUrl: platform.apiUrl,
			mediaUploadPath: '/api/agents/media',
		},
	};
	const workflow: AgentStage['workflow'] = (parameters = {}, settings = {}) =>
		singleNode({
			type: 'n8n-nodes-flowtask.agentInvoke',
			parameters: { operation: 'invoke', message: '={{ $json.say }}', sessionMode: 'new', ...parameters },
			...settings,
		});
	return {
		platform,
		harness,
		credentials,
		get tables() {
			return tables;
		},
		workflow,
		run: async (items, parameters, { streaming, mode, executeWorkflow, account, ...settings } = {}) =>
			await harness.run({
				workflow: workflow(parameters, settings),
				items,
				credentials: { flowAgentApi: { ...credentials.flowAgentApi, ...account } },
				executeWorkflow: executeWorkflow ?? tables.executeWorkflow,
				...(streaming !== undefined && { streaming }),
				...(mode && { mode }),
			}),
		reset: () => {
			platform.faults.clear();
			platform.resetBooks();
			tables = createDataTables();
		},
		close: async () => {
			await harness.close();
			await platform.close();
		},
	};
}

/** Every word that an execution left behind: items, errors, hints, logs. */
export function everythingSaid(run: HarnessRun): string {
	return JSON.stringify([run.stored, run.raw.data.resultData, run.error, run.logs, run.chunks]);
}

export async function until(isSo: () => boolean, withinMs = 60_000): Promise<void> {
	const endMs = Date.now() + withinMs;
	while (!isSo()) {
		if (Date.now() > endMs) throw new Error('what was waited for did not come');
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}

/** Items go on beside failed ones. */
export const CONTINUE = { onError: 'continueRegularOutput' } as const;
