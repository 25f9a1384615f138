import { ExecutionCancelledError, type IRun, type ITriggerFunctions } from 'n8n-workflow';

import { wordsOfError } from '../../../shared/errors/expressionError';
import { jsonText } from '../../../shared/text/json';
import { shortSha256 } from '../../../shared/text/sha256';
import { growingPauseMs, type PauseGrowth } from '../../../shared/time/growingPause';
import type { Bridge, Peer } from '../../connection/failures';
import { RecentIds, shortId } from '../../frames';
import {
	listNames,
	nameOf,
	toItem,
	type IncomingFrame,
	type ListenSettings,
	type Log,
} from './incomingFrame';
import type { ReplySender } from './sendReplies';

type Replies = Pick<ReplySender, 'ended' | 'responded'>;

/** The most tries to start a batch's execution, which fails e.g. while n8n's database is down. */
const MAX_TRIES = 3;
const PAUSES: PauseGrowth = { firstMs: 2_000, factor: 4, longestMs: 8_000 };
/** Limits the total length of all queued frames; parsed, they take several times as much memory. */
const MAX_QUEUED_CHARS = 50_000_000;

/** How many IDs are remembered to detect repeated frames: twice the default of "Max Waiting Frames". */
const REMEMBERED_IDS = 20_000;

const OTHER_CONTENT =
	"whose ID an earlier frame with other content had. If they are two messages, 'ID Path' leads to something that messages share, such as a sender, and only the first is processed";

/**
 * Turns frames into executions, one execution at a time. n8n's `emit` neither waits nor keeps the order, so frames that
 * arrive during an execution are queued until it ends, and go into the next one together.
 */
export class ExecutionStarter {
	private readonly queue: Array<{ readonly received: IncomingFrame; readonly chars: number }> = [];
	private queuedChars = 0;
	private pumping: Promise<void> | undefined;
	private readonly seen = new RecentIds(REMEMBERED_IDS);
	private readonly closing = new AbortController();
	private hasWarnedOfIds = false;

	constructor(
		private readonly context: ITriggerFunctions,
		private readonly setup: Pick<Bridge, 'clock'> & { readonly peer: Pick<Peer, 'redact'> },
		private readonly settings: Pick<ListenSettings, 'maxBatch' | 'maxQueued'>,
		private readonly log: Log,
		private readonly replies: Replies,
	) {}

	get queued(): number {
		return this.queue.length;
	}

	/**
	 * Queues a frame, unless its ID has been seen.
	 * @param chars the length of the frame's text
	 * @returns false if the queue is full
	 */
	push(received: IncomingFrame, chars: number): boolean {
		const { id, frame } = received;
		const digest = id === undefined ? '' : shortSha256(jsonText(frame) ?? '');
		const earlier = id === undefined ? undefined : this.seen.digestOf(id);
		if (earlier !== undefined) {
			this.skipRepeated(received, earlier === digest);
			return true;
		}
		// An oversized frame is accepted if the queue is empty; otherwise the platform might send it again forever.
		const isTooMuch = this.queued > 0 && this.queuedChars + chars > MAX_QUEUED_CHARS;
		if (isTooMuch || this.queued >= this.settings.maxQueued) return false;
		// An ID is remembered only once its frame is queued, because a rejected frame may come again.
		if (id !== undefined) this.seen.add(id, digest);
		this.queue.push({ received, chars });
		this.queuedChars += chars;
		this.pumping ??= this.pump();
		return true;
	}

	/** Resolves once the queue is empty and no execution is running. */
	async idle(): Promise<void> {
		await this.pumping;
	}

	/** Hands all queued frames to n8n at once, because a closed trigger cannot start executions later. */
	close(): void {
		this.closing.abort();
		if (this.queued === 0) return;
		this.log('info', `${this.queued} frame(s) were waiting; their executions start now, all at once`);
		while (this.queued > 0) void this.deliver(this.nextBatch());
	}

	/** The first frame that differs from the one that had its ID is told of: not an ID, but a sender's, may be read. */
	private skipRepeated(received: IncomingFrame, isSame: boolean): void {
		if (isSame || this.hasWarnedOfIds) {
			this.log('debug', 'skipped a frame that arrived twice');
			return;
		}
		this.hasWarnedOfIds = true;
		this.log('warn', `skipped a frame ${OTHER_CONTENT}${listNames([nameOf(received)])}`);
	}

	private async pump(): Promise<void> {
		// Waits until frames that arrived together are queued, so that they go into one batch.
		await Promise.resolve();
		while (this.queued > 0) await this.deliver(this.nextBatch());
		this.pumping = undefined;
	}

	private nextBatch(): IncomingFrame[] {
		const batch = this.queue.splice(0, this.settings.maxBatch);
		for (const { chars } of batch) this.queuedChars -= chars;
		return batch.map(({ received }) => received);
	}

	private async deliver(batch: readonly IncomingFrame[]): Promise<void> {
		const frames = `the execution for ${batch.length} frame(s)`;
		for (let tries = 1; ; tries++) {
			const isLast = tries >= MAX_TRIES || this.closing.signal.aborted;
			try {
				this.replies.ended(batch, await this.emit(batch));
				return;
			} catch (error) {
				const why = this.setup.peer.redact(wordsOfError(error));
				if (hasBegun(error)) {
					this.log('error', `${frames} did not finish: ${why}`);
					return;
				}
				if (isLast) {
					this.drop(batch, `${frames} did not start, and these frames are dropped: ${why}`);
					return;
				}
				const pauseMs = growingPauseMs(PAUSES, tries);
				this.log('warn', `${frames} did not start: ${why}. Next try in ${pauseMs / 1000} s`);
				// Closing ends the pause early, and the next try is then the last.
				await this.setup.clock.sleep(pauseMs, this.closing.signal);
			}
		}
	}

	private async emit(batch: readonly IncomingFrame[]): Promise<IRun | undefined> {
		const { context } = this;
		const done = context.helpers.createDeferredPromise<IRun>();
		const key = deduplicationKey(context.getWorkflow().id ?? '', context.getNode().id, batch);
		context.emit([batch.map(toItem)], responsesTo(this.replies), done, key);
		return await done.promise;
	}

	/** Gives frames up and forgets their IDs, so that they are accepted if they are sent again. */
	private drop(batch: readonly IncomingFrame[], why: string): void {
		for (const { id } of batch) if (id !== undefined) this.seen.remove(id);
		this.log('error', `${why}${listNames(batch.map(nameOf))}`);
	}
}

/**
 * Replaces the promise of a response. n8n settles it with each response of the execution, from any worker, and finally
 * with one of its own, so every call of `resolve` is used, not only the first.
 */
function responsesTo(replies: Replies): Parameters<ITriggerFunctions['emit']>[1] {
	return {
		promise: new Promise(() => undefined),
		resolve: (response) => replies.responded(response),
		reject: () => undefined,
	};
}

/**
 * The key by which n8n runs a frame only once, even across restarts. It names workflow and node, because all keys of an
 * n8n instance share one index. A batch of several frames has no key, because after a restart the same frames are
 * batched differently.
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
 * Whether an execution started and may have processed the frames. n8n's promise is not rejected if an execution
 * ends with an error, only if it did not start, was stopped or is no longer known.
 */
function hasBegun(error: unknown): boolean {
	if (error instanceof ExecutionCancelledError) return true;
	return error instanceof Error && error.constructor.name === 'ExecutionNotFoundError';
}
