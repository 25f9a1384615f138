import { ExecutionCancelledError, type IRun, type ITriggerFunctions } from 'n8n-workflow';

import { excerpt } from '../../shared/text/json';
import type { Seen } from '../frames';
import { deduplicationKey } from '../identity';
import { createFrameQueue, type FrameQueue } from '../queue';
import type { BridgeSetup } from './bridgeSetup';
import { toItem, type ListenSettings, type Received } from './received';

export type Log = (level: 'debug' | 'info' | 'warn' | 'error', text: string) => void;

/** How frames get into executions. */
export interface Delivery {
	readonly queue: FrameQueue<Received>;
	/** Hands all that waits to n8n at once, since nobody could do so later. */
	close(): void;
}

/** For a batch whose execution did not begin, e.g. while n8n's database is down. */
const MAX_TRIES = 3;
const FIRST_PAUSE_MS = 2_000;
/** The text of all frames that wait, together. Parsed, they take several times as much. */
const MAX_QUEUED_CHARS = 50_000_000;
/** How much of the IDs a log line shows. */
const IDS_SHOWN_CHARS = 1_000;

/**
 * One execution a batch, the next one only when the last has ended.
 * @param seen forgets frames that n8n did not take, so that they are not skipped when they come again
 */
export function createDelivery(
	context: ITriggerFunctions,
	{ redact, clock }: BridgeSetup,
	{ maxBatch, maxQueued }: ListenSettings,
	{ log, seen }: { readonly log: Log; readonly seen: Pick<Seen, 'remove'> },
): Delivery {
	const workflowId = context.getWorkflow().id ?? '';
	const { id: nodeId } = context.getNode();

	/** Resolves when the execution has ended. */
	const emit = async (batch: readonly Received[]): Promise<void> => {
		const done = context.helpers.createDeferredPromise<IRun>();
		const key = deduplicationKey(workflowId, nodeId, batch);
		context.emit([batch.map(toItem)], undefined, done, key);
		await done.promise;
	};
	const closing = new AbortController();
	const deliver = async (batch: readonly Received[]): Promise<void> => {
		for (let tries = 1; ; tries++) {
			const isLast = tries >= MAX_TRIES || closing.signal.aborted;
			try {
				await emit(batch);
				return;
			} catch (error) {
				const why = error instanceof Error ? redact(error.message) : 'no reason was given';
				const frames = `the execution for ${batch.length} frame(s)`;
				if (hasBegun(error)) {
					log('error', `${frames} did not finish: ${why}`);
					return;
				}
				if (isLast) {
					for (const { id } of batch) if (id !== undefined) seen.remove(id);
					log('error', `${frames} did not begin, and they were dropped: ${why}${namesOf(batch)}`);
					return;
				}
				const pauseMs = FIRST_PAUSE_MS * 4 ** (tries - 1);
				log('warn', `${frames} did not begin: ${why}. Next try in ${pauseMs / 1000} s`);
				// Closing does not wait: the next try is then at once, and the last.
				await clock.sleep(pauseMs, closing.signal);
			}
		}
	};

	const queue = createFrameQueue<Received>(
		{ maxBatch, maxQueued, maxQueuedChars: MAX_QUEUED_CHARS },
		deliver,
	);
	return {
		queue,
		close: () => {
			closing.abort();
			const left = queue.close();
			if (left.length === 0) return;
			log('info', `${left.length} frame(s) waited; their executions begin now, all at once`);
			for (let first = 0; first < left.length; first += maxBatch) {
				void deliver(left.slice(first, first + maxBatch));
			}
		},
	};
}

/**
 * Whether there was an execution that may have worked on the frames. One that ends with an error is no rejection at
 * all; n8n rejects where there is none, or where it was stopped or is no longer known to it.
 */
function hasBegun(error: unknown): boolean {
	if (error instanceof ExecutionCancelledError) return true;
	return error instanceof Error && error.constructor.name === 'ExecutionNotFoundError';
}

/** The ids of frames that n8n did not take, for whoever looks for them on the platform. */
function namesOf(batch: readonly Received[]): string {
	const ids = batch.flatMap(({ id }) => (id === undefined ? [] : [id]));
	return ids.length > 0 ? ` (IDs: ${excerpt(ids.join(', '), IDS_SHOWN_CHARS)})` : '';
}
