import { randomUUID } from 'crypto';

import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { itemsByAccount } from '../../shared/platform/accounts';
import { failRun } from '../../shared/errors/nodeError';
import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { readPreviewSwitches, shownRequest, withPreviews } from '../../shared/form/previewRequest';
import { jsonText, type JsonObject } from '../../shared/text/json';
import { redactJson } from '../../shared/text/redact';
import { openChatStreams, type ChatStream } from '../../shared/run/chatStream';
import { showHint } from '../../shared/run/deliver';
import { overBudget } from '../../shared/run/frame';
import { requestFingerprints } from '../../shared/run/retryMemory';
import { reportTokens } from '../../shared/run/tokenUsage';
import { readItem, workItem } from '../../shared/errors/expressionError';
import { addressOf, openRequest, type OpenRequest } from '../wire/request';
import { placeholdersOf } from '../wire/templates';
import type { EndedTurn } from '../turnLog/turnLog';
import { explainTable } from '../sessions/sessionStore';
import { CallLimit } from '../api/callLimit';
import type { AgentTurn, SessionChoice, TurnOrder } from '../turns/turn';
import { runTurns, type TurnOutcome } from '../turns/runTurns';
import { digestFiles, previewFiles, uploadFiles } from './files';
import { readTurn, type ReadItem, type ReadTurn, type Said } from './inputs';
import { inAgentRun, type AgentRun } from './run';
import { AGENT_OPTIONS } from './options';
import { deliverTurns, type DeliveredTurn } from './deliver';

const NO_KEY =
	'Some items have no session key, so each of them began a new session. Check "Session Key" if they should continue one.';

/** Takes the turns of all items. @param readSession called once per item, because `{{ $now }}` differs each time */
export async function runItems(
	context: IExecuteFunctions,
	readSession: ReadItem<SessionChoice>,
	readSaid: ReadItem<Said>,
): Promise<INodeExecutionData[][]> {
	const items = context.getInputData();
	const sessions = items.map((_, itemIndex) => readItem(() => readSession(context, itemIndex)));
	const work = async (run: AgentRun): Promise<INodeExecutionData[][]> => {
		const turns = sessions.map((session, itemIndex) =>
			readItem(() => readTurn(context, run, itemIndex, session, readSaid)),
		);
		return await takeTurns(context, run, turns);
	};
	return await inAgentRun(context, work, sessions);
}

/** Takes the turns that could be read, or shows what they would send, and delivers the results. */
async function takeTurns(
	context: IExecuteFunctions,
	run: AgentRun,
	prepared: ReadonlyArray<Result<ReadTurn>>,
): Promise<INodeExecutionData[][]> {
	const isShown = readPreviewSwitches(context);
	const previewed: ItemTurns = new Map();
	const asked: ItemTurns = new Map();
	for (const [itemIndex, item] of prepared.entries()) {
		const shown = isShown[itemIndex] ?? ok(false);
		if (!shown.ok) asked.set(itemIndex, shown);
		else (shown.value ? previewed : asked).set(itemIndex, item);
	}
	for (const group of [previewed, asked]) {
		const calls = [...group.values()].filter((item) => item.ok || context.continueOnFail()).length;
		const { maxInvocations } = run.options;
		const refusal = overBudget(calls, maxInvocations, `call the agent ${calls} times`, 'Max Invocations');
		if (refusal) return failRun(context, refusal);
	}
	// A message that is only previewed must not hold up those after it in the queue.
	for (const itemIndex of previewed.keys()) run.slots[itemIndex]?.leave();
	// In strict order, a turn reads its session only after it has taken the row of its key.
	const isStrict = run.options.turnOrder === 'strict';
	const loaded = await loadSessions(run, isStrict ? previewed : new Map(prepared.entries()));
	if (!loaded.ok) return failRun(context, loaded.failure);
	const previews = new Map(
		[...previewed].map(([itemIndex, item]) => [itemIndex, item.ok ? previewOf(run, item.value) : item]),
	);
	if (asked.size === 0) return outputsOf(run, [], previews);
	const taken = await takeAll(context, run, asked);
	if (!taken.ok) return failRun(context, taken.failure);
	return outputsOf(run, deliverTurns(context, taken.value, run), previews);
}

/** The outputs of the turns; previews go to the first one. */
function outputsOf(
	{ asTool }: AgentRun,
	[answers = [], interrupts = []]: INodeExecutionData[][],
	previews: ReadonlyMap<number, Result<JsonObject>>,
): INodeExecutionData[][] {
	const first = withPreviews(answers, previews);
	return asTool ? [first] : [first, interrupts];
}

/** Turns by item, for all items or some of them. */
type ItemTurns = Map<number, Result<ReadTurn>>;

const NOT_ASKED = {
	kind: 'notSubmitted',
	message: 'The agent was not asked for this item, because another item failed',
	advice: 'Nothing was sent for this item.',
} as const;

const STOPPED = 'The execution was stopped before the whole answer had arrived';

async function takeAll(
	context: IExecuteFunctions,
	run: AgentRun,
	read: ItemTurns,
): Promise<Result<DeliveredTurn[]>> {
	const chatStreamOf = openChatStreams(context, run.redact);
	const stopAtFailure = !context.continueOnFail();
	const prepared = stopAtFailure ? allOrNone(read) : read;
	const turns = agentTurns(context, run, prepared, async (itemIndex, text) => {
		if (!run.signal.aborted) await chatStreamOf(itemIndex).write(text);
	});
	const counted = await openBudget(run, turns);
	if (!counted.ok) return counted;
	await endUnasked(context.getInputData().length, prepared, chatStreamOf);
	const received = async (outcome: TurnOutcome): Promise<void> => {
		reportEnd(context, run, outcome);
		if (!run.signal.aborted) await endStream(chatStreamOf(outcome.turn.itemIndex), outcome.result);
	};
	// No one watches a stopped execution, so its streams end, although answers to calls already sent are still read.
	const endStreams = (): void => {
		for (const { itemIndex } of turns) void chatStreamOf(itemIndex).fail(STOPPED);
	};
	if (run.signal.aborted) endStreams();
	else run.signal.addEventListener('abort', endStreams, { once: true });
	// The process has one queue per credential and key; a credential with expressions may lead to several agents, which
	// that queue would mix.
	const reservesPositions = run.clients.varying.size === 0;
	const outcomes = await runTurns(turns, { ...run.options, stopAtFailure, reservesPositions }, run, received);
	if (run.budget?.hint) showHint(context, run.budget.hint);
	if ([...prepared.values()].some((item) => item.ok && item.value.lacksKey))
		showHint(context, NO_KEY, 'info');
	const hinted = run.cancelled() ? outcomes : await addSessionHints(run, outcomes);
	const delivered = deliveredTurns(prepared, hinted);
	if (delivered.every(({ result }) => result.ok)) run.memory.clear();
	return ok(delivered);
}

/** If one item's failure ends the run anyway, the agent is not asked for the other items either. */
function allOrNone(read: ItemTurns): ItemTurns {
	if ([...read.values()].every((item) => item.ok)) return read;
	return new Map([...read].map(([itemIndex, item]) => [itemIndex, item.ok ? fail(NOT_ASKED) : item]));
}

/** The streams of items that are not asked must end too, or the items after them would wait forever. */
async function endUnasked(
	itemCount: number,
	prepared: ItemTurns,
	chatStreamOf: (itemIndex: number) => ChatStream,
): Promise<void> {
	for (let itemIndex = 0; itemIndex < itemCount; itemIndex++) {
		const item = prepared.get(itemIndex);
		if (!item) await chatStreamOf(itemIndex).end();
		else if (!item.ok) await chatStreamOf(itemIndex).fail(item.failure.message);
	}
}

function deliveredTurns(prepared: ItemTurns, outcomes: readonly TurnOutcome[]): DeliveredTurn[] {
	const resultOf = new Map(outcomes.map(({ turn, result }) => [turn.itemIndex, result]));
	return [...prepared].map(([itemIndex, item]) => {
		if (!item.ok) return { itemIndex, result: item, simplify: true, previewResponse: false };
		const { simplify, previewResponse } = item.value;
		return { itemIndex, result: resultOf.get(itemIndex) ?? fail(NOT_ASKED), simplify, previewResponse };
	});
}

const NO_SESSION =
	'The answer names no session of at most 2,000 characters, so the next message with this key begins a new one. Point "answer.session" of the description in the FlowAgent credential to the session ID. If the answer has none, set "Session" to "By ID" if your deployment lets you choose the IDs, otherwise to "New Each Time".';
const NOT_KEPT = 'The session of this answer is not kept for its key:';
const REPLACED = `${NOT_KEPT} this execution was presumed dead while it opened the session, and another one opened the session that is kept.`;
const REMOVED = `${NOT_KEPT} its row in the Data Table flow_agent_sessions was removed or changed while the agent answered.`;
const OVERTAKEN =
	'Another message of this key may have been sent at the same time: this execution was presumed dead while the agent answered.';

/** Adds a hint to answers whose session is not kept for the key, or may have been used by another execution meanwhile. */
async function addSessionHints(
	{ clients, options }: AgentRun,
	outcomes: readonly TurnOutcome[],
): Promise<TurnOutcome[]> {
	await Promise.all(clients.all.map(async ({ sessions }) => await sessions.settle()));
	return outcomes.map(({ turn, result }) => {
		const { session, client } = turn;
		if (!result.ok || session.kind !== 'mapped') return { turn, result };
		const { reply, session: answered } = result.value;
		const isLost = client.sessions.isLost(session.key);
		const next = client.sessions.find(session.key);
		const why = answered.id ? isLost && whyNotKept(answered.id, next, options.turnOrder) : NO_SESSION;
		const hint = [reply.hint, why].filter(Boolean).join(' ');
		return { turn, result: ok({ ...result.value, reply: { ...reply, hint } }) };
	});
}

/** What the loss of the key's row means for an answer; empty if nothing. @param nextId the key's session now */
function whyNotKept(answeredId: string, nextId: string, turnOrder: TurnOrder): string {
	if (nextId === answeredId) return turnOrder === 'strict' ? OVERTAKEN : '';
	return nextId ? REPLACED : REMOVED;
}

/** Opens the daily budget, if there is one. If usage cannot be counted, nothing is sent. */
async function openBudget(run: AgentRun, turns: readonly AgentTurn[]): Promise<Result<unknown>> {
	const { budget, memory } = run;
	if (!budget) return ok(undefined);
	const due = turns.filter(({ itemIndex, fingerprint }) => !memory.recall(itemIndex, fingerprint));
	return await budget.open(turns, due);
}

/** The only place that reports the end of a turn: to the turn log, budget, call limit and n8n's token count. */
function reportEnd(context: IExecuteFunctions, run: AgentRun, { turn, result }: TurnOutcome): void {
	const { clock, turnLog, budget } = run;
	const ended: EndedTurn = {
		...turn,
		result,
		isCancelled: run.cancelled(),
		ended: { nowMs: clock.now(), wallMs: clock.wallNow() },
	};
	turn.calls.ended();
	turnLog?.add(ended);
	budget?.ended(ended);
	if (result.ok && turn.calls.made > 0) reportTokens(context, result.value.reply.usage);
}

function agentTurns(
	context: IExecuteFunctions,
	run: AgentRun,
	prepared: ItemTurns,
	onDelta: (itemIndex: number, text: string) => Promise<void>,
): AgentTurn[] {
	// An unreadable turn leaves its queue, so that later turns of the session do not wait for it.
	for (const [itemIndex, item] of prepared) if (!item.ok) run.slots[itemIndex]?.leave();
	const readable = [...prepared.values()].flatMap((item) => (item.ok ? [item.value] : []));
	const fingerprintOf = requestFingerprints(context, AGENT_OPTIONS, ['simplify']);
	const limit = new CallLimit(run.options.maxInvocations, readable.length, run.clock);
	return readable.map((turn) => {
		const { itemIndex, client, session, idempotencyKey: key } = turn;
		return {
			itemIndex,
			client,
			session,
			isResume: turn.said.kind === 'results',
			idempotency:
				key === undefined ? undefined : { key, payload: async () => await payloadOf(context, turn) },
			slot: run.slots[itemIndex],
			fingerprint: fingerprintOf(itemIndex),
			keepRaw: !turn.simplify,
			calls: limit.forTurn(),
			prepare: async () => {
				const admitted = await run.budget?.admit(turn);
				return admitted?.ok === false ? admitted : await requestOf(context, run, turn);
			},
			onDelta: async (text) => await onDelta(itemIndex, text),
		};
	});
}

/** Everything that an idempotency key stands for, with files as digests. */
async function payloadOf(
	context: IExecuteFunctions,
	{ itemIndex, session, said, extraBody }: ReadTurn,
): Promise<Result<string>> {
	const resumedId = session.kind === 'explicit' ? session.id : '';
	const asked = said.kind === 'message' ? [said.message, session] : [said, resumedId];
	const digests = await digestFiles(context, itemIndex, said.kind === 'message' ? said.files : []);
	if (!digests.ok) return digests;
	const text = jsonText([...asked, extraBody, digests.value]);
	if (text !== undefined) return ok(text);
	return failInput(
		"The item's request is nested too deeply",
		'Check "Extra Body". Nothing was sent for this item.',
	);
}

/** Writes what was not streamed yet, so that the chat does not stay empty, and ends the stream. */
async function endStream(chatStream: ChatStream, result: TurnOutcome['result']): Promise<void> {
	if (!result.ok) {
		await chatStream.fail(result.failure.message);
		return;
	}
	const { recalled, reply } = result.value;
	const { answer, interrupts } = reply;
	const asked = interrupts[0]?.question ?? '';
	const question = asked === answer ? '' : asked;
	const rest = [chatStream.hasBegun ? '' : answer, question].filter(Boolean).join('\n\n');
	// A recalled answer was already streamed by the try that asked.
	if (rest && !recalled) await chatStream.write(rest);
	await chatStream.end();
}

/** Uploads the item's files and builds its request. The session ID is filled in when the call is made. */
async function requestOf(
	context: IExecuteFunctions,
	run: AgentRun,
	{ itemIndex, said, stream, extraBody, client }: ReadTurn,
): Promise<Result<OpenRequest>> {
	return await workItem(async () => {
		const form = { stream, extraBody, uuid: randomUUID() };
		const { wire } = client.account;
		if (said.kind === 'results') return openRequest(said, form, wire);
		const files = await uploadFiles(context, itemIndex, said.files, run);
		return files.ok ? openRequest({ ...said, files: files.value }, form, wire) : files;
	});
}

/** Sessions belong to an agent, so each agent looks up only the keys of its own items. */
async function loadSessions({ clients }: AgentRun, prepared: ItemTurns): Promise<Result<undefined>> {
	const loads = [...itemsByAccount(clients, prepared.keys())].map(async ([{ sessions }, itemIndexes]) => {
		const keys = itemIndexes.flatMap((itemIndex) => {
			const item = prepared.get(itemIndex);
			return item?.ok && item.value.session.kind === 'mapped' ? [item.value.session.key] : [];
		});
		return await sessions.load([...new Set(keys)]);
	});
	const loaded = await Promise.all(loads);
	return explainTable(loaded.find(({ ok: isOk }) => !isOk) ?? ok(undefined));
}

function previewOf(
	{ redact }: AgentRun,
	{ session, client, said, stream, extraBody }: ReadTurn,
): Result<JsonObject> {
	const form = { stream, extraBody, uuid: SHOWN_UUID };
	const turn = said.kind === 'message' ? { ...said, files: previewFiles(said.files) } : said;
	const { account, sessions } = client;
	const open = openRequest(turn, form, account.wire);
	if (!open.ok) return open;
	const known = session.kind === 'mapped' ? sessions.find(session.key) : '';
	const { body, headers, path } = open.value(session.kind === 'explicit' ? session.id : known);
	const shownHeaders = Object.entries(headers).map(([name, value]) => {
		const template = account.wire.request.headers[name] ?? '';
		const isOfCall = [...placeholdersOf(template)].some((placeholder) => template === `$${placeholder}`);
		const isShown = HARMLESS_HEADER.test(name) || isOfCall;
		return [name, isShown ? value : FROM_CREDENTIAL] as const;
	});
	const more = Object.fromEntries(shownHeaders);
	const shown = shownRequest(addressOf(account, { path }), 'agent token', body, more);
	return ok(redactJson(shown, redact.known));
}

/** Each call has a UUID of its own, which a preview cannot know. */
const SHOWN_UUID = '<UUID of the call>';

/** Other headers with text of their own may hold a secret of a gateway, which not everyone who previews may read. */
const HARMLESS_HEADER = /^(?:accept|accept-language|content-type|user-agent)$/i;
const FROM_CREDENTIAL = '<from the credential>';
