import pLimit, { type LimitFunction } from 'p-limit';

import { CallLimit } from '../api/callLimit';
import { ItemTurn, type AgentTurn, type CallSettings, type TurnOutcome, type TurnRun } from './turn';
import { WaitLimit } from './waitLimit';

export interface TurnSettings extends CallSettings {
	readonly concurrency: number;
	/** How many calls are allowed in total; 0 = no limit. */
	readonly maxInvocations: number;
	/** Whether no further turn begins after a failure. */
	readonly stopAtFailure: boolean;
	/**
	 * Whether, in strict order, a message reserves its position in the table's queue while it is still in the queue of
	 * the process. False if that queue mixes several agents, because two processes could then wait for each other.
	 */
	readonly reservesPositions: boolean;
}

/**
 * Takes the turns of all items. A session is one conversation, so its turns follow each other in order; different
 * sessions run at the same time. When a failure ends the run, calls under way are still awaited, so that their answers
 * are not lost.
 */
export async function runTurns<T extends AgentTurn>(
	turns: readonly T[],
	settings: TurnSettings,
	run: TurnRun<T>,
): Promise<Array<TurnOutcome<T>>> {
	const { clock, signal } = run;
	const permits = pLimit(settings.concurrency);
	const callLimit = new CallLimit(settings.maxInvocations, turns.length, clock);
	const ending = new AbortController();
	const take = async (turn: T, isLast: boolean): Promise<TurnOutcome<T>> => {
		const giveBack = await takePermit(permits);
		try {
			const calls = callLimit.forTurn();
			const waitLimit = new WaitLimit(clock, settings.timeoutMs, signal, ending.signal, giveBack);
			const result = await new ItemTurn(turn, calls, settings, run, waitLimit, isLast).take();
			calls.ended();
			// Aborted while this turn still holds its permit; otherwise the next turn in the queue would start.
			if (!result.ok && settings.stopAtFailure) ending.abort();
			return { turn, calls, result };
		} finally {
			giveBack();
		}
	};
	const takeAll = async (conversation: readonly T[]): Promise<Array<TurnOutcome<T>>> => {
		const outcomes: Array<TurnOutcome<T>> = [];
		const last = conversation.at(-1);
		if (last) queueUp(last, settings);
		for (const turn of conversation) {
			const outcome = await take(turn, turn === last);
			await run.received(outcome);
			outcomes.push(outcome);
		}
		return outcomes;
	};
	const conversations = [...Map.groupBy(turns, conversationOf).values()];
	const outcomes = await Promise.all(conversations.map(takeAll));
	return outcomes.flat().sort((a, b) => a.turn.itemIndex - b.turn.itemIndex);
}

/**
 * In strict order, reserves a position in the table's queue for a conversation that is still in the queue of this
 * process, ahead of messages that reach other processes later.
 * @param last the conversation's last turn, which leaves the queue; whichever turn comes first uses the position
 */
function queueUp({ session, slot, client }: AgentTurn, settings: TurnSettings): void {
	const isQueued = settings.turnOrder === 'strict' && slot?.isFirst === false;
	if (isQueued && settings.reservesPositions && session.kind === 'mapped')
		client.sessions.queueUp(session.key);
}

/**
 * Waits for one of the run's permits. A turn that must wait for another gives its permit up for good, and only the rate
 * limiter bounds its call. So no turn waits for a permit while it holds a session that another turn waits for.
 * @returns a function that gives the permit back
 */
async function takePermit(limit: LimitFunction): Promise<() => void> {
	const entered = Promise.withResolvers<undefined>();
	const left = Promise.withResolvers<undefined>();
	void limit(async () => {
		entered.resolve(undefined);
		await left.promise;
	});
	await entered.promise;
	return () => left.resolve(undefined);
}

/** Identifies a conversation; a turn in a new session is a conversation of its own. */
function conversationOf(turn: AgentTurn): unknown {
	const { session, client } = turn;
	if (session.kind === 'new') return turn;
	return JSON.stringify([client.agent, session.kind, session.kind === 'mapped' ? session.key : session.id]);
}
