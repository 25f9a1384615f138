import type { ITriggerFunctions, ITriggerResponse } from 'n8n-workflow';

import type { Failure } from '../../../shared/errors/failure';
import { toNodeError } from '../../../shared/errors/nodeError';
import { isJsonObject, sentence } from '../../../shared/text/json';
import type { Bridge } from '../../connection/failures';
import { Listener, type ListenerEvents } from '../../connection/listener';
import { Outbox } from '../../connection/outbox';
import { DEFAULT_AUTH_FRAME } from '../fields.bridge';
import { openBridge } from '../openBridge';
import { listNames, readListenSettings, receive, type ListenSettings, type Log } from './incomingFrame';
import { listenOnce } from './listenOnce';
import { ReplySender } from './sendReplies';
import { ExecutionStarter } from './startExecutions';

/**
 * The listening triggers of this n8n process, by workflow and node. If an account is refused while a workflow is active,
 * n8n may start its trigger twice at once, and then closes only the one that started last.
 */
const listening = new Map<string, ActiveTrigger>();

/** Starts the trigger: in the editor it waits for one frame, in an active workflow it keeps listening. */
export async function listen(context: ITriggerFunctions): Promise<ITriggerResponse> {
	const given: unknown = context.getNodeParameter('options', {});
	const options = isJsonObject(given) ? given : {};
	const read = readListenSettings(context, options);
	if (!read.ok) throw startError(context, read.failure);
	const setup = await openBridge(context, {
		authMode: options.authMode,
		authFrame: options.authFrame ?? DEFAULT_AUTH_FRAME,
		options,
	});
	if (!setup.ok) throw startError(context, setup.failure);
	if (context.getMode() === 'manual') return listenOnce(context, setup.value, read.value);
	const trigger = new ActiveTrigger(context, setup.value, read.value);
	await trigger.start();
	return { closeFunction: async () => await trigger.stop() };
}

/** When n8n activates a trigger, it shows only the message of an error, so the message includes the advice. */
function startError(context: ITriggerFunctions, failure: Failure): ReturnType<typeof toNodeError> {
	const { message, advice } = failure;
	const isTest = context.getMode() === 'manual';
	const shown = isTest ? failure : { ...failure, message: `${sentence(message)} ${advice}`.trim() };
	return toNodeError(context.getNode(), shown);
}

/** The trigger of an active workflow: incoming frames start executions, whose replies it sends. */
class ActiveTrigger implements ListenerEvents {
	private readonly key: string;
	private readonly log: Log;
	private readonly executions: ExecutionStarter;
	private readonly outbox: Outbox;
	private readonly listener: Listener;
	private isActive = false;
	private lastReason = '';
	/** How many frames were unreadable. The first is logged at once, their number when the trigger reconnects or stops. */
	private skipped = 0;

	constructor(
		private readonly context: ITriggerFunctions,
		private readonly setup: Bridge,
		private readonly settings: ListenSettings,
	) {
		const { name } = context.getNode();
		const workflowId = context.getWorkflow().id ?? '';
		// The name, because two nodes of an imported workflow may have the same ID.
		this.key = `${workflowId} ${name}`;
		const log: Log = (level, text) =>
			context.logger[level](`Agent Bridge Trigger "${name}": ${text}`, { workflowId });
		const { host } = setup.peer;
		const outbox = new Outbox(
			() => setup.clock.now(),
			(text) => this.listener.send(text),
			(names, why) =>
				log('error', `${names.length} frame(s) to ${host} were not sent: ${why}${listNames(names)}`),
		);
		const replies = new ReplySender(name, settings.reply, outbox, setup.peer.redact, log);
		this.log = log;
		this.outbox = outbox;
		this.executions = new ExecutionStarter(context, setup, settings, log, replies);
		this.listener = new Listener(setup, this, Math.random);
	}

	/** If the token is refused, the activation fails, so that the operator sees why. */
	async start(): Promise<void> {
		const refused = await this.listener.start();
		if (refused) throw startError(this.context, refused);
		this.isActive = true;
		const earlier = listening.get(this.key);
		listening.set(this.key, this);
		// Not awaited: of two triggers that start at once, n8n keeps the one whose start ends last.
		void earlier?.stop();
	}

	async stop(): Promise<void> {
		if (!this.isActive) return;
		this.isActive = false;
		if (listening.get(this.key) === this) listening.delete(this.key);
		// Close the socket first, so that frames it has already received still join the queue.
		await this.listener.stop();
		this.summariseSkipped();
		this.log('info', 'disconnected');
		this.outbox.close('the workflow is no longer active');
		this.executions.close();
	}

	onText(text: string): boolean {
		const received = receive(text, this.setup, this.settings);
		if (!received.ok) {
			this.skip(received.failure);
			return true;
		}
		const isWanted = this.settings.filter.accepts(received.value.frame);
		if (!isWanted || this.executions.push(received.value, text.length)) return true;
		this.reportFull();
		return false;
	}

	onBinary(): void {
		this.skip('binary');
	}

	onUp(failures: number): void {
		this.summariseSkipped();
		this.lastReason = '';
		const { host } = this.setup.peer;
		this.log('info', failures === 0 ? `connected to ${host}` : `reconnected after ${failures} failure(s)`);
		this.outbox.up();
	}

	onDown({ message }: Failure, pauseMs: number): void {
		// During an outage, each try would log the same warning, so only the first is logged as one.
		const level = message === this.lastReason ? 'debug' : 'warn';
		this.log(level, `${message}. Next try in ${(pauseMs / 1000).toFixed(1)} s`);
		this.lastReason = message;
		this.outbox.down();
	}

	onRefused(failure: Failure): void {
		this.outbox.close('the platform refused the channel account');
		this.log('error', failure.message);
		if (this.isActive) this.context.emitError(startError(this.context, failure));
	}

	async onFull(): Promise<void> {
		await this.executions.idle();
	}

	/** Called before the connection is closed, because executions take frames from the queue in the meantime. */
	private reportFull(): void {
		const failure = queueFull(this.executions.queued, this.settings.maxQueued);
		this.log('error', failure.message);
		this.context.saveFailedExecution(toNodeError(this.context.getNode(), failure));
	}

	/** @param what words that complete the phrase "a frame that is" */
	private skip(what: string): void {
		if (this.skipped++ === 0) this.log('warn', `skipped a frame that is ${what}`);
	}

	private summariseSkipped(): void {
		if (this.skipped > 1) this.log('warn', `skipped ${this.skipped} unreadable frames in all`);
		this.skipped = 0;
	}
}

function queueFull(waiting: number, maxQueued: number): Failure {
	const remedy =
		waiting < maxQueued
			? "The waiting frames together have reached the size limit. Raise 'Max Frames per Execution' or make the workflow faster."
			: "Raise 'Max Frames per Execution', make the workflow faster, or raise 'Max Waiting Frames'.";
	return {
		kind: 'stalled',
		message: `${waiting} frames are waiting for the workflow, so the connection stays closed until they are processed`,
		advice: `Frames arrive faster than the workflow can process them. ${remedy} Frames that the platform sends in the meantime may be lost.`,
		details: { waiting },
	};
}
