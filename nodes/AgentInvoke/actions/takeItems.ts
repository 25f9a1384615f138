import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failRun } from '../../shared/run/failRun';
import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import type { JsonObject } from '../../shared/text/json';
import { createChatStreams, type ChatStream } from '../../shared/run/chatStream';
import { requestFingerprints } from '../../shared/run/retryMemory';
import { explainExpressionError, readItem } from '../../shared/errors/expressionError';
import { invokeBody, withSession, type Turn } from '../request';
import { explainTable } from '../sessions';
import { takeTurns, type AgentTurn, type SessionChoice, type TurnOutcome } from '../turns';
import { readExtraBody } from './inputs';
import type { AgentLine, AgentRun } from './run';
import { AGENT_OPTIONS } from './options';
import { deliverTurns, type DeliveredTurn } from './deliver';

/** What one item asks, read from the form and checked; nothing is sent yet. */
export interface PreparedTurn {
	readonly session: SessionChoice;
	readonly isResume: boolean;
	readonly stream: boolean;
	readonly idempotency: AgentTurn['idempotency'];
	/** Uploads what must be uploaded. */
	readonly turn: () => Promise<Result<Turn>>;
	/** What a preview shows of it, where nothing is uploaded. */
	readonly previewed: Turn;
}

/** With what is read for the output, now and not once the agent has been asked. */
interface ReadTurn extends PreparedTurn {
	readonly line: AgentLine;
	readonly simplify: boolean;
	readonly lacksKey: boolean;
}

export type PrepareTurn = (itemIndex: number) => Result<PreparedTurn>;

const NO_KEY =
	'Some items have no session key, so each of them began a new session. Check "Session Key" if they were to go on with one.';

/**
 * Reads every item first, then takes the turns of all good ones, then delivers. Nothing is sent before every item
 * was read.
 */
export async function takeItems(
	context: IExecuteFunctions,
	run: AgentRun,
	prepareTurn: PrepareTurn,
): Promise<INodeExecutionData[][]> {
	const items = context.getInputData();
	const prepared = items.map((_, itemIndex) =>
		readItem(() => readTurn(context, run, prepareTurn, itemIndex)),
	);
	const refusal = refuseBatch(prepared, run, context.continueOnFail());
	if (refusal) return failRun(context, refusal.failure);
	const loaded = await loadSessions(run, prepared);
	if (!loaded.ok) return failRun(context, loaded.failure);
	if (context.getNodeParameter('previewRequest', 0, false) === true) {
		const previews = preview(context, prepared);
		return run.asTool ? [previews] : [previews, []];
	}

	const fingerprintOf = requestFingerprints(context, AGENT_OPTIONS, ['simplify']);
	const chatStreamOf = openChatStreams(context, run, items.length);
	const turns = prepared.flatMap((item, itemIndex): AgentTurn[] => {
		if (!item.ok) return [];
		const { line, session, isResume, idempotency, simplify } = item.value;
		return [
			{
				...{ itemIndex, line, session, isResume, idempotency },
				fingerprint: fingerprintOf(itemIndex),
				keepRaw: !simplify,
				prepare: async () => await bodyOf(context, item.value, itemIndex),
				bodyFor: (body, sessionId) => withSession(body, sessionId, line.account.deployment),
				onDelta: async (text) => await chatStreamOf?.(itemIndex).write(text),
			},
		];
	});
	// Where the first failure ends the run anyway, nobody is asked beside an item that cannot be.
	const hopeless = turns.length < prepared.length && !context.continueOnFail();
	await sayNotAsked(prepared, hopeless, chatStreamOf);
	const outcomes = await answer(context, run, hopeless ? [] : turns, chatStreamOf);
	if (prepared.some((item) => item.ok && item.value.lacksKey)) {
		context.addExecutionHints({ message: NO_KEY, type: 'info', location: 'outputPane' });
	}
	const outcomeOf = new Map(outcomes.map((outcome) => [outcome.itemIndex, outcome]));
	const all = prepared.map((item, itemIndex): DeliveredTurn => {
		if (!item.ok) return { itemIndex, result: item, simplify: true };
		const { simplify } = item.value;
		return { ...(outcomeOf.get(itemIndex) ?? { itemIndex, result: fail(NOT_ASKED) }), simplify };
	});
	if (all.every(({ result }) => result.ok)) run.memory.clear();
	return deliverTurns(context, all, run);
}

const NOT_ASKED = {
	kind: 'notSubmitted',
	message: 'The agent was not asked for this item, because another item could not be read',
	advice: 'Nothing was sent for it.',
} as const;

type ChatStreamOf = (itemIndex: number) => ChatStream;

/** Nothing will come of these items: what those behind them say would wait for them forever. */
async function sayNotAsked(
	prepared: ReadonlyArray<Result<PreparedTurn>>,
	hopeless: boolean,
	chatStreamOf: ChatStreamOf | undefined,
): Promise<void> {
	for (const [itemIndex, item] of prepared.entries()) {
		if (!item.ok) await chatStreamOf?.(itemIndex).fail(item.failure.message);
		else if (hopeless) await chatStreamOf?.(itemIndex).fail(NOT_ASKED.message);
	}
}

/** A tool's text goes to the agent that called it, which speaks for itself. */
function openChatStreams(context: IExecuteFunctions, run: AgentRun, count: number): ChatStreamOf | undefined {
	if (run.asTool || !context.isStreaming()) return undefined;
	const chatStreamOf = createChatStreams(
		async (kind, itemIndex, text) => context.sendChunk(kind, itemIndex, text),
		count,
		run.redact,
	);
	const chatStreams = new Map<number, ChatStream>();
	return (itemIndex) => {
		const known = chatStreams.get(itemIndex) ?? chatStreamOf(itemIndex);
		chatStreams.set(itemIndex, known);
		return known;
	};
}

async function answer(
	context: IExecuteFunctions,
	run: AgentRun,
	turns: readonly AgentTurn[],
	chatStreamOf: ChatStreamOf | undefined,
): Promise<TurnOutcome[]> {
	const { concurrency, timeoutMs, attempts, retryAmbiguous, renewExpired } = run.options;
	const stopAtFailure = !context.continueOnFail();
	const settings = { concurrency, timeoutMs, attempts, retryAmbiguous, renewExpired, stopAtFailure };
	const said = new Set<number>();
	const spoken = turns.map((turn) => ({
		...turn,
		onDelta: async (text: string) => {
			said.add(turn.itemIndex);
			await turn.onDelta(text);
		},
	}));
	const { ledger, memory, rounds, signal } = run;
	const received = async ({ itemIndex, result }: TurnOutcome): Promise<void> => {
		const chatStream = chatStreamOf?.(itemIndex);
		if (!chatStream) return;
		if (!result.ok) {
			await chatStream.fail(result.failure.message);
			return;
		}
		// Whoever listens heard it in the try that asked.
		if (result.value.recalled) {
			await chatStream.end();
			return;
		}
		const { answer: text, interrupt } = result.value.reply;
		// What was not streamed is said all the same, or the chat would stay empty; what was is not said twice.
		const question = interrupt?.question === text ? '' : (interrupt?.question ?? '');
		const rest = [said.has(itemIndex) ? '' : text, question].filter(Boolean).join('\n\n');
		if (rest) await chatStream.write(rest);
		await chatStream.end();
	};
	return await takeTurns(spoken, settings, {
		...{ ledger, memory, rounds, signal, clock: run.clock, received },
	});
}

async function bodyOf(
	context: IExecuteFunctions,
	prepared: ReadTurn,
	itemIndex: number,
): Promise<Result<JsonObject>> {
	try {
		const turn = await prepared.turn();
		if (!turn.ok) return turn;
		const extraBody = readExtraBody(context, itemIndex);
		return invokeBody(turn.value, prepared.stream, extraBody, prepared.line.account.deployment);
	} catch (error) {
		return fail(explainExpressionError(error));
	}
}

/** Sessions belong to an agent, so that each has the keys of its own items to look up. */
async function loadSessions(
	{ lines }: AgentRun,
	prepared: ReadonlyArray<Result<ReadTurn>>,
): Promise<Result<undefined>> {
	const keysOf = new Map(lines.all.map((line) => [line, new Set<string>()]));
	for (const item of prepared) {
		if (!item.ok || item.value.session.kind !== 'mapped') continue;
		keysOf.get(item.value.line)?.add(item.value.session.key);
	}
	const loads = [...keysOf].map(async ([{ sessions }, keys]) => await sessions.load([...keys]));
	const loaded = await Promise.all(loads);
	return explainTable(loaded.find(({ ok: isOk }) => !isOk) ?? ok(undefined));
}

function readTurn(
	context: IExecuteFunctions,
	{ lines }: AgentRun,
	prepareTurn: PrepareTurn,
	itemIndex: number,
): Result<ReadTurn> {
	const line = lines.of(itemIndex);
	if (!line.ok) return line;
	const turn = prepareTurn(itemIndex);
	if (!turn.ok) return turn;
	const { session, isResume } = turn.value;
	const wantsKey = !isResume && context.getNodeParameter('sessionMode', itemIndex, 'new') === 'mapped';
	return ok({
		...turn.value,
		line: line.value,
		simplify: context.getNodeParameter('simplify', itemIndex, true) !== false,
		lacksKey: wantsKey && session.kind === 'new',
	});
}

/** A batch larger than its budget is refused as a whole, before anything is sent. */
function refuseBatch(
	prepared: ReadonlyArray<Result<PreparedTurn>>,
	{ options: { maxInvocations } }: AgentRun,
	goesOn: boolean,
) {
	const count = prepared.filter((item) => goesOn || item.ok).length;
	if (maxInvocations === 0 || count <= maxInvocations) return undefined;
	return fail(
		badInput(
			`This run would call the agent ${count} times, more than the ${maxInvocations} that "Max Invocations" allows`,
			'Nothing was sent. Send fewer items, or raise "Max Invocations" in the node\'s options.',
		),
	);
}

function preview(
	context: IExecuteFunctions,
	prepared: ReadonlyArray<Result<ReadTurn>>,
): INodeExecutionData[] {
	return prepared.map((item, itemIndex): INodeExecutionData => {
		const pairedItem = { item: itemIndex };
		const problem = ({ message, advice }: Failure): INodeExecutionData => ({
			json: { problem: message, advice },
			pairedItem,
		});
		if (!item.ok) return problem(item.failure);
		const body = previewBody(context, item.value, itemIndex);
		if (!body.ok) return problem(body.failure);
		const { session, line } = item.value;
		const { baseUrl, invokePath, deployment } = line.account;
		const sessionId =
			session.kind === 'explicit'
				? session.id
				: session.kind === 'mapped'
					? line.sessions.find(session.key)
					: '';
		const request = {
			method: 'POST',
			url: `${baseUrl}${invokePath}`,
			headers: { Authorization: 'Bearer <agent token>', 'Content-Type': 'application/json' },
			body: withSession(body.value, sessionId, deployment),
		};
		return { json: { preview: request }, pairedItem };
	});
}

function previewBody(
	context: IExecuteFunctions,
	{ previewed, stream, line }: ReadTurn,
	itemIndex: number,
): Result<JsonObject> {
	const body = invokeBody(previewed, stream, readExtraBody(context, itemIndex), line.account.deployment);
	return body.ok ? ok(body.value) : body;
}
