import { ExecutionCancelledError, type IRun, type ITriggerFunctions } from 'n8n-workflow';

import { wordsOfError } from '../../../shared/errors/expressionError';
import { growingPauseMs, type PauseGrowth } from '../../../shared/run/growingPause';
import { shortId, type RecentIds } from '../../frames/frames';
import { createIncomingQueue, type IncomingQueue } from '../../frames/incomingQueue';
import type { BridgeSetup } from '../openBridge';
import { listNames, nameOf, toItem, type ListenSettings, type IncomingFrame } from './incomingFrame';

export type Log = (level: 'debug' | 'info' | 'warn' | 'error', text: string) => void;

/** Hears of the executions. */
export interface ExecutionListener {
	/** One ended; `undefined`: n8n had run its frame before, so there was none. Must not throw. */
	ended(batch: readonly IncomingFrame[], run: IRun | undefined): void;
	/** A node of one responded. Must not throw. */
	responded(response: unknown): void;
}

/** The way of frames into executions. */
export interface ExecutionStarter {
	readonly queue: IncomingQueue<IncomingFrame>;
	/** Takes nothing more and hands all that waits to n8n at once: nobody could hand it out later. */
	close(): void;
}

/** For a batch whose execution did not start, e.g. while n8n's database is away. */
const MAX_TRIES = 3;
const PAUSES: PauseGrowth = { firstMs: 2_000, factor: 4, longestMs: 8_000 };
/** The text of all waiting frames together. Parsed, they take several times as much. */
const MAX_QUEUED_CHARS = 50_000_000;

/**
 * One execution per batch, and one at a time.
 * @param seen frames that n8n did not take are removed from it, so that they are not ignored when they come again
 */
export function createExecutionStarter(
	context: ITriggerFunctions,
	{ redact, clock }: BridgeSetup,
	{ maxBatch, maxQueued }: ListenSettings,
	{
		log,
		seen,
		executions,
	}: {
		readonly log: Log;
		readonly seen: Pick<RecentIds, 'remove'>;
		readonly executions?: ExecutionListener;
	},
): ExecutionStarter {
	const workflowId = context.getWorkflow().id ?? '';
	const { id: nodeId } = context.getNode();

	/** Resolves when the execution has ended. */
	const emit = async (batch: readonly IncomingFrame[]): Promise<IRun | undefined> => {
		const done = context.helpers.createDeferredPromise<IRun>();
		const key = deduplicationKey(workflowId, nodeId, batch);
		context.emit([batch.map(toItem)], executions && responsesTo(executions), done, key);
		return await done.promise;
	};
	const closing = new AbortController();
	const deliver = async (batch: readonly IncomingFrame[]): Promise<void> => {
		for (let tries = 1; ; tries++) {
			const isLast = tries >= MAX_TRIES || closing.signal.aborted;
			try {
				const run = await emit(batch);
				executions?.ended(batch, run);
				return;
			} catch (error) {
				const why = redact(wordsOfError(error));
				const frames = `the execution for ${batch.length} frame(s)`;
				if (hasBegun(error)) {
					log('error', `${frames} did not finish: ${why}`);
					return;
				}
				if (isLast) {
					for (const { id } of batch) if (id !== undefined) seen.remove(id);
					log(
						'error',
						`${frames} did not start, and these frames are dropped: ${why}${listNames(batch.map(nameOf))}`,
					);
					return;
				}
				const pauseMs = growingPauseMs(PAUSES, tries);
				log('warn', `${frames} did not start: ${why}. Next try in ${pauseMs / 1000} s`);
				// Closing ends the pause: the next try is then the last.
				await clock.sleep(pauseMs, closing.signal);
			}
		}
	};

	const queue = createIncomingQueue<IncomingFrame>(
		{ maxBatch, maxQueued, maxQueuedChars: MAX_QUEUED_CHARS },
		deliver,
	);
	return {
		queue,
		close: () => {
			closing.abort();
			const left = queue.close();
			if (left.length === 0) return;
			log('info', `${left.length} frame(s) waited; their executions start now, all at once`);
			for (let first = 0; first < left.length; first += maxBatch) {
				void deliver(left.slice(first, first + maxBatch));
			}
		},
	};
}

/**
 * What n8n takes for the promise of a response. It settles it with each response of the execution, from whichever worker,
 * and in the end with one of its own: so every call is heard, and not the first alone.
 */
function responsesTo(executions: ExecutionListener): Parameters<ITriggerFunctions['emit']>[1] {
	return {
		promise: new Promise(() => undefined),
		resolve: (response) => executions.responded(response),
		reject: () => undefined,
	};
}

/**
 * The key by which n8n runs a frame once, even across restarts. n8n has one index of them for the whole instance, so
 * workflow and node are part of it. A batch of several frames has no key: after a restart the same frames come in
 * another batch.
 */
export function deduplicationKey(
	workflowId: string,
	nodeId: string,
	batch: ReadonlyArray<Pick<IncomingFrame, 'id'>>,
): string | undefined {
	const [only, ...more] = batch;
	if (only?.id === undefined || more.length > 0) return undefined;
	return `flowbridge:${workflowId}:${nodeId}:${shortId(only.id)}`;
}

/**
 * Whether an execution started and may have worked on the frames. n8n does not reject for one that ends with an
 * error, only if there is none, or if it was stopped or is no longer known.
 */
function hasBegun(error: unknown): boolean {
	if (error instanceof ExecutionCancelledError) return true;
	return error instanceof Error && error.constructor.name === 'ExecutionNotFoundError';
}
