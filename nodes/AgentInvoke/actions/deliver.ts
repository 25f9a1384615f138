import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { throwFirst, toErrorItem } from '../../shared/errors/nodeError';
import { ok, type Failure, type Result } from '../../shared/errors/failure';
import { hintFailed, listIds, logStopped, otherAnswers, showHint } from '../../shared/run/deliver';
import type { WireInterrupt } from '../wire/answerValues';
import type { TurnResult } from '../turns/savedAnswer';
import type { TurnOutcome } from '../turns/turn';
import type { ReadTurn } from './readTurn';
import type { AgentRun } from './run';

/** The result of an item, with the settings of its output if they could be read. */
export interface DeliveredTurn extends Partial<Pick<ReadTurn, 'simplify' | 'previewResponse'>> {
	readonly itemIndex: number;
	readonly result: Result<TurnResult>;
}

/** The most session IDs that an error names. */
const IDS_SHOWN = 5;

const SEVERAL_INTERRUPTS =
	'For some items, the agent sent more than one interrupt: "interrupt" is the first, and "interrupts" contains all of them. Answer each one with \'Resume Agent\'.';

const NO_SESSION =
	"The answer names no session of at most 2,000 characters, so the next message with this key begins a new one. Point \"answer.session\" of the description in the FlowAgent credential to the session ID. If the answer has none, set 'Session' to 'By ID' if your deployment lets you choose the IDs, otherwise to 'New Each Time'.";
const NOT_KEPT = 'The session of this answer is not kept for its key:';
const REPLACED = `${NOT_KEPT} meanwhile another execution, or a person, gave the key the session that is kept. If workers answer messages of one key at the same time, set 'Turn Order' to 'Strictly One at a Time'.`;
const REMOVED = `${NOT_KEPT} its row in the Data Table flow_agent_sessions was removed or changed while the agent answered.`;
const OVERTAKEN =
	'Another message with this key may have been sent at the same time: this execution was presumed dead while the agent answered.';

/** Adds a hint to answers whose session is not kept for the key, or may have been used by another execution meanwhile. */
export async function addSessionHints(
	{ client: { sessions } }: AgentRun,
	outcomes: ReadonlyArray<TurnOutcome<ReadTurn>>,
): Promise<Array<TurnOutcome<ReadTurn>>> {
	await sessions.settle();
	return outcomes.map((outcome) => {
		const { result } = outcome;
		const { session } = outcome.turn;
		if (!result.ok || session.kind !== 'mapped') return outcome;
		const { reply, session: answered } = result.value;
		const isLost = sessions.isLost(session.key);
		const next = sessions.find(session.key);
		const why = answered.id ? isLost && whyNotKept(answered.id, next) : NO_SESSION;
		const hint = [reply.hint, why].filter(Boolean).join(' ');
		return { ...outcome, result: ok({ ...result.value, reply: { ...reply, hint } }) };
	});
}

/** What the loss of the key means for an answer. @param nextId the key's session now */
function whyNotKept(answeredId: string, nextId: string): string {
	if (nextId === answeredId) return OVERTAKEN;
	return nextId ? REPLACED : REMOVED;
}

/** Turns the outcomes of a run into items: answers for the first output, interrupts for the second. */
export function deliverTurns(
	context: IExecuteFunctions,
	outcomes: readonly DeliveredTurn[],
	run: AgentRun,
): { readonly answers: INodeExecutionData[]; readonly interrupts: INodeExecutionData[] } {
	if (run.cancelled()) {
		logCancelled(context, outcomes);
		return { answers: [], interrupts: [] };
	}
	// n8n retries a tool after an error or an error item. As a tool, the node does not remember its tries, so it returns
	// neither once an agent may have run.
	const isFinal =
		run.asTool && outcomes.some(({ result }) => result.ok || result.failure.details?.mayHaveRun === true);
	if (!isFinal) throwFailed(context, outcomes);
	const answers: INodeExecutionData[] = [];
	const interrupts: INodeExecutionData[] = [];
	for (const outcome of outcomes) {
		const { itemIndex, result } = outcome;
		const pairedItem = { item: itemIndex };
		if (!result.ok) {
			answers.push(
				isFinal
					? { json: describeProblem(result.failure), pairedItem }
					: toErrorItem(context.getNode(), result.failure, itemIndex),
			);
		} else if (run.asTool) {
			answers.push({ json: describeForAgent(result.value), pairedItem });
		} else {
			const isInterrupt = result.value.reply.interrupts.length > 0;
			(isInterrupt ? interrupts : answers).push({ json: describe(result.value, outcome, run), pairedItem });
		}
	}
	const results = outcomes.map(({ result }) => result);
	const replies = results.flatMap((result) => (result.ok ? [result.value.reply] : []));
	if (replies.some((reply) => reply.interrupts.length > 1)) showHint(context, SEVERAL_INTERRUPTS, 'info');
	const hint = replies.find((reply) => reply.hint)?.hint;
	if (hint) showHint(context, hint);
	hintFailed(context, results);
	return { answers, interrupts };
}

/** Adds `input`, because n8n's expressions refuse to read `arguments`. */
function shown(interrupt: WireInterrupt): IDataObject {
	return { ...interrupt, input: interrupt.arguments };
}

function describe(
	{ reply, session, attempts, elapsedMs, replayed, answerDigest }: TurnResult,
	{ simplify, previewResponse }: DeliveredTurn,
	{ forChat }: AgentRun,
): IDataObject {
	const { answer, interrupts } = reply;
	const [interrupt] = interrupts;
	const text = interrupt?.question || answer;
	return {
		...(forChat && { output: text }),
		answer,
		...(interrupt && { interrupt: shown(interrupt) }),
		...(interrupts.length > 1 && { interrupts: interrupts.map(shown) }),
		session: { ...session },
		reason: reply.reason,
		...(reply.usage !== null && { usage: reply.usage }),
		trace: { attempts, elapsedMs, requestId: reply.requestId },
		...(replayed && { replayed: true }),
		...(answerDigest && { answerDigest }),
		...(reply.hint && { hint: reply.hint }),
		...((previewResponse || !simplify) && reply.readFrom && { readFrom: reply.readFrom }),
		...(!simplify && { raw: reply.raw, events: reply.events ?? [] }),
	};
}

/** A failure without the key `error`, because n8n retries an item that has one. */
function describeProblem({ kind, message, advice, details }: Failure): IDataObject {
	return { problem: message, adviceForOperator: advice, details: { kind, ...details } };
}

/** The output that an AI agent reads: the answer, or what the interrupt asks for. */
function describeForAgent({ reply, session, replayed }: TurnResult): IDataObject {
	const { answer, interrupts } = reply;
	const [interrupt] = interrupts;
	const sessionId = session.id;
	if (!interrupt) {
		return {
			answer,
			sessionId,
			...(replayed && { replayed: true }),
			...(reply.hint && { hint: reply.hint }),
		};
	}
	const { id: interruptId, ...asked } = interrupt;
	return {
		needsInput: { ...asked, interruptId, sessionId },
		...(interrupts.length > 1 && { interrupts: interrupts.map((one) => ({ ...one })) }),
		...(answer && { answer }),
	};
}

function logCancelled(context: IExecuteFunctions, outcomes: readonly DeliveredTurn[]): void {
	const open = outcomes.filter(
		({ result }) =>
			!result.ok && result.failure.kind !== 'agentFailed' && result.failure.details?.mayHaveRun === true,
	).length;
	const ids = sessionIds(outcomes);
	if (open === 0 && ids.length === 0) return;
	const sessions = `sessions that were used: ${listIds(ids) || 'none known'}`;
	const unanswered = open > 0 && `${open} call(s) had no answer yet, and the agent may have run`;
	logStopped(context, 'AgentInvoke', [sessions, unanswered].filter(Boolean).join('; '));
}

function sessionIds(outcomes: readonly DeliveredTurn[]): string[] {
	const ids = outcomes.flatMap(({ result }) => {
		const id: unknown = result.ok ? result.value.session.id : result.failure.details?.sessionId;
		return typeof id === 'string' && id ? [id] : [];
	});
	return [...new Set(ids)];
}

function throwFailed(context: IExecuteFunctions, outcomes: readonly DeliveredTurn[]): void {
	const results = outcomes.map(({ result }) => result);
	const ids = listIds(sessionIds(outcomes), IDS_SHOWN);
	// Rows of the input, from 1, as in the advice and in the table of turns.
	const turns = outcomes.map(({ itemIndex, result }) => ({
		item: itemIndex + 1,
		...(result.ok
			? { status: 'answered', sessionId: result.value.session.id }
			: { status: result.failure.kind }),
	}));
	const failed = outcomes.flatMap(({ itemIndex, result }) =>
		result.ok ? [] : [{ itemIndex, failure: result.failure }],
	);
	throwFirst(context, failed, {
		advice: [otherAnswers(results), ids && `Sessions of this run: ${ids}.`],
		context: { turns },
	});
}
