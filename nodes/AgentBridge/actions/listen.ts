import type { ITriggerFunctions, ITriggerResponse } from 'n8n-workflow';

import { toNodeError } from '../../shared/errors/nodeError';
import type { Failure } from '../../shared/errors/failure';
import { isJsonObject } from '../../shared/text/json';
import { createSeen, type Seen } from '../frames';
import { startListener } from '../listener';
import type { FrameQueue } from '../queue';
import { createReconnectPolicy } from '../reconnect';
import { prepareBridge, type BridgeSetup } from './bridgeSetup';
import { createDelivery, type Log } from './deliver';
import { listenOnce } from './listenOnce';
import { readListenSettings, receive, type ListenSettings, type Received } from './received';

/** IDs that are remembered to recognise duplicates: twice as many as may wait. */
const REMEMBERED_IDS = 20_000;

/** The trigger: in the editor it waits for one frame, in an active workflow it keeps listening. */
export async function listen(context: ITriggerFunctions): Promise<ITriggerResponse> {
	const given: unknown = context.getNodeParameter('options', {});
	const options = isJsonObject(given) ? given : {};
	const read = readListenSettings(context, options);
	if (!read.ok) throw toNodeError(context.getNode(), read.failure);
	const auth = {
		authMode: context.getNodeParameter('authMode'),
		authFrame: context.getNodeParameter('authFrame', ''),
	};
	const setup = await prepareBridge(context, auth, options);
	if (!setup.ok) throw toNodeError(context.getNode(), setup.failure);
	if (context.getMode() === 'manual') return listenOnce(context, setup.value, read.value);
	return await listenOn(context, setup.value, read.value);
}

/** The trigger of an active workflow. */
async function listenOn(
	context: ITriggerFunctions,
	setup: BridgeSetup,
	settings: ListenSettings,
): Promise<ITriggerResponse> {
	const { clock, whom } = setup;
	const node = context.getNode();
	const workflowId = context.getWorkflow().id ?? '';
	const log: Log = (level, text) =>
		context.logger[level](`AgentBridge Trigger "${node.name}": ${text}`, { workflowId });
	const seen = createSeen(REMEMBERED_IDS);
	const delivery = createDelivery(context, setup, settings, { log, seen });
	const { queue } = delivery;
	const intake = createIntake(setup, settings, { queue, seen }, log);
	let refused: Failure | undefined;
	let isActive = false;
	let lastReason = '';

	const listener = startListener({
		...setup,
		policy: createReconnectPolicy(() => clock.now(), Math.random),
		onText: intake.onText,
		onBinary: () => intake.onStrange('binary'),
		room: async () => await queue.idle(),
		onUp: (failures) => {
			intake.summarise();
			lastReason = '';
			log(
				'info',
				failures === 0 ? `connected to ${whom.host}` : `connected again after ${failures} failure(s)`,
			);
		},
		onDown: ({ message }, pauseMs) => {
			// Within an outage, only a new reason is worth another line.
			log(
				message === lastReason ? 'debug' : 'warn',
				`${message}. Next try in ${(pauseMs / 1000).toFixed(1)} s`,
			);
			lastReason = message;
		},
		onRefused: (failure) => {
			refused = failure;
			log('error', failure.message);
			if (isActive) context.emitError(toNodeError(node, failure));
		},
		onFull: () => reportFull(context, queue.waiting, settings.maxQueued, log),
	});

	// A token that is refused at once fails the activation, so that whoever activates the workflow reads it.
	await listener.started;
	if (refused) throw toNodeError(node, refused);
	isActive = true;
	return {
		closeFunction: async () => {
			// First the socket, so that its last frames are delivered too.
			await listener.stop();
			intake.summarise();
			log('info', 'disconnected');
			delivery.close();
		},
	};
}

/** Puts frames into the queue. Of what is not a frame, each connection logs the first, and at its end the number. */
function createIntake(
	setup: BridgeSetup,
	settings: ListenSettings,
	{ queue, seen }: { readonly queue: FrameQueue<Received>; readonly seen: Seen },
	log: Log,
) {
	let strange = 0;
	const onStrange = (what: string): void => {
		if (strange++ === 0) log('warn', `skipped a frame that is ${what}`);
	};
	return {
		onStrange,
		/** @returns false where there is no room for the frame */
		onText: (text: string): boolean => {
			const received = receive(text, setup, settings);
			if (!received.ok) {
				onStrange(received.failure);
				return true;
			}
			const { id, frame } = received.value;
			if (!settings.filter.takes(frame)) return true;
			if (id !== undefined && seen.has(id)) {
				log('debug', 'skipped a frame that came twice');
				return true;
			}
			if (!queue.push(received.value, text.length)) return false;
			// Only now: a frame that was not taken may come again.
			if (id !== undefined) seen.add(id);
			return true;
		},
		summarise: (): void => {
			if (strange > 1) log('warn', `skipped ${strange} frames that could not be read`);
			strange = 0;
		},
	};
}

function reportFull(context: ITriggerFunctions, waiting: number, maxQueued: number, log: Log): void {
	const remedy =
		waiting < maxQueued
			? 'Together they have reached the largest size that may wait. Raise "Max Frames per Execution" or make the workflow faster.'
			: 'Raise "Max Frames per Execution", make the workflow faster, or raise "Max Waiting Frames".';
	const failure: Failure = {
		kind: 'stalled',
		message: `${waiting} frames wait for the workflow, so the connection was closed until they are processed`,
		advice: `Frames come faster than the workflow runs. ${remedy} The platform decides whether it keeps frames until then.`,
		details: { waiting },
	};
	log('error', failure.message);
	context.saveFailedExecution(toNodeError(context.getNode(), failure));
}
