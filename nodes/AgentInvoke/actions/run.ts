import { createHash } from 'crypto';

import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { mapAccounts, readAccounts, type Accounts } from '../../shared/platform/accounts';
import { isStartedByChat } from '../../shared/run/chatTrigger';
import { systemClock, type Clock } from '../../shared/run/clock';
import { openTable } from '../../shared/dataTable/table';
import { toNodeError } from '../../shared/errors/nodeError';
import { failRun } from '../../shared/run/failRun';
import { ok, type Result } from '../../shared/errors/failure';
import { createHeldFiles, type HeldFiles } from '../../shared/files/heldFiles';
import { lastWrites } from '../../shared/run/lastWrites';
import { createLedger, ledgerScope, type Ledger } from '../../shared/idempotency/ledger';
import { LEDGER_TABLE } from '../../shared/idempotency/rows';
import { redactor, type Redact } from '../../shared/text/redact';
import { createRunMemory, runIndexOf } from '../../shared/run/retryMemory';
import { isTool } from '../../shared/run/toolMode';
import { createRetry } from '../../shared/http/retry';
import { authenticatedOpen, authenticatedSend, credentialOf } from '../../shared/http/request';
import { createIdleTimeouts } from '../../shared/http/idleTimeout';
import { createRateLimiter } from '../../shared/http/rateLimiter';
import { readAgentAccount, type AgentAccount } from '../account';
import { createAgentApi, type AgentApi } from '../api';
import { createAgentMemory, NO_MEMORY, type AgentMemory } from '../memory';
import { createInterruptRounds, type InterruptRounds } from '../rounds';
import { createSessionStore, SESSION_TABLE, type SessionStore } from '../sessions';
import { readAgentOptions, type AgentOptions } from './options';

/** One account in a run. Limits belong to a token, so each has a rate limiter of its own. */
export interface AgentLine {
	/** Which agent this is: what sessions and recorded answers belong to. */
	readonly agent: string;
	readonly account: AgentAccount;
	readonly api: AgentApi;
	readonly sessions: SessionStore;
}

/** The effects that one run of the node works with. */
export interface AgentRun {
	/** The agent of each item. */
	readonly lines: Accounts<AgentLine>;
	readonly options: AgentOptions;
	readonly clock: Clock;
	readonly redact: Redact;
	/** Where the operator set an idempotency key. */
	readonly ledger: Ledger | undefined;
	readonly memory: AgentMemory;
	readonly rounds: InterruptRounds;
	/** Shared by all agents of the run. */
	readonly heldFiles: HeldFiles;
	/** Aborted when the run ends, early or not. */
	readonly signal: AbortSignal;
	readonly cancelled: () => boolean;
	readonly forChat: boolean;
	readonly asTool: boolean;
}

const CREDENTIAL = 'flowAgentApi';
/** How late an idle timeout may strike. */
const IDLE_CHECK_MS = 500;

const TABLE_BEHIND =
	'A Data Table could not be written to the end, so a later execution may not know some of these sessions or answers. The session IDs are in the output.';

/**
 * The frame of every operation: options and credential are read and checked, `work` is done, and nothing is left
 * behind, however it ends.
 */
export async function inAgentRun(
	context: IExecuteFunctions,
	work: (run: AgentRun) => Promise<INodeExecutionData[][]>,
): Promise<INodeExecutionData[][]> {
	if (context.getInputData().length === 0) return [[]];
	const ending = new AbortController();
	const opened = await openAgentRun(context, ending.signal);
	if (!opened.ok) return failRun(context, opened.failure);
	const run = opened.value;
	const cancelSignal = context.getExecutionCancelSignal();
	const end = (): void => {
		ending.abort();
	};
	cancelSignal?.addEventListener('abort', end, { once: true });
	if (cancelSignal?.aborted) end();
	try {
		const { refused } = run.lines;
		// Nothing is sent beside an item that cannot be.
		if (refused && !context.continueOnFail()) {
			throw toNodeError(context.getNode(), refused.failure, refused.itemIndex);
		}
		return await work(run);
	} finally {
		const isWritten = await flush(run);
		if (!isWritten) {
			context.addExecutionHints({ message: TABLE_BEHIND, type: 'warning', location: 'outputPane' });
		}
		cancelSignal?.removeEventListener('abort', end);
		end();
	}
}

async function openAgentRun(context: IExecuteFunctions, signal: AbortSignal): Promise<Result<AgentRun>> {
	const options = readAgentOptions(context);
	if (!options.ok) return options;
	const accounts = await readAccounts(context, CREDENTIAL, readAgentAccount);
	if (!accounts.ok) return accounts;
	const clock = systemClock;
	const redact = redactor(accounts.value.all.flatMap(({ account }) => account.secrets));
	const { requestsPerSecond, concurrency, maxInterrupts } = options.value;
	const cancelSignal = context.getExecutionCancelSignal();
	const isTokenOfItem = accounts.value.varying.has('agentToken');
	const lines = mapAccounts(accounts.value, ({ account, fields }): AgentLine => {
		const credential = credentialOf(context, CREDENTIAL, fields);
		const agent = agentOf(account, credential.id, isTokenOfItem);
		const api = createAgentApi({
			account,
			open: authenticatedOpen(context, CREDENTIAL, credential),
			send: authenticatedSend(context, CREDENTIAL, credential),
			retry: createRetry({
				rateLimiter: createRateLimiter({ requestsPerSecond, concurrency }, clock, signal),
				...{ clock, signal, random: Math.random },
			}),
			idleTimeouts: createIdleTimeouts(clock, IDLE_CHECK_MS, signal),
			...{ clock, redact, signal },
		});
		return { agent, account, api, sessions: openSessions(context, agent, options.value) };
	});
	const memory = createRunMemory(context.getContext('node'), 'flowAgentRuns', runIndexOf(context));
	return ok({
		...{ lines, clock, redact, signal, options: options.value },
		heldFiles: createHeldFiles(),
		ledger: openLedger(context, options.value, signal),
		// n8n counts each try of a tool as a run, and calls at the same time as one: what is remembered under its index
		// may be another person's answer.
		memory: isTool(context) ? NO_MEMORY : createAgentMemory(memory),
		rounds: createInterruptRounds(context.getContext('flow'), maxInterrupts),
		cancelled: () => cancelSignal?.aborted ?? false,
		forChat: isStartedByChat(context),
		asTool: isTool(context),
	});
}

/**
 * Which agent a credential leads to. Not by its token, for a new one would lose all sessions; but where each item has
 * a token of its own, nothing else tells the agents apart.
 */
function agentOf(
	{ baseUrl, invokePath, secrets }: AgentAccount,
	credentialId: string,
	isTokenOfItem: boolean,
): string {
	const name = `${baseUrl}${invokePath} ${credentialId}`.trim();
	if (!isTokenOfItem) return name;
	return `${name} ${createHash('sha256').update(secrets.join(' ')).digest('base64url').slice(0, 22)}`;
}

function openSessions(context: IExecuteFunctions, agent: string, options: AgentOptions): SessionStore {
	return createSessionStore(
		{
			agent,
			workflowId: context.getWorkflow().id ?? '',
			executionId: context.getExecutionId(),
			ttlMs: options.sessionTtlMs,
		},
		openTable(context, SESSION_TABLE),
		systemClock,
	);
}

function openLedger(
	context: IExecuteFunctions,
	{ idempotency, retryAmbiguous }: AgentOptions,
	signal: AbortSignal,
): Ledger | undefined {
	if (!idempotency) return undefined;
	const workflowId = context.getWorkflow().id ?? '';
	return createLedger(
		{
			scope: ledgerScope('agent', idempotency.reach, { workflowId, nodeId: context.getNode().id }),
			...{ workflowId, executionId: context.getExecutionId(), ttlMs: idempotency.ttlMs },
			onUnknown: retryAmbiguous ? 'again' : 'error',
			deadlineMs: Infinity,
		},
		{ table: openTable(context, LEDGER_TABLE), clock: systemClock, random: Math.random, signal },
	);
}

/** @returns false where something could not be written */
async function flush({ lines, ledger, cancelled }: AgentRun): Promise<boolean> {
	const sessions = lines.all.map(async (line) => await line.sessions.flush());
	const flushed = Promise.all([...sessions, ledger?.flush()]).then((results) =>
		results.every((result) => result?.ok !== false),
	);
	return await lastWrites(flushed, cancelled(), systemClock);
}
