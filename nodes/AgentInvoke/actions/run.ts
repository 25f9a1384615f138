import { randomUUID } from 'crypto';

import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { readRunAccount, type RunAccount } from '../../shared/platform/runAccount';
import { systemClock } from '../../shared/time/clock';
import { isStartedByChat } from '../../shared/run/startedBy';
import { inRunFrame, type RunFrame } from '../../shared/run/frame';
import { KeyedQueue, type Slot } from '../../shared/time/keyedQueue';
import { LIVENESS } from '../../shared/dataTable/claims';
import { recordLifetime, UNTIL_EXPIRY } from '../../shared/dataTable/lifetime';
import { openTable } from '../../shared/dataTable/table';
import { DayCounts } from '../../shared/effects/dayCounts';
import { readItem } from '../../shared/errors/expressionError';
import { isTool } from '../../shared/errors/nodeError';
import { ok, type Result } from '../../shared/errors/failure';
import { MemoryBudget } from '../../shared/files/memoryBudget';
import type { Ledger } from '../../shared/effects/ledger';
import { openLedger } from '../../shared/effects/openLedger';
import { redactor, type Redact } from '../../shared/text/redact';
import { openRetryMemory, requestFingerprints, type RetryMemory } from '../../shared/run/retryMemory';
import { shortSha256 } from '../../shared/text/sha256';
import { openRetry } from '../../shared/retry/retry';
import { afterStop, authenticated } from '../../shared/http/request';
import { readAgentAccount, type AgentAccount } from '../wire/account';
import { AgentApi } from '../api/api';
import { TURN_TABLE, TurnLog } from '../turnLog/turnLog';
import { TurnOwners } from '../turnLog/turnOwners';
import { InterruptLimit } from '../turns/interruptLimit';
import { SESSION_TABLE } from '../sessions/sessionRows';
import { KnownSessions, SessionStore } from '../sessions/sessionStore';
import type { SessionChoice } from '../turns/turn';
import { ItemForm, type ReadItem } from './inputs';
import { NOT_IN_REQUEST, readAgentOptions, type AgentOptions } from './options';

/** How a run reaches its agent. */
export interface AgentClient {
	/** Identifies the agent that sessions and saved answers belong to. */
	readonly agent: string;
	readonly account: AgentAccount;
	readonly api: AgentApi;
	readonly sessions: SessionStore;
}

/** The session of an item, and the item's slot in the queue of that session; none without a key or session ID. */
export interface QueuedItem {
	readonly session: Result<SessionChoice>;
	readonly slot: Slot | undefined;
	/** When it was queued, by the clock's `now()`. */
	readonly sinceMs: number;
}

/** What an operation works with. */
export interface AgentRun extends RunFrame {
	readonly client: AgentClient;
	readonly options: AgentOptions;
	readonly redact: Redact;
	/** Present if the option "Idempotency Key" is added. */
	readonly ledger: Ledger | undefined;
	readonly memory: RetryMemory;
	readonly fingerprintOf: (itemIndex: number) => string;
	readonly interruptLimit: InterruptLimit;
	/** All items, if the operation uses sessions. */
	readonly queued: readonly QueuedItem[];
	readonly random: () => number;
	/** Present if turns are recorded. */
	readonly turnLog: TurnLog | undefined;
	readonly memoryBudget: MemoryBudget;
	readonly forChat: boolean;
	readonly asTool: boolean;
}

/** For all executions of this n8n process together. */
const KNOWN_SESSIONS = new KnownSessions();

const CREDENTIAL = 'flowAgentApi';

const SESSIONS_NOT_WRITTEN =
	'Some sessions could not be written to the Data Table flow_agent_sessions, so a later execution may not know them. Their IDs are in the output.';

const TURNS_NOT_WRITTEN =
	'Some turns could not be written to the Data Table flow_agent_turns, so their rows are missing there.';
const TURNS_NOT_COUNTED = `${TURNS_NOT_WRITTEN} Until the table can be written again, 'Limit per Day' allows no turns.`;

/**
 * Runs an operation.
 * @param readSession called once per item, because `{{ $now }}` differs each time; absent if no sessions are used
 */
export async function inAgentRun(
	context: IExecuteFunctions,
	work: (run: AgentRun) => Promise<INodeExecutionData[][]>,
	readSession?: ReadItem<SessionChoice>,
): Promise<INodeExecutionData[][]> {
	const queued = readSession ? enterQueue(context, readSession) : [];
	try {
		return await inRunFrame(context, async (frame) => await openAgentRun(context, frame, queued), work);
	} finally {
		for (const { slot } of queued) slot?.leave();
	}
}

/**
 * Shared by all executions of this n8n process: messages of a session are sent in the order in which node runs began.
 */
const QUEUE = new KeyedQueue();

/**
 * Queues up for the sessions of all items before anything is awaited. Agents are not known yet, so there is a queue for
 * each key or session ID of each credential.
 */
function enterQueue(context: IExecuteFunctions, readSession: ReadItem<SessionChoice>): QueuedItem[] {
	const run = Symbol('run');
	const sinceMs = systemClock.now();
	const credentialId = context.getNode().credentials?.[CREDENTIAL]?.id ?? '';
	return context.getInputData().map((_, itemIndex) => {
		const session = readItem(() => readSession(new ItemForm(context, itemIndex)));
		if (!session.ok || session.value.kind === 'new') return { session, slot: undefined, sinceMs };
		const { kind } = session.value;
		const name = session.value.kind === 'mapped' ? session.value.key : session.value.id;
		return { session, slot: QUEUE.enter(JSON.stringify([credentialId, kind, name]), run), sinceMs };
	});
}

async function openAgentRun(
	context: IExecuteFunctions,
	frame: RunFrame,
	queued: readonly QueuedItem[],
): Promise<Result<AgentRun>> {
	const options = readAgentOptions(context);
	if (!options.ok) return options;
	const read = await readRunAccount(context, CREDENTIAL, readAgentAccount);
	if (!read.ok) return read;
	const redact = redactor(read.value.account.secrets);
	const client = openClient(context, read.value, options.value, frame, redact);
	const { maxInterrupts, idempotency, sendAgain } = options.value;
	return ok({
		...frame,
		turnLog: openTurnLog(context, options.value, frame),
		client,
		redact,
		asTool: isTool(context.getNode()),
		options: options.value,
		memoryBudget: new MemoryBudget(),
		ledger: openLedger(context, frame, 'agent', idempotency, { sendAgain, deadlineMs: Infinity }),
		memory: openRetryMemory(context, 'flowAgentRuns', 'turns'),
		fingerprintOf: requestFingerprints(context, NOT_IN_REQUEST),
		interruptLimit: new InterruptLimit(context.getContext('flow'), maxInterrupts),
		queued,
		random: Math.random,
		forChat: isStartedByChat(context),
	});
}

function openClient(
	context: IExecuteFunctions,
	read: RunAccount<AgentAccount>,
	options: AgentOptions,
	frame: RunFrame,
	redact: Redact,
): AgentClient {
	const { clock, over } = frame;
	const { requestsPerSecond, concurrency } = options;
	const { account, fields } = read;
	const agent = agentOf(read, redact, context.getNode().credentials?.[CREDENTIAL]?.id ?? '');
	const limits = { requestsPerSecond, concurrency };
	const api = new AgentApi({
		account,
		...authenticated(context, CREDENTIAL, fields),
		// A new token has a limit of its own.
		retry: openRetry(`agent ${agent} ${shortSha256(account.secrets.join(' '))}`, limits, frame),
		clock,
		redact,
		signal: AbortSignal.any([over, afterStop(context)]),
	});
	return { agent, account, api, sessions: openSessions(context, agent, options, frame) };
}

/**
 * Identifies the agent of a credential. The secrets and the request are included only if they may differ from run to
 * run, because nothing else then tells the agents apart; otherwise, a new token or description would lose all sessions.
 * Tables show the name, so it contains no key that the path may have.
 */
function agentOf(
	{ account, varies }: RunAccount<AgentAccount>,
	redact: Redact,
	credentialId: string,
): string {
	const { baseUrl, invokePath, secrets, wire } = account;
	const name = redact.known(`${baseUrl}${invokePath} ${credentialId}`.trim());
	return varies ? `${name} ${shortSha256(JSON.stringify([secrets, wire.request]))}` : name;
}

function openSessions(
	context: IExecuteFunctions,
	agent: string,
	{ sessionTtlMs: ttlMs }: AgentOptions,
	{ clock, signal, writeLast }: RunFrame,
): SessionStore {
	const workflowId = context.getWorkflow().id ?? '';
	const settings = { agent, workflowId, executionId: context.getExecutionId(), ttlMs };
	const table = openTable(context, SESSION_TABLE, UNTIL_EXPIRY);
	const parts = { table, clock, random: Math.random, signal, liveness: LIVENESS };
	const sessions = new SessionStore(settings, parts, KNOWN_SESSIONS);
	writeLast(async () => await sessions.flush(), SESSIONS_NOT_WRITTEN);
	return sessions;
}

/** The daily usage as counted by all executions of this n8n process together. */
const DAY_COUNTS = new DayCounts();

function openTurnLog(
	context: IExecuteFunctions,
	{ recordTurns, recordLifeMs, turnLimit: limit }: AgentOptions,
	{ clock, writeLast }: RunFrame,
): TurnLog | undefined {
	if (!recordTurns) return undefined;
	const { id: nodeId, name: node } = context.getNode();
	const workflowId = context.getWorkflow().id ?? '';
	const table = openTable(context, TURN_TABLE, recordLifetime(workflowId, recordLifeMs));
	const owners = new TurnOwners({ workflowId, nodeId }, openTable(context, SESSION_TABLE));
	const settings = {
		workflowId,
		nodeId,
		node,
		executionId: context.getExecutionId(),
		timeZone: context.getTimezone(),
		runId: randomUUID(),
		limit,
	};
	const turnLog = new TurnLog(settings, table, owners, clock, DAY_COUNTS);
	writeLast(async () => await turnLog.flush(), limit ? TURNS_NOT_COUNTED : TURNS_NOT_WRITTEN);
	return turnLog;
}
