import { SEND_AGAIN } from '../../shared/form/sharedFields';
import { NOT_SENT, type Failure } from '../../shared/errors/failure';
import { saysNoCredit } from '../../shared/platform/envelope';
import { CREDIT_ADVICE } from '../../shared/platform/failures';
import { excerpt } from '../../shared/text/json';
import { quote, type Redact } from '../../shared/text/redact';
import { wordsOfError } from '../../shared/errors/expressionError';
import type { TaskSnapshot, WatchEnd } from './watchedTask';

export type StopReason = 'failure' | 'maxFailures' | 'timeout' | 'cancelled';

const WHY_NOT_SUBMITTED: Record<StopReason, string> = {
	failure: 'another item failed first',
	maxFailures: "'Max Failures' was reached",
	timeout: "'Timeout (Minutes)' was reached first",
	cancelled: 'the execution was stopped',
};

export function notSubmitted(reason: StopReason): Failure {
	return {
		kind: 'notSubmitted',
		message: `No task was submitted for this item, because ${WHY_NOT_SUBMITTED[reason]}`,
		advice: `${NOT_SENT} Run the node again with this item.`,
		details: { status: 'notSubmitted' },
	};
}

/** Says of an unclear submit that it may have created a task (§4.1 offers no way to find out). */
export function explainSubmit(failure: Failure): Failure {
	if (failure.kind !== 'unclear') return failure;
	const taskId = namedTask(failure);
	return {
		...failure,
		message: `${mayExist(taskId)}. ${failure.message}`,
		advice: `The submit was not repeated, so that nothing is paid for twice. ${lookFor(taskId)} before you run this item again.`,
		details: { ...failure.details, status: 'unknown', mayExist: true },
	};
}

/** An earlier try submitted this item but got no clear answer. @param taskId the ID in that answer, if any */
export function stillUnclear(taskId?: string): Failure {
	return {
		kind: 'unclear',
		message: mayExist(taskId, ' for this item in an earlier try'),
		advice: `The item was not submitted again, so that nothing is paid for twice. ${lookFor(taskId)}. To submit the item anyway, ${SEND_AGAIN}, or start a new execution.`,
		details: { ...(taskId !== undefined && { taskId }), status: 'unknown', mayExist: true },
	};
}

/** An earlier try submitted this item but got no clear answer, and this try made no task. @param taskId as above */
export function notAgain(failure: Failure, taskId?: string): Failure {
	if (failure.details?.mayExist === true) return failure;
	return {
		...failure,
		message: `${mayExist(taskId, ' for this item in an earlier try')}. This try made none: ${failure.message}`,
		advice: `${lookFor(taskId)} before you run this item again. ${failure.advice}`,
		details: { ...failure.details, ...(taskId !== undefined && { taskId }), mayExist: true },
	};
}

/** The ID of a task that may exist, if the answer to the submit contains one although it reports no success. */
export function namedTask({ details }: Failure): string | undefined {
	return typeof details?.taskId === 'string' ? details.taskId : undefined;
}

function mayExist(taskId: string | undefined, when = ''): string {
	return taskId === undefined
		? `A task may have been created${when}, but its ID is unknown`
		: `Task ${excerpt(taskId, 100)} may have been created${when}`;
}

function lookFor(taskId: string | undefined): string {
	return taskId === undefined
		? "Look for the task in the platform's console"
		: `Use the 'Get' operation with task ID ${excerpt(taskId, 100)} to see whether the task exists`;
}

/** Explains an error of the node's own code after the task was created. */
export function explainMistake(fullTaskId: string, error: unknown): Failure {
	const taskId = excerpt(fullTaskId, 100);
	return {
		kind: 'unclear',
		message: `The node failed while it worked on task ${taskId}: ${wordsOfError(error)}`,
		advice: `This is a bug in the node, not in your workflow. Please report it. The task keeps running on the platform: use the 'Wait for Completion' operation with task ID ${taskId}.`,
		details: { taskId: fullTaskId, status: 'unknown' },
	};
}

/**
 * Explains how watching ended, as a failure of the item.
 * @param isGiven whether the item names the task, so that this node did not create it for the item
 * @returns `undefined` if the task succeeded
 */
export function explainWatchEnd(
	fullTaskId: string,
	end: WatchEnd,
	redact: Redact,
	isGiven = true,
): Failure | undefined {
	const { snapshot } = end;
	const taskId = excerpt(fullTaskId, 100);
	const said = quote(redact, snapshot.info?.errorMessage ?? '');
	const details = detailsOf(fullTaskId, snapshot);
	const trouble = snapshot.trouble
		? `. At the last attempt its state could not be read: ${snapshot.trouble}`
		: '';
	const words = said ? `, with the message "${said}"` : '';
	const lastSeen = `it was last seen as ${describeState(details)}${words}${trouble}`;
	const goOn = `To continue, use the 'Wait for Completion' operation with task ID ${taskId}.`;
	switch (end.kind) {
		case 'final':
			return explainFinal(taskId, end.info.state, said, details);
		case 'timedOut':
			return {
				kind: 'timedOut',
				message: `Task ${taskId} was not done within the timeout; ${lastSeen}`,
				advice: `Nothing is lost: submitted tasks keep running on the platform. ${goOn}`,
				details,
			};
		case 'stalled':
			return {
				kind: 'stalled',
				message: `Task ${taskId} has made no progress for too long; ${lastSeen}`,
				advice: `The task may still be running on the platform. ${goOn} 'Expert Options' > 'No Progress for (Minutes)' sets how long the node waits without progress.`,
				details,
			};
		case 'unknown':
			return explainUnknown(taskId, details, isGiven);
		case 'left':
			return {
				kind: 'cancelled',
				message: `Task ${taskId} was left running; ${lastSeen}`,
				advice: goOn,
				details,
			};
		case 'refused':
			return {
				...end.failure,
				message: `Task ${taskId} was submitted, but its state cannot be read. ${end.failure.message}`,
				// The advice of a refusal is about the item's input, on which a submitted task no longer depends.
				advice: `${end.failure.kind === 'refused' ? '' : `${end.failure.advice} `}The task may still be running on the platform. ${goOn}${isGiven ? '' : ' Running the item again without an idempotency key would create a new task, which is billed.'}`,
				details: { ...end.failure.details, ...details },
			};
	}
}

/** If this node made the task, a retry or the same key would find it again, so the advice says how to make a new one. */
function explainUnknown(taskId: string, details: Details, isGiven: boolean): Failure {
	const isGone = details.status !== 'unknown';
	const seen = isGone ? `, which was last seen as ${describeState(details)}` : '';
	return {
		kind: 'taskUnknown',
		message: `The platform ${isGone ? 'no longer knows' : 'does not know'} task ${taskId}${seen}`,
		advice: `${isGone ? DELETED : CHECK_ID}${isGiven ? '' : ` ${NEW_TASK}`}`,
		details,
	};
}

const DELETED =
	"The platform may have deleted it. Look for its images in the platform's console before you run the item again. If the platform keeps tasks only for a while, wait for fewer of them at a time.";

const CHECK_ID =
	"Check that the ID is complete, that the credential belongs to the account and the platform of the task, and whether the platform's console shows the task.";

const NEW_TASK =
	"To create a new task for an item with an idempotency key, delete the key's rows in the Data Table flow_task_ledger, and shorten 'Idempotency Lifetime (Hours)' if the platform forgets tasks sooner; for any other item, start a new execution.";

function explainFinal(taskId: string, state: string, said: string, details: Details): Failure | undefined {
	if (state !== 'failed' && state !== 'denied') return undefined;
	const reason = said ? `: ${said}` : '. The platform gave no reason';
	const failure = { details: { ...details, errorMessage: said } };
	return state === 'failed'
		? {
				...failure,
				kind: 'taskFailed',
				message: `Task ${taskId} failed on the platform${reason}`,
				advice: cureOf(said),
			}
		: {
				...failure,
				kind: 'taskDenied',
				message: `The account has no permission for task ${taskId}${reason}`,
				advice:
					'The workflow may use a private model of another account. Use the credential of the account that owns the model, or upload the model in the console.',
			};
}

const OUT_OF_MEMORY = /\b(?:out of|not enough|insufficient) (?:\w+ )?(?:memory|VRAM)\b|\bOOM\b/i;
/**
 * What an engine says of a node that is not installed there. The words must be about the node itself: "Node 10 (Load
 * Image): a.png not found" and "node 3: required input is missing" are about this item's values.
 */
const UNKNOWN_NODE =
	/\bnode (?:type |class )?["']?(?!(?:input|output|image|file|value)s?\b)[a-z][\w.-]*["']? (?:is |was )?(?:not found|not installed|does not exist|missing)\b|\b(?:unknown|missing) (?:custom )?(?:nodes|node types?|node class(?:es)?)\b|\bcustom nodes? (?:is |are )?(?:not installed|missing|not found)\b/i;

/** What to do about a failed task, by what the platform said. */
function cureOf(said: string): string {
	if (saysNoCredit(said)) return CREDIT_ADVICE;
	if (OUT_OF_MEMORY.test(said)) {
		return 'The GPU has too little memory for this item: lower its width and height, its batch size or its number of frames, or use a smaller model. The same values would fail again, in a new task.';
	}
	if (UNKNOWN_NODE.test(said)) {
		return "The workflow uses a node that the platform does not have: replace it in the workflow, and host it again. This item's values are not the cause.";
	}
	return 'Check the values of this item against what the workflow accepts. Running the item again creates a new task.';
}

/** Explains a task that succeeded without a file, of a workflow that may save some. */
export function explainNoFiles(fullTaskId: string, snapshot: TaskSnapshot, redact: Redact): Failure {
	const said = quote(redact, snapshot.info?.errorMessage ?? '');
	return {
		kind: 'file',
		message: `Task ${excerpt(fullTaskId, 100)} succeeded without any file${said && `, with the message "${said}"`}`,
		advice: said
			? 'The platform may have held the result back, e.g. because a filter flagged it. Change the inputs of this item before you run it again: each run is billed.'
			: "Check that the workflow saves its images. If it is not meant to produce files, set 'Output' to Links Only.",
		details: { ...detailsOf(fullTaskId, snapshot), errorMessage: said },
	};
}

type Details = ReturnType<typeof detailsOf>;

function detailsOf(taskId: string, { info, lastState, sinceMs, endedAtMs }: TaskSnapshot) {
	return {
		taskId,
		status: info?.state ?? lastState ?? 'unknown',
		statusCode: info?.statusCode ?? null,
		progress: info?.progress ?? null,
		...(sinceMs !== undefined && { elapsedMs: Math.max(0, endedAtMs - sinceMs) }),
	};
}

function describeState({ status, statusCode, progress, elapsedMs }: Details): string {
	const code = status === 'unknown' && statusCode !== null ? ` (status ${statusCode})` : '';
	const done = progress === null ? '' : ` at ${progress}%`;
	const elapsed = elapsedMs === undefined ? '' : ` after ${Math.round(elapsedMs / 1000)} seconds`;
	return `${status}${code}${done}${elapsed}`;
}

/** A failure with the number of the variant, if its item has several. */
export function ofVariant(failure: Failure, variant: number | undefined): Failure {
	return variant === undefined ? failure : { ...failure, details: { ...failure.details, variant } };
}
