import pLimit from 'p-limit';

import { fail, type Failure, type Result } from '../shared/errors/failure';
import type { TurnResult } from './record';
import { TurnTaker, type AgentTurn, type CallParts, type CallSettings } from './turn';

export type { AgentTurn } from './turn';
export type { SessionChoice } from './turnSession';

export interface TurnOutcome {
	readonly itemIndex: number;
	readonly result: Result<TurnResult>;
}

export interface TurnSettings extends CallSettings {
	readonly concurrency: number;
	/** After a failure no further turn begins. */
	readonly stopAtFailure: boolean;
}

export interface TurnParts extends CallParts {
	readonly signal: AbortSignal;
	/** Called with each outcome as it comes. */
	readonly received: (outcome: TurnOutcome) => Promise<void>;
}

/**
 * Takes the turns of all items. A session is one conversation, so its turns follow each other in order; different
 * sessions run at the same time. When a failure ends the run, calls under way are still waited for: their answers
 * must not be lost.
 */
export async function takeTurns(
	turns: readonly AgentTurn[],
	settings: TurnSettings,
	parts: TurnParts,
): Promise<TurnOutcome[]> {
	const limit = pLimit(settings.concurrency);
	const lastOf = new Map<unknown, Promise<TurnOutcome>>();
	let hasFailed = false;
	const take = async (turn: AgentTurn): Promise<Result<TurnResult>> => {
		if (hasFailed || parts.signal.aborted) return fail(notRun(parts.signal.aborted));
		const result = await new TurnTaker(turn, settings, parts).take();
		// Set while this turn still holds its place, or the next in line would slip through.
		if (!result.ok && settings.stopAtFailure) hasFailed = true;
		return result;
	};
	const takeAfter = async (before: Promise<TurnOutcome> | undefined, turn: AgentTurn) => {
		await before;
		const outcome: TurnOutcome = { itemIndex: turn.itemIndex, result: await limit(take, turn) };
		await parts.received(outcome);
		return outcome;
	};
	const outcomes = turns.map((turn) => {
		const conversation = conversationOf(turn);
		const outcome = takeAfter(lastOf.get(conversation), turn);
		lastOf.set(conversation, outcome);
		return outcome;
	});
	return await Promise.all(outcomes);
}

/** What tells conversations apart; a turn in a new session is one of its own. */
function conversationOf(turn: AgentTurn): unknown {
	const { session, line } = turn;
	if (session.kind === 'new') return turn;
	return JSON.stringify([line.agent, session.kind, session.kind === 'mapped' ? session.key : session.id]);
}

function notRun(isStopped: boolean): Failure {
	return {
		kind: isStopped ? 'cancelled' : 'notSubmitted',
		message: `The agent was not asked for this item, because ${isStopped ? 'the execution was stopped' : 'another item failed'}`,
		advice: 'Nothing was sent for it.',
	};
}
