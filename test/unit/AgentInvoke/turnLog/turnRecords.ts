import type { EndedTurn } from '../../../../nodes/AgentInvoke/turnLog/turnLog';
import type { TurnResult } from '../../../../nodes/AgentInvoke/turns/savedAnswer';
import { TurnCalls } from '../../../../nodes/AgentInvoke/api/callLimit';
import { fail, ok, type FailureKind, type Result } from '../../../../nodes/shared/errors/failure';
import type { Json, JsonObject } from '../../../../nodes/shared/text/json';
import type { TestClock } from '../../testClock';
import { replyOf } from '../agentReply.builder';

/** An answer as a turn receives it. */
export function answer(usage: Json = null, over: Partial<TurnResult> = {}): Result<TurnResult> {
	const reply = replyOf('hi', 's1', { requestId: 'r1', usage });
	const session = { key: 'anna', id: 's1', source: 'mapped' as const };
	return ok({ reply, session, attempts: 1, elapsedMs: 5, replayed: false, ...over });
}

export function failure(kind: FailureKind, details: JsonObject = {}): Result<TurnResult> {
	return fail({ kind, message: 'It failed', advice: '', details });
}

/** The calls of a turn that has sent `count` calls. */
export function callsMade(clock: TestClock, count = 1): TurnCalls {
	const calls = new TurnCalls({ most: 0, taken: 1 }, clock);
	for (let call = 0; call < count; call++) calls.sent();
	return calls;
}

/** A turn of the key "anna" that has just ended after one call. */
export function endedTurn(clock: TestClock, over: Partial<EndedTurn> = {}): EndedTurn {
	return {
		itemIndex: 0,
		client: { agent: 'a' },
		session: { kind: 'mapped', key: 'anna' },
		isResume: false,
		isCancelled: false,
		result: answer(),
		calls: callsMade(clock),
		ended: { nowMs: clock.now(), wallMs: clock.wallNow() },
		...over,
	};
}
