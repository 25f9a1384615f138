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

/** Ids that are remembered to tell frames that come twice: twice as many as may wait. */
const REMEMBERED_IDS = 20_000;

/** What the trigger does: in the editor it waits for one frame, in an active workflow it listens on and on. */
export async function listen(context: ITriggerFunctions): Promise<ITriggerResponse> {
	const given: unknown = context.getNodeParameter('options', {});
	const options = isJsonObject(given) ? given : {};
	const read = readListenSettings(context, options);
	if (!read.ok) throw toNodeError(context.getNode(), read.failure);
	const setup = await prepareBridge(
		context,
		{
			authMode: context.getNodeParameter('authMode'),
			authFrame: context.getNodeParameter('authFrame', ''),
		},
		options,
	);
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
			// Further failures of an outage would only repeat the first line, unless they have another reason.
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

	// A token that is refused at once fails the activation, where the person who activates reads it.
	await listener.started;
	if (refused) throw toNodeError(node, refused);
	isActive = true;
	return {
		closeFunction: async () => {
			// First the socket: what it still took waits with the others.
			await listener.stop();
			intake.summarise();
			log('info', 'disconnected');
			delivery.close();
		},
	};
}

/** What becomes of all that comes over the socket. */
interface Intake {
	/** @returns false where there is no room for the frame */
	readonly onText: (text: string) => boolean;
	/** Something came that is not a frame. @param what to be put behind "a frame that is" */
	readonly onStrange: (what: string) => void;
	/** A connection is over: says how many frames were passed over. Each connection tells of the first as it comes. */
	readonly summarise: () => void;
}

function createIntake(
	setup: BridgeSetup,
	settings: ListenSettings,
	{ queue, seen }: { readonly queue: FrameQueue<Received>; readonly seen: Seen },
	log: Log,
): Intake {
	let strange = 0;
	const onStrange = (what: string): void => {
		if (strange++ === 0) log('warn', `a frame that is ${what} was passed over`);
	};
	return {
		onStrange,
		onText: (text) => {
			const received = receive(text, setup, settings);
			if (!received.ok) {
				onStrange(received.failure);
				return true;
			}
			const { id, frame } = received.value;
			if (!settings.filter.takes(frame)) return true;
			if (id !== undefined && seen.has(id)) {
				log('debug', 'a frame came twice and was passed over');
				return true;
			}
			if (!queue.push(received.value, text.length)) return false;
			// Only what was taken: a frame without room may come once more.
			if (id !== undefined) seen.add(id);
			return true;
		},
		summarise: () => {
			if (strange > 1) log('warn', `${strange} frames were passed over, as the first of them`);
			strange = 0;
		},
	};
}

function reportFull(context: ITriggerFunctions, waiting: number, maxQueued: number, log: Log): void {
	const remedy =
		waiting < maxQueued
			? 'Together they are as large as may wait. Raise "Max Frames per Execution" or make the workflow faster.'
			: 'Raise "Max Frames per Execution", make the workflow faster, or raise "Max Waiting Frames".';
	const failure: Failure = {
		kind: 'stalled',
		message: `${waiting} frames wait for the workflow, so the connection was closed until they are worked off`,
		advice: `Frames come faster than the workflow runs. ${remedy} Whether the platform keeps what it sends meanwhile is for it to say.`,
		details: { waiting },
	};
	log('error', failure.message);
	context.saveFailedExecution(toNodeError(context.getNode(), failure));
}
