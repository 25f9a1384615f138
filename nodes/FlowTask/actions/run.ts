import { randomInt } from 'crypto';

import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { PROGRESS_PATHS } from '../../../credentials/platformDefaults';
import { systemClock } from '../../shared/time/clock';
import { inRunFrame, type RunFrame } from '../../shared/run/frame';
import { isTool } from '../../shared/errors/nodeError';
import { ok, type Result } from '../../shared/errors/failure';
import type { Ledger } from '../../shared/effects/ledger';
import { openLedger } from '../../shared/effects/openLedger';
import { openPlatform, type Platform } from '../../shared/platform/platform';
import type { PlatformAccount } from '../../shared/platform/account';
import type { Redact } from '../../shared/text/redact';
import { runIndexOf } from '../../shared/run/retryMemory';
import { createDownload, type Download } from '../../shared/files/download';
import { fileHostRule } from '../../shared/files/fileHosts';
import { allowsSocketTo, Socket } from '../../shared/http/webSocket';
import { openRetry } from '../../shared/retry/retry';
import { createClient, ServiceApi } from '../api/api';
import type { TaskClient } from '../tasks/engine';
import { createTaskMemory, type TaskMemory } from '../tasks/memory';
import { ProgressSockets } from '../api/progressSocket';
import type { RandomSeed } from '../workflow/seeds';
import { readRunOptions, type TaskRunOptions } from './options';
import { knownWorkflows, type KnownWorkflows } from './workflow/knownWorkflows';

/** How a run reaches its account. */
interface AccountClient extends TaskClient {
	readonly baseUrl: string;
	readonly images: TaskMemory['images'];
}

export interface NodeRun extends RunFrame {
	readonly context: IExecuteFunctions;
	readonly client: AccountClient;
	readonly redact: Redact;
	readonly download: Download;
	/** `undefined` if no idempotency key is set. */
	readonly ledger: Ledger | undefined;
	readonly options: TaskRunOptions;
	/** When the run stops waiting, by the clock's `now()`. */
	readonly deadlineMs: number;
	readonly hints: Set<string>;
	readonly memory: TaskMemory;
	readonly randomSeed: RandomSeed;
	readonly workflows: KnownWorkflows;
}

/** Concurrent requests in each lane. */
const CONCURRENCY = 16;

/**
 * Opens a node run for an operation, and closes it afterwards.
 * @param leastMs the least time that the run has, even if the timeout in the options is shorter
 */
export async function inNodeRun(
	context: IExecuteFunctions,
	work: (run: NodeRun) => Promise<INodeExecutionData[][]>,
	leastMs = 0,
): Promise<INodeExecutionData[][]> {
	return await inRunFrame(context, async (frame) => await openNodeRun(context, frame, leastMs), work);
}

async function openNodeRun(
	context: IExecuteFunctions,
	frame: RunFrame,
	leastMs: number,
): Promise<Result<NodeRun>> {
	const read = readRunOptions(context);
	if (!read.ok) return read;
	const options = read.value;
	const platform = await openPlatform(context);
	if (!platform.ok) return platform;
	const { redact, account } = platform.value;
	const { clock, signal } = frame;
	const deadlineMs = clock.now() + Math.max(options.timeoutMs, leastMs);
	const runIndex = isTool(context.getNode()) ? 'tool' : runIndexOf(context);
	const memory = createTaskMemory(context.getContext('node'), runIndex);
	frame.over.addEventListener('abort', () => memory.release());
	const opened = { ...frame, context, options, redact, deadlineMs, memory };
	return ok({
		...opened,
		client: await openClient(platform.value, opened),
		download: createDownload({
			helpers: context.helpers,
			clock,
			redact,
			deadlineMs,
			signal,
			random: Math.random,
			maxBytes: options.maxFileBytes,
		}),
		ledger: openLedger(context, frame, 'task', options.idempotency, {
			deadlineMs,
			sendAgain: options.sendAgain,
			claimsAtOnce: CONCURRENCY,
		}),
		hints: new Set<string>(),
		randomSeed: (least, most) => (least < most ? randomInt(least, most + 1) : least),
		workflows: knownWorkflows(context, account.savedWorkflows),
	});
}

async function openClient(
	{ account, accountId, varies, send }: Platform,
	run: RunFrame & Pick<NodeRun, 'context' | 'options' | 'redact' | 'deadlineMs' | 'memory'>,
): Promise<AccountClient> {
	const { context, clock, options, redact, deadlineMs, memory } = run;
	const { requestsPerSecond } = options;
	const { baseUrl, busyTerms, fileHosts } = account;
	const retry = openRetry(`task ${accountId}`, { requestsPerSecond, concurrency: CONCURRENCY }, run);
	const call = createClient({ baseUrl, busyTerms, send, redact }, retry, clock, deadlineMs);
	// Calls of an agent's tool share a memory, and an uploaded image exists only in the account that it was uploaded to.
	const nameOf = (digest: string): string => `${accountId} ${digest}`;
	return {
		baseUrl,
		api: new ServiceApi(call, redact),
		mayFetch: fileHostRule(baseUrl, fileHosts),
		sockets: await openSockets(context, account, options),
		images: {
			get: (digest) => memory.images.get(nameOf(digest)),
			set: (digest, imageId) => memory.images.set(nameOf(digest), imageId),
		},
		// A new key in a plain credential must not change what an idempotency key stands for.
		account: varies ? accountId : undefined,
	};
}

/** @returns `undefined` if the operator or n8n allows no socket, so that tasks are only polled */
async function openSockets(
	context: IExecuteFunctions,
	account: PlatformAccount,
	{ progressChannel }: TaskRunOptions,
): Promise<ProgressSockets | undefined> {
	if (progressChannel === 'polling') return undefined;
	if (!(await allowsSocketTo(context.helpers, account.wsBaseUrl))) return undefined;
	const paths = [...new Set([account.progressPath, ...PROGRESS_PATHS])];
	return new ProgressSockets(
		account.wsBaseUrl,
		paths,
		(url, events) => new Socket({ url }, events, systemClock),
	);
}
