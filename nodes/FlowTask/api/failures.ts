import type { Failure } from '../../shared/errors/failure';
import { certificateWasRejected } from '../../shared/http/exchange';
import type { FailedOutcome } from '../../shared/http/outcome';
import { explainCall, isForCredit, type CallAdvice, type CallFacts } from '../../shared/platform/failures';

export interface CallFailure extends Failure {
	/** Whether the same call may succeed later (outage, overload). */
	readonly passing: boolean;
}

const BUSY = "Lower 'Requests per Second' (in 'Run' also 'Max Tasks in Flight'), or run the workflow later.";

const OF_SUBMIT: CallAdvice = {
	busy: BUSY,
	rightful: 'Use a key of the account that owns the workflow.',
	check:
		'Compare what this item sends, such as the workflow ID and the changed inputs, with what the platform says. No task was created.',
};

const NO_WORKFLOW =
	/\b(?:no|unknown|no such) workflow\b|\bworkflow\b.*\b(?:not found|does not exist|unknown|deleted)\b/i;
const OTHER_ACCOUNT = /\b(?:another|other|different) account\b/i;
const OTHER_WORKFLOW =
	/\b(?:no|unknown|no such) (?:node|parameter|input)\b|\b(?:node|parameter|input)\b.*\b(?:not found|does not exist|unknown)\b/i;

/** What to do about a refused submit, by what the platform said. */
function cureOfSubmit(said: string): string {
	if (OTHER_WORKFLOW.test(said)) {
		return "The hosted workflow has no such input: the export may be that of another workflow, or of a newer version than the one that is hosted. Paste that of the hosted one into 'Workflow Definition', or save the workflow again with it. No task was created.";
	}
	if (OTHER_ACCOUNT.test(said)) {
		return 'Choose the credential of the account that hosts the workflow. No task was created.';
	}
	if (NO_WORKFLOW.test(said)) {
		return "Copy the ID again from the platform's console into 'Workflow', and check that the credential is of the account and the platform that host it. No task was created.";
	}
	return OF_SUBMIT.check;
}

const OF_READ: CallAdvice = {
	busy: BUSY,
	rightful: 'Use a key from an account that has this permission.',
	check:
		'Compare the input of this item, such as its file or its task ID, and the Base URL in the credential, with what the platform says.',
};

export function explainTaskCall(outcome: FailedOutcome, facts: CallFacts): CallFailure {
	const said = outcome.kind === 'refused' ? outcome.text : '';
	const ofSubmit = { ...OF_SUBMIT, check: cureOfSubmit(said) };
	const failure = explainCall(outcome, facts, facts.repeatability === 'write' ? ofSubmit : OF_READ);
	// Without credit for more, tasks that run are not at fault: their polls go on.
	const isLimited = isForCredit(outcome) && facts.repeatability === 'read';
	const passing =
		outcome.kind === 'notSent'
			? !certificateWasRejected(outcome.code)
			: outcome.kind === 'busy' || outcome.kind === 'unclear' || isLimited;
	return { ...failure, passing };
}
