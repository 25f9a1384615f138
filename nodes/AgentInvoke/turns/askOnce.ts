import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, parseJson, type JsonObject } from '../../shared/text/json';
import type { HeldKey } from '../../shared/effects/heldKey';
import type { Ledger, LedgerAnswer, LedgerEntry } from '../../shared/effects/ledger';
import { readSavedAnswer, type TurnResult } from './savedAnswer';

/**
 * Asks the agent at most once per idempotency key, whichever execution asks; other executions get the saved answer.
 * @param ask reports the outcome to the key
 */
export async function askOnce(
	entry: LedgerEntry,
	{ agent, ledger }: { readonly agent: string; readonly ledger: Ledger },
	ask: (held: HeldKey) => Promise<Result<TurnResult>>,
): Promise<Result<TurnResult>> {
	const answer = await ledger.claim(entry);
	if (!answer.ok) return answer;
	if (answer.value.kind !== 'mine') return replay(excerpt(entry.key, 80), answer.value, agent);
	return await ask(answer.value.held);
}

/** The saved answer, or why there is none. The agent is not asked in either case. */
function replay(
	key: string,
	known: Exclude<LedgerAnswer, { kind: 'mine' }>,
	agent: string,
): Result<TurnResult> {
	const { executionId } = known.by;
	const who = executionId ? `execution ${executionId}` : 'another execution';
	const details = { idempotencyKey: key, executionId };
	if (known.kind !== 'exists') return fail(noAnswer(known.kind, key, who, details));
	const saved = parseJson(known.reference);
	// Neither the answer nor the session of another agent is of any use here.
	if (isJsonObject(saved) && saved.agent !== agent) {
		return failInput(
			`The idempotency key "${key}" was used by ${who} to ask another agent`,
			"This agent was not asked. Use separate keys for each agent, or set 'Idempotency Scope' to 'This Node'. Two credentials are treated as two agents, even if they belong to the same agent.",
			details,
		);
	}
	const result = readSavedAnswer(saved);
	if (result?.answerDigest) {
		const where = executionId ? who : 'the execution that asked';
		const hint = `The agent has answered for this key already, and was not asked again. Its answer was not kept, because 'Idempotency Answers' was 'Digest Only'. Find it in ${where}.`;
		return ok({ ...result, replayed: true, reply: { ...result.reply, hint } });
	}
	if (result) return ok({ ...result, replayed: true });
	return fail({
		kind: 'notSubmitted',
		message: `The agent has already answered for the idempotency key "${key}", but the answer was too long or too deeply nested to be kept`,
		advice: `The agent was not asked again. Find the answer in the output of ${executionId ? who : 'the execution that asked first'}, or use another key to ask again.`,
		details,
	});
}

function noAnswer(kind: 'conflict' | 'unknown', key: string, who: string, details: JsonObject): Failure {
	if (kind === 'conflict') {
		return badInput(
			`The idempotency key "${key}" was used by ${who} for another message`,
			"The agent was not asked. A key stands for one question: use another key, or delete this key's rows in the Data Table flow_task_ledger.",
			details,
		);
	}
	return {
		kind: 'unclear',
		message: `The agent may have run for the idempotency key "${key}" in ${who}, but its answer is unknown`,
		advice:
			"The agent was not asked again, so that nothing is done twice. Check the session on the platform. To ask anyway, turn on 'Retry Ambiguous Failures' under 'Cost and Speed'.",
		details: { ...details, mayHaveRun: true },
	};
}
