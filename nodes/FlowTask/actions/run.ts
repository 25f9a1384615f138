import { randomInt } from 'crypto';

import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { mapAccounts, type Accounts } from '../../shared/platform/accounts';
import { systemClock, type Clock } from '../../shared/run/clock';
import { toNodeError } from '../../shared/errors/nodeError';
import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { openTable } from '../../shared/dataTable/table';
import { lastWrites } from '../../shared/run/lastWrites';
import { createLedger, ledgerScope, type Ledger } from '../../shared/idempotency/ledger';
import { LEDGER_TABLE } from '../../shared/idempotency/rows';
import { openPlatforms } from '../../shared/platform/platform';
import { PROGRESS_PATHS, type PlatformAccount } from '../../shared/platform/account';
import type { Redact } from '../../shared/text/redact';
import { runIndexOf } from '../../shared/run/retryMemory';
import { isTool } from '../../shared/run/toolMode';
import { createDownload, type Download } from '../../shared/files/download';
import { allowsSocketTo } from '../../shared/http/egress';
import { nativeSocketFactory } from '../../shared/http/webSocket';
import { createRateLimiter } from '../../shared/http/rateLimiter';
import { readKnowledge, type WorkflowKnowledge } from '../workflow/checks';
import { createClient, createTaskApi } from '../api';
import type { TaskLine } from '../tasks/engine';
import { createTaskMemory, createToolMemory, type TaskMemory } from '../tasks/memory';
import { createProgressSockets, type ProgressSockets } from '../tasks/progressSocket';
import type { RandomSeed } from '../workflow/seeds';
import { failRun } from './deliver';
import { readRunOptions, type RunOptions } from './options';

/** One account in a run: limits belong to a key, so each has a rate limiter, a watch and uploads of its own. */
export interface AccountLine extends TaskLine {
	readonly images: TaskMemory['images'];
	readonly owner: string;
}

/** The effects that one run of the node works with; everything below is handed what it needs of them. */
export interface NodeRun {
	/** How each item's account is reached. */
	readonly lines: Accounts<AccountLine>;
	readonly clock: Clock;
	readonly redact: Redact;
	readonly download: Download;
	/** Where the operator set an idempotency key. */
	readonly ledger: Ledger | undefined;
	readonly options: RunOptions;
	/** When the run stops waiting, by the clock's `now()`. */
	readonly deadlineMs: number;
	/** Aborted when the run ends, early or not. */
	readonly ending: AbortController;
	/** Whether the operator stopped the execution. */
	readonly cancelled: () => boolean;
	/** Notes that the node or an item was changed since an earlier try made its task. */
	readonly noteEdited: () => void;
	/** What the operator should read beside the output. */
	readonly remarks: () => string[];
	/** What an earlier try of this run has sent. */
	readonly memory: TaskMemory;
	readonly randomSeed: RandomSeed;
	/** What the operator pasted about the workflow, read once for all items that have the same. */
	readonly knowledge: (definitionSource: unknown, viewSource: unknown) => Result<WorkflowKnowledge>;
	/** Writes what the ledger still has to hear, and says so where that fails; as briefly as a stop allows. */
	readonly closeLedger: () => Promise<void>;
	/** Leaves no timer, socket or transfer behind. */
	readonly close: () => void;
}

/** Requests under way at once, in each lane of each account. */
const CONCURRENCY = 16;
/** Each of them may hold a socket for each of its last tasks; the tasks of further accounts are polled. */
const ACCOUNTS_WITH_SOCKETS = 5;

const LEDGER_BEHIND =
	'The Data Table flow_task_ledger could not be written to the end, so a later execution may not know some of these tasks and asks about their keys.';

const NO_SOCKET =
	'No progress WebSocket could be opened, so the tasks were followed by polling. Check "WebSocket Base URL" and "Progress Path" in the credential.';
const EDITED =
	'The node or its input was changed since an earlier try, so new tasks were submitted for the changed items. The earlier tasks go on at the platform.';

/**
 * The frame of every operation: options and credential are read and checked, `work` is done, and nothing is left
 * behind, however it ends.
 *
 * @param leastMs time that the run has in any case, whatever the timeout of the options
 */
export async function inNodeRun(
	context: IExecuteFunctions,
	work: (run: NodeRun) => Promise<INodeExecutionData[][]>,
	leastMs = 0,
): Promise<INodeExecutionData[][]> {
	const options = readRunOptions(context);
	if (!options.ok) return failRun(context, options.failure);
	const opened = await openNodeRun(context, options.value, leastMs);
	if (!opened.ok) return failRun(context, opened.failure);
	const run = opened.value;
	const { refused } = run.lines;
	try {
		// Nothing is sent beside an item that cannot be.
		if (refused && !context.continueOnFail()) {
			throw toNodeError(context.getNode(), refused.failure, refused.itemIndex);
		}
		return await work(run);
	} finally {
		await run.closeLedger();
		run.close();
	}
}

/** Opens a node run: reads the credential and puts the transport together. */
async function openNodeRun(
	context: IExecuteFunctions,
	options: RunOptions,
	leastMs: number,
): Promise<Result<NodeRun>> {
	const platforms = await openPlatforms(context);
	if (!platforms.ok) return platforms;
	const { redact, varying } = platforms.value;

	const clock = systemClock;
	const cancelSignal = context.getExecutionCancelSignal();
	const ending = new AbortController();
	const end = (): void => {
		ending.abort();
	};
	cancelSignal?.addEventListener('abort', end, { once: true });
	if (cancelSignal?.aborted) end();

	const { signal } = ending;
	const deadlineMs = clock.now() + Math.max(options.timeoutMs, leastMs);
	const withSockets = new Map(
		await Promise.all(
			platforms.value.all
				.slice(0, ACCOUNTS_WITH_SOCKETS)
				.map(async (one) => [one, await openProgress(context, one.account, options, clock)] as const),
		),
	);
	const nodeContext = context.getContext('node');
	const toolMemory = isTool(context) ? createToolMemory(nodeContext) : undefined;
	const memory = toolMemory ?? createTaskMemory(nodeContext, runIndexOf(context));
	const lines = mapAccounts(platforms.value, (platform): AccountLine => {
		const { account, accountId, send } = platform;
		const owner = varying.size > 0 ? accountId : '';
		const rate = { requestsPerSecond: options.requestsPerSecond, concurrency: CONCURRENCY };
		const call = createClient({
			baseUrl: account.baseUrl,
			rateLimiter: createRateLimiter(rate, clock, signal, deadlineMs),
			random: Math.random,
			...{ send, clock, redact, signal, deadlineMs },
		});
		return {
			api: createTaskApi(call, redact),
			sockets: withSockets.get(platform),
			images: owner ? imagesOf(memory.images, owner) : memory.images,
			owner,
		};
	});
	const hasSockets = (): boolean => lines.all.some(({ sockets }) => sockets?.available === true);
	const ledger = openLedger(context, options, { clock, signal, deadlineMs });
	let edited = false;
	return ok({
		lines,
		memory,
		clock,
		redact,
		download: createDownload({
			context,
			clock,
			redact,
			random: Math.random,
			maxBytes: options.maxFileBytes,
			deadlineMs,
			signal,
		}),
		ledger,
		options,
		deadlineMs,
		ending,
		cancelled: () => cancelSignal?.aborted ?? false,
		noteEdited: () => {
			edited = true;
		},
		remarks: () => [
			...(edited ? [EDITED] : []),
			...(options.progressChannel === 'websocket' && !hasSockets() ? [NO_SOCKET] : []),
		],
		randomSeed: (least, most) => (least < most ? randomInt(least, most + 1) : least),
		knowledge: rememberLast(readKnowledge),
		closeLedger: async () => {
			const written = await flushLedger(ledger, clock, cancelSignal);
			if (!written)
				context.addExecutionHints({ message: LEDGER_BEHIND, type: 'warning', location: 'outputPane' });
		},
		close: () => {
			cancelSignal?.removeEventListener('abort', end);
			end();
			toolMemory?.release();
		},
	});
}

/** An image is known to the account that it was uploaded to. */
function imagesOf(images: TaskMemory['images'], owner: string): TaskMemory['images'] {
	return {
		get: (digest) => images.get(`${owner} ${digest}`),
		set: (digest, imageId) => images.set(`${owner} ${digest}`, imageId),
	};
}

/** Where n8n allows no socket to the platform, polling does the work. */
async function openProgress(
	context: IExecuteFunctions,
	account: PlatformAccount,
	options: RunOptions,
	clock: Clock,
): Promise<ProgressSockets | undefined> {
	if (options.progressChannel === 'polling') return undefined;
	if (!(await allowsSocketTo(context.helpers, account.wsBaseUrl))) return undefined;
	const others = PROGRESS_PATHS.filter((path) => path !== account.progressPath);
	return createProgressSockets(
		account.wsBaseUrl,
		[account.progressPath, ...others],
		nativeSocketFactory(clock),
	);
}

function openLedger(
	context: IExecuteFunctions,
	options: RunOptions,
	parts: { readonly clock: Clock; readonly signal: AbortSignal; readonly deadlineMs: number },
): Ledger | undefined {
	if (!options.idempotency) return undefined;
	const { reach, ttlMs } = options.idempotency;
	const workflowId = context.getWorkflow().id ?? '';
	return createLedger(
		{
			scope: ledgerScope('task', reach, { workflowId, nodeId: context.getNode().id }),
			workflowId,
			executionId: context.getExecutionId(),
			ttlMs,
			onUnknown: options.onUnknownSubmit === 'submitAgain' ? 'again' : 'error',
			deadlineMs: parts.deadlineMs,
			claimsAtOnce: claimsAtOnce(options.requestsPerSecond),
		},
		{
			table: openTable(context, LEDGER_TABLE),
			clock: parts.clock,
			random: Math.random,
			signal: parts.signal,
		},
	);
}

/** As many as requests under way; and a claim is good for a minute: no more than can be sent in a third of it. */
function claimsAtOnce(requestsPerSecond: number): number {
	const perThird = requestsPerSecond > 0 ? Math.floor(requestsPerSecond * 20) : CONCURRENCY;
	return Math.max(1, Math.min(CONCURRENCY, perThird));
}

/** @returns false where the ledger could not be written */
async function flushLedger(
	ledger: Ledger | undefined,
	clock: Clock,
	cancelSignal: AbortSignal | undefined,
): Promise<boolean> {
	if (!ledger) return true;
	const flushed = ledger.flush().then(({ ok: written }) => written);
	return await lastWrites(flushed, cancelSignal?.aborted ?? false, clock);
}

/** Keeps the last answer: an export can be a megabyte, and mostly all items have the same. */
function rememberLast<T>(
	read: (first: unknown, second: unknown) => T,
): (first: unknown, second: unknown) => T {
	let last: { readonly first: unknown; readonly second: unknown; readonly answer: T } | undefined;
	return (first, second) => {
		if (last !== undefined && last.first === first && last.second === second) return last.answer;
		const answer = read(first, second);
		last = { first, second, answer };
		return answer;
	};
}

/** A batch larger than its budget is refused as a whole, before anything is submitted. */
export function checkBudget(taskCount: number, maxTasks: number): Result<undefined> {
	if (maxTasks <= 0 || taskCount <= maxTasks) return ok(undefined);
	return fail(
		badInput(
			`This run would submit ${taskCount} tasks, more than the ${maxTasks} that "Max Tasks" allows`,
			'Nothing was submitted. Send fewer items, or raise "Max Tasks" in the node\'s options.',
		),
	);
}
