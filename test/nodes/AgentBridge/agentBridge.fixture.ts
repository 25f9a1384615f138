import type { INodeParameters } from 'n8n-workflow';

import type { BridgeChannel, ChannelOptions } from '../../platform';
import {
	NODE_NAME,
	singleNode,
	type ActiveTrigger,
	type HarnessOptions,
	type HarnessRun,
	type ItemInput,
	type SingleNode,
	type WorkflowJson,
} from '../harness';
import { openPlatform, type PlatformStage } from '../harness/stage';

type Credentials = { flowBridgeApi: Record<string, string> };

/** A platform stage with a channel account. */
export interface Stage extends PlatformStage {
	readonly channel: BridgeChannel;
	readonly credentials: Credentials;
	/** Activates a workflow with only the trigger. */
	activate(
		parameters?: INodeParameters,
		credentials?: Partial<Credentials['flowBridgeApi']>,
	): Promise<ActiveTrigger>;
	/** Runs a manual test of the trigger. */
	test(
		parameters?: INodeParameters,
		credentials?: Partial<Credentials['flowBridgeApi']>,
	): Promise<HarnessRun>;
	/** Runs the action for these items. */
	run(items: ItemInput[], parameters?: INodeParameters, settings?: Partial<SingleNode>): Promise<HarnessRun>;
	action(parameters?: INodeParameters, settings?: Partial<SingleNode>): WorkflowJson;
}

const triggerFlow = (parameters: INodeParameters): WorkflowJson => ({
	nodes: [{ name: NODE_NAME, type: 'n8n-nodes-flowtask.agentBridgeTrigger', parameters }],
	connections: {},
});

/** The text with every character as a JSON escape. */
export function escaped(text: string): string {
	return Array.from(text, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
}

/** How the local platform correlates frames. */
export const CORRELATED: INodeParameters = {
	operation: 'request',
	frame: '={{ { type: "message", text: $json.text } }}',
	correlationPath: 'id',
	replyPath: 'correlation_id',
	eventFilter: 'message, interrupt',
	timeoutSeconds: 5,
};

export async function openStage(
	options: ChannelOptions = {},
	nodes: HarnessOptions['nodes'] = [],
): Promise<Stage> {
	const stage = await openPlatform({}, nodes);
	const { platform, harness } = stage;
	const channel = platform.createChannel(options);
	const credentials: Credentials = {
		flowBridgeApi: { channelToken: channel.token, wsBaseUrl: platform.wsUrl },
	};
	const changed = (change: Partial<Credentials['flowBridgeApi']> = {}): Credentials => ({
		flowBridgeApi: { ...credentials.flowBridgeApi, ...change } as Credentials['flowBridgeApi'],
	});
	const action: Stage['action'] = (parameters = {}, settings = {}) =>
		singleNode({
			type: 'n8n-nodes-flowtask.agentBridge',
			parameters: { ...CORRELATED, ...parameters },
			...settings,
		});
	return {
		...stage,
		channel,
		credentials,
		action,
		activate: async (parameters = {}, change = {}) =>
			await harness.activate({ workflow: triggerFlow(parameters), credentials: changed(change) }),
		test: async (parameters = {}, change = {}) =>
			await harness.run({
				workflow: triggerFlow(parameters),
				credentials: changed(change),
				mode: 'manual',
			}),
		run: async (items, parameters, settings) =>
			await harness.run({ workflow: action(parameters, settings), items, credentials }),
	};
}

/** All frames in the executions of a trigger, in order. */
export function framesOf(trigger: ActiveTrigger): Array<Record<string, unknown>> {
	return trigger.runs.flatMap((run) =>
		run.output(NODE_NAME).map(({ json }) => json.frame as Record<string, unknown>),
	);
}
