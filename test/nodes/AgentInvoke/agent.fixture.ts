import type { INodeParameters } from 'n8n-workflow';

import type { PlatformOptions } from '../../platform';
import {
	singleNode,
	type HarnessRun,
	type ItemInput,
	type RunOptions,
	type SingleNode,
	type WorkflowJson,
} from '../harness';
import { AgentInvoke } from '../../../nodes/AgentInvoke/AgentInvoke.node';
import { createDataTables, type DataTables } from '../harness/dataTables';
import { openPlatform, type PlatformStage } from '../harness/stage';
import { inGroups } from '../optionGroups';

export interface AgentStage extends PlatformStage {
	readonly credentials: { flowAgentApi: Record<string, string | boolean> };
	/** The contents of n8n's Data Tables. */
	readonly tables: DataTables;
	/** A workflow with AgentInvoke as its only node, which by default sends `{{ $json.say }}` in new sessions. */
	workflow(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
	run(
		items: ItemInput[],
		parameters?: INodeParameters,
		settings?: Partial<SingleNode> &
			Pick<RunOptions, 'streaming' | 'mode' | 'executeWorkflow'> & {
				/** Credential fields that override the defaults. */
				account?: Record<string, string | boolean>;
			},
	): Promise<HarnessRun>;
	/** Clears the platform's books and faults and the tables. */
	reset(): void;
}

export async function openAgentStage(options: PlatformOptions = {}): Promise<AgentStage> {
	const stage = await openPlatform(options);
	const { platform, harness } = stage;
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
			parameters: inGroups(
				{ operation: 'invoke', message: '={{ $json.say }}', sessionMode: 'new', ...parameters },
				new AgentInvoke().description,
			),
			...settings,
		});
	return {
		...stage,
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
	};
}

export const CONTINUE = { onError: 'continueRegularOutput' } as const;
