import type { INodeParameters } from 'n8n-workflow';

import { isJsonObject } from '../../../nodes/shared/text/json';
import type { BridgeChannel, ChannelOptions } from '../../platform';
import {
	NODE_NAME,
	singleNode,
	type ActiveTrigger,
	type HarnessOptions,
	type HarnessRun,
	type LiveRun,
	type WorkflowJson,
} from '../harness';
import { forNode, openPlatform, type NodeStage } from '../harness/stage';

type Account = Record<string, string>;

/** A platform stage with a channel account, for the action and the trigger. */
export interface Stage extends NodeStage<'flowBridgeApi'> {
	readonly channel: BridgeChannel;
	/** Activates a workflow with only the trigger. */
	activate(parameters?: INodeParameters, account?: Account): Promise<ActiveTrigger>;
	/** Runs a manual test of the trigger. */
	test(parameters?: INodeParameters, account?: Account): Promise<HarnessRun>;
	startTest(parameters?: INodeParameters, account?: Account): Promise<LiveRun>;
}

/** What the forms show under "Options". */
const OPTIONS = new Set([
	...['authMode', 'authFrame', 'eventPath', 'maxBatch'],
	...['replyComplete', 'silenceMs', 'timeoutSeconds'],
]);

/** Moves each option of a test to where the form has it. */
export function inOptions({ options, ...parameters }: INodeParameters): INodeParameters {
	const entries = Object.entries(parameters);
	const pick = (isOption: boolean) =>
		Object.fromEntries(entries.filter(([name]) => OPTIONS.has(name) === isOption));
	return { ...pick(false), options: { ...pick(true), ...(isJsonObject(options) && options) } };
}

const triggerFlow = (parameters: INodeParameters): WorkflowJson => ({
	nodes: [
		{ name: NODE_NAME, type: 'n8n-nodes-flowtask.agentBridgeTrigger', parameters: inOptions(parameters) },
	],
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
	const flowBridgeApi = { channelToken: channel.token, wsBaseUrl: platform.wsUrl };
	const type = 'n8n-nodes-flowtask.agentBridge';
	const node = forNode(stage, { flowBridgeApi }, (parameters, settings) =>
		singleNode({ type, parameters: inOptions({ ...CORRELATED, ...parameters }), ...settings }),
	);
	const flowWith = (parameters: INodeParameters = {}, account: Account = {}) => ({
		workflow: triggerFlow(parameters),
		credentials: { flowBridgeApi: { ...flowBridgeApi, ...account } },
	});
	const startTest: Stage['startTest'] = async (...of) =>
		await harness.start({ ...flowWith(...of), mode: 'manual' });
	return Object.assign(node, {
		channel,
		activate: async (...of: Parameters<typeof flowWith>) => await harness.activate(flowWith(...of)),
		startTest,
		test: async (...of: Parameters<typeof flowWith>) => await (await startTest(...of)).done,
	});
}

/** All frames in the executions of a trigger, in order. */
export function framesOf(trigger: ActiveTrigger): Array<Record<string, unknown>> {
	return trigger.runs.flatMap((run) => run.jsons().map(({ frame }) => frame as Record<string, unknown>));
}
