import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failRun } from '../../shared/errors/nodeError';
import { fail, ok, type Result } from '../../shared/errors/failure';
import { readPreviewSwitches, withPreviews } from '../../shared/form/previewRequest';
import { openChatStreams, type ChatStream } from '../../shared/answer/chatStream';
import { showHint } from '../../shared/run/deliver';
import { overBudget } from '../../shared/run/frame';
import { reportTokens } from '../../shared/usage/tokenUsage';
import { explainTable } from '../sessions/sessionStore';
import { notAskedAgain } from '../turns/savedAnswer';
import { notAsked } from '../turns/waitLimit';
import { runTurns, type TurnEffects, type TurnOutcome } from '../turns/turn';
import { payloadOf, previewOf, requestOf, type ReadTurn } from './readTurn';
import type { AgentRun } from './run';
import { addSessionHints, deliverTurns, type DeliveredTurn } from './deliver';

const NO_SESSION_KEY =
	"Some items have no session key, so each of them began a new session. Check 'Session Key' if they should continue one.";

/** Takes the turns of all items, or shows what they would send, and delivers the results. */
export async function takeTurns(
	context: IExecuteFunctions,
	run: AgentRun,
	read: ReadonlyArray<Result<ReadTurn>>,
): Promise<INodeExecutionData[][]> {
	const isShown = readPreviewSwitches(context);
	const previewed: ItemTurns = new Map();
	const asked: ItemTurns = new Map();
	for (const [itemIndex, item] of read.entries()) {
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
	for (const itemIndex of previewed.keys()) run.queued[itemIndex]?.slot?.leave();
	// In strict order, a turn reads its session only with the claim on its key.
	const isStrict = run.options.turnOrder === 'strict';
	const loaded = await loadSessions(run, isStrict ? previewed.values() : read);
	if (!loaded.ok) return failRun(context, loaded.failure);
	const previews = new Map(
		[...previewed].map(([itemIndex, item]) => [itemIndex, item.ok ? previewOf(run, item.value) : item]),
	);
	const taken = asked.size > 0 ? await takeAll(context, run, asked) : ok([]);
	if (!taken.ok) return failRun(context, taken.failure);
	const { answers, interrupts } = deliverTurns(context, taken.value, run);
	const first = withPreviews(answers, previews);
	return run.asTool ? [first] : [first, interrupts];
}

/** Turns by item, for all items or some of them. */
type ItemTurns = Map<number, Result<ReadTurn>>;

const STOPPED = 'The execution was stopped before the whole answer had arrived';

async function takeAll(
	context: IExecuteFunctions,
	run: AgentRun,
	read: ItemTurns,
): Promise<Result<DeliveredTurn[]>> {
	const chatStreamOf = openChatStreams(context, run.redact);
	const stopAtFailure = !context.continueOnFail();
	const prepared = stopAtFailure ? allOrNone(read) : read;
	const turns = readable(prepared.values());
	// An unreadable turn leaves its queue, so that later turns of the session do not wait for it.
	for (const [itemIndex, item] of prepared) if (!item.ok) run.queued[itemIndex]?.slot?.leave();
	// If usage cannot be counted, nothing is sent. Turns that another try or execution may have taken are let through.
	const due = stopAtFailure
		? turns.filter(
				({ itemIndex, fingerprint, idempotencyKey }) =>
					idempotencyKey === undefined && !run.memory.recall(itemIndex, fingerprint),
			)
		: [];
	const counted = await run.turnLog?.open(turns, due);
	if (counted?.ok === false) return counted;
	await endUnasked(context.getInputData().length, prepared, chatStreamOf);
	// No one watches a stopped execution, so its streams end, although answers to calls already sent are still read.
	const endStreams = (): void => {
		for (const { itemIndex } of turns) void chatStreamOf(itemIndex).warn(STOPPED);
	};
	if (run.signal.aborted) endStreams();
	else run.signal.addEventListener('abort', endStreams, { once: true });
	const settings = { ...run.options, stopAtFailure };
	const outcomes = await runTurns(turns, settings, { ...run, ...effectsOf(context, run, chatStreamOf) });
	if (run.turnLog?.hint) showHint(context, run.turnLog.hint);
	if (turns.some(({ lacksKey }) => lacksKey)) showHint(context, NO_SESSION_KEY, 'info');
	const hinted = run.cancelled() ? outcomes : await addSessionHints(run, outcomes);
	const answered = hinted.map(({ turn, calls, result }) => {
		if (result.ok || calls.made > 0) return { ...turn, result };
		const kept = run.memory.recall(turn.itemIndex, turn.fingerprint);
		return { ...turn, result: fail(notAskedAgain(kept, result.failure)) };
	});
	const failed = [...prepared].flatMap(([itemIndex, item]) => (item.ok ? [] : [{ itemIndex, result: item }]));
	const delivered = [...answered, ...failed].sort((one, other) => one.itemIndex - other.itemIndex);
	if (delivered.every(({ result }) => result.ok)) run.memory.clear();
	return ok(delivered);
}

/** What turns do outside of their session. */
function effectsOf(
	context: IExecuteFunctions,
	run: AgentRun,
	chatStreamOf: (itemIndex: number) => ChatStream,
): TurnEffects<ReadTurn> {
	const { turnLog } = run;
	/** What was streamed for each item that is not answered yet. */
	const streamed = new Map<number, string>();
	return {
		payloadOf: async (turn) => await payloadOf(context, turn),
		admit: turnLog && (async (turn) => await turnLog.admit(turn)),
		prepare: async (turn) => await requestOf(context, run, turn),
		onDelta: async ({ itemIndex }, text) => {
			if (run.signal.aborted) return;
			const chatStream = chatStreamOf(itemIndex);
			await chatStream.write(text);
			if (chatStream.hasBegun) streamed.set(itemIndex, (streamed.get(itemIndex) ?? '') + text);
		},
		received: async (outcome) => {
			reportEnd(context, run, outcome);
			const { itemIndex } = outcome.turn;
			const shown = run.redact.known(streamed.get(itemIndex) ?? '');
			streamed.delete(itemIndex);
			if (!run.signal.aborted) await endStream(chatStreamOf(itemIndex), outcome.result, shown);
		},
	};
}

function readable(read: Iterable<Result<ReadTurn>>): ReadTurn[] {
	return [...read].flatMap((item) => (item.ok ? [item.value] : []));
}

/** If one item's failure ends the run anyway, the agent is not asked for the other items either. */
function allOrNone(read: ItemTurns): ItemTurns {
	if ([...read.values()].every((item) => item.ok)) return read;
	return new Map([...read].map(([itemIndex, item]) => [itemIndex, item.ok ? fail(notAsked(false)) : item]));
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

/** The only place that reports the end of a turn: to the turn log and n8n's token count. */
function reportEnd(context: IExecuteFunctions, run: AgentRun, { turn, calls, result }: TurnOutcome): void {
	const { clock, turnLog } = run;
	const ended = { nowMs: clock.now(), wallMs: clock.wallNow() };
	turnLog?.ended({ ...turn, calls, result, isCancelled: run.cancelled(), ended });
	if (result.ok && calls.made > 0) reportTokens(context, result.value.reply.usage);
}

/** Writes what was not streamed yet, so that the chat shows the whole answer, and ends the stream. */
async function endStream(
	chatStream: ChatStream,
	result: TurnOutcome['result'],
	shown: string,
): Promise<void> {
	if (!result.ok) {
		await chatStream.fail(result.failure.message);
		return;
	}
	const { recalled, reply } = result.value;
	const { answer, interrupts } = reply;
	const asked = interrupts[0]?.question ?? '';
	const question = asked === answer ? '' : asked;
	const more = unshown(shown, answer);
	const gap = question && shown + more ? '\n\n' : '';
	const rest = `${more}${gap}${question}`;
	// A recalled answer was already streamed by the try that asked.
	if (rest && !recalled) await chatStream.write(rest);
	await chatStream.end();
}

/**
 * What has to follow the streamed text so that it ends with the answer. An agent may replace what it has said; then the
 * answer follows in a paragraph of its own, because a chat cannot take text back.
 */
function unshown(shown: string, answer: string): string {
	if (answer.startsWith(shown)) return answer.slice(shown.length);
	// Servers trim or reflow the whole text that they send after its pieces.
	const bare = (text: string): string => text.replace(/\s+/g, '');
	return bare(shown).endsWith(bare(answer)) ? '' : `\n\n${answer}`;
}

async function loadSessions(
	{ client: { sessions } }: AgentRun,
	read: Iterable<Result<ReadTurn>>,
): Promise<Result<undefined>> {
	const keys = readable(read).flatMap(({ session }) => (session.kind === 'mapped' ? [session.key] : []));
	return explainTable(await sessions.load([...new Set(keys)]));
}
