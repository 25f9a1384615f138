import {
	NodeConnectionTypes,
	type INodeType,
	type INodeTypeDescription,
	type ITriggerFunctions,
	type ITriggerResponse,
} from 'n8n-workflow';

import { testBridgeConnection } from './actions/credentialTest';
import { listen } from './actions/trigger/listen';
import { LISTEN_FIELDS } from './actions/trigger/fields.listen';

export class AgentBridgeTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Agent Bridge Trigger',
		name: 'agentBridgeTrigger',
		icon: { light: 'file:agentBridge.svg', dark: 'file:agentBridge.dark.svg' },
		group: ['trigger'],
		version: 1,
		subtitle: '={{ "On " + ($parameter["eventFilter"] || "any message") }}',
		description: 'Starts the workflow when a message arrives over a live connection to the agent platform',
		eventTriggerDescription: 'When a message arrives',
		activationMessage: 'The workflow stays connected to the bridge and runs when frames arrive.',
		defaults: { name: 'Agent Bridge Trigger' },
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		builderHint: {
			searchHint:
				'An execution may get several frames, one item per frame. Answer with the option Reply, or in queue mode with Agent Bridge; Respond to Webhook does not work here',
		},
		credentials: [{ name: 'flowBridgeApi', required: true, testedBy: 'testBridgeConnection' }],
		triggerPanel: {
			header: 'Listen on the channel account',
			executionsHelp: {
				inactive:
					'<b>While you build:</b> click "Execute step", then send a message over the channel account. The first matching frame appears here.<br /><br /><b>Once you are ready:</b> publish the workflow. It stays connected, and frames that arrive while it runs go into its next execution together.',
				active:
					'<b>While you build:</b> click "Execute step", then send a message over the channel account. If the platform allows only one connection, the published workflow loses its own in the meantime.<br /><br /><b>The published workflow</b> is connected; see the executions list for its runs.',
			},
			activationHint: 'Publish the workflow to stay connected.',
		},
		properties: [...LISTEN_FIELDS],
	};

	methods = { credentialTest: { testBridgeConnection } };

	async trigger(this: ITriggerFunctions): Promise<ITriggerResponse> {
		return await listen(this);
	}
}
