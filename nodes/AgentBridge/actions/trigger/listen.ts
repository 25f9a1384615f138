import type { ITriggerFunctions, ITriggerResponse } from 'n8n-workflow';

import { toNodeError } from '../../../shared/errors/nodeError';
import type { Failure } from '../../../shared/errors/failure';
import { isJsonObject } from '../../../shared/text/json';
import { RecentIds } from '../../frames/frames';
import type { Whom } from '../../connection/failures';
import { startListener } from '../../connection/listener';
import { createOutbox } from '../../connection/outbox';
import type { IncomingQueue } from '../../frames/incomingQueue';
import { openBridge, type BridgeSetup } from '../openBridge';
import { createExecutionStarter, type Log } from './startExecutions';
import { listenOnce } from './listenOnce';
import {
	listNames,
	readListenSettings,
	receive,
	type ListenSettings,
	type IncomingFrame,
} from './incomingFrame';
import { createReplySender } from './sendReplies';

/** Ids remembered to recognise frames that come twice: twice as many as may wait by default. */
const REMEMBERED_IDS = 20_000;

/** In the editor the trigger waits for one frame; in an active workflow it keeps listening. */
export async function listen(context: ITriggerFunctions): Promise<ITriggerResponse> {
	const given: unknown = context.getNodeParameter('options', {});
	const options = isJsonObject(given) ? given : {};
	const read = readListenSettings(context, options);
	if (!read.ok) throw toNodeError(context.getNode(), read.failure);
	const auth = {
		authMode: context.getNodeParameter('authMode'),
		authFrame: context.getNodeParameter('authFrame', ''),
	};
	const setup = await openBridge(context, auth, options);
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
	const { whom } = setup;
	const node = context.getNode();
	const workflowId = context.getWorkflow().id ?? '';
	const log: Log = (level, text) =>
		context.logger[level](`Agent Bridge Trigger "${node.name}": ${text}`, { workflowId });
	const seen = new RecentIds(REMEMBERED_IDS);
	let isFull = false;
	const outbox = createOutbox({
		clock: setup.clock,
		transmit: (text) => listener.send(text),
		isHeldOff: () => isFull,
		onLost: (names, why) =>
			log('error', `${names.length} frame(s) to ${whom.host} were not sent: ${why}${listNames(names)}`),
	});
	const executions = createReplySender(node.name, settings.reply, { outbox, redact: setup.redact, log });
	const delivery = createExecutionStarter(context, setup, settings, { log, seen, executions });
	const { queue } = delivery;
	const intake = createIntake(setup, settings, { queue, seen }, log);
	const reporter = createReporter(whom, log);
	let refused: Failure | undefined;
	let isActive = false;

	const listener = startListener({
		...setup,
		random: Math.random,
		onText: intake.onText,
		onBinary: () => intake.onStrange('binary'),
		room: async () => await queue.idle(),
		onUp: (failures) => {
			intake.summarise();
			isFull = false;
			reporter.onUp(failures);
			outbox.flush();
		},
		onDown: (failure, pauseMs) => {
			isFull = false;
			reporter.onDown(failure, pauseMs);
		},
		onRefused: (failure) => {
			refused = failure;
			log('error', failure.message);
			if (isActive) context.emitError(toNodeError(node, failure));
		},
		onFull: () => {
			isFull = true;
			reportFull(context, queue.queued, settings.maxQueued, log);
		},
	});

	// A token that is refused at once fails the activation, so whoever activates the workflow sees it.
	await listener.started;
	if (refused) throw toNodeError(node, refused);
	isActive = true;
	return {
		closeFunction: async () => {
			// The socket first: frames that it still received wait with the others.
			await listener.stop();
			intake.summarise();
			log('info', 'disconnected');
			outbox.close();
			delivery.close();
		},
	};
}

/** Logs how the connection fares. */
function createReporter({ host }: Whom, log: Log) {
	let lastReason = '';
	return {
		onUp: (failures: number): void => {
			lastReason = '';
			log('info', failures === 0 ? `connected to ${host}` : `reconnected after ${failures} failure(s)`);
		},
		onDown: ({ message }: Failure, pauseMs: number): void => {
			// During an outage the same line would repeat with each try.
			const level = message === lastReason ? 'debug' : 'warn';
			log(level, `${message}. Next try in ${(pauseMs / 1000).toFixed(1)} s`);
			lastReason = message;
		},
	};
}

/** Takes what comes over the socket. Each connection logs its first unreadable frame, and at its end their number. */
function createIntake(
	setup: BridgeSetup,
	settings: ListenSettings,
	{ queue, seen }: { readonly queue: IncomingQueue<IncomingFrame>; readonly seen: RecentIds },
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
				log('debug', 'skipped a frame that arrived twice');
				return true;
			}
			if (!queue.push(received.value, text.length)) return false;
			// Only after it was taken: a frame without room may come again.
			if (id !== undefined) seen.add(id);
			return true;
		},
		summarise: () => {
			if (strange > 1) log('warn', `skipped ${strange} unreadable frames in all`);
			strange = 0;
		},
	};
}

function reportFull(context: ITriggerFunctions, waiting: number, maxQueued: number, log: Log): void {
	const remedy =
		waiting < maxQueued
			? 'Together they have reached the size limit. Raise "Max Frames per Execution" or make the workflow faster.'
			: 'Raise "Max Frames per Execution", make the workflow faster, or raise "Max Waiting Frames".';
	const failure: Failure = {
		kind: 'stalled',
		message: `${waiting} frames wait for the workflow, so the connection was closed until they are processed`,
		advice: `Frames arrive faster than the workflow can process them. ${remedy} Frames that the platform sends in the meantime may be lost.`,
		details: { waiting },
	};
	log('error', failure.message);
	context.saveFailedExecution(toNodeError(context.getNode(), failure));
}
