import type { ITriggerFunctions, ITriggerResponse } from 'n8n-workflow';

import { toNodeError } from '../../../shared/errors/nodeError';
import { isJsonObject } from '../../../shared/text/json';
import { openBridge } from '../openBridge';
import { ActiveTrigger } from './activeTrigger';
import { readListenSettings } from './incomingFrame';
import { listenOnce } from './listenOnce';

/** Starts the trigger: in the editor it waits for one frame, in an active workflow it keeps listening. */
export async function listen(context: ITriggerFunctions): Promise<ITriggerResponse> {
	const given: unknown = context.getNodeParameter('options', {});
	const options = isJsonObject(given) ? given : {};
	const read = readListenSettings(context, options);
	if (!read.ok) throw toNodeError(context.getNode(), read.failure);
	const setup = await openBridge(context, {
		authMode: context.getNodeParameter('authMode'),
		authFrame: context.getNodeParameter('authFrame', ''),
		options,
	});
	if (!setup.ok) throw toNodeError(context.getNode(), setup.failure);
	if (context.getMode() === 'manual') return listenOnce(context, setup.value, read.value);
	const trigger = new ActiveTrigger(context, setup.value, read.value);
	await trigger.start();
	return { closeFunction: async () => await trigger.stop() };
}
