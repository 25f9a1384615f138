import type { IExecuteFunctions } from 'n8n-workflow';

import { wordsOfError } from '../../shared/errors/expressionError';
import { badInput, fail, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isStartedBy } from '../../shared/run/startedBy';
import { MAX_FRAME_CHARS } from '../frames/frames';
import { toHandOver } from '../reply/handOver';

const TRIGGER = /(^|\.)agentBridgeTrigger$/;

/** Hands frames to the trigger that started the execution. */
export interface TriggerConnection {
	/** Resolves once n8n has taken the frame. Whether the trigger could send it appears only in n8n's log. */
	handOver(text: string): Promise<Result<undefined>>;
}

/** @returns `undefined` if no trigger is listening: in editor tests and for n8n's "Retry" of an execution */
export function reachTrigger(context: IExecuteFunctions): Result<TriggerConnection | undefined> {
	if (!isStartedBy(context, TRIGGER)) return fail(NOT_STARTED);
	if (context.getMode() !== 'trigger') return ok(undefined);
	return ok({
		handOver: async (text) => {
			if (text.length > MAX_FRAME_CHARS) return fail(TOO_LARGE);
			try {
				await context.sendResponse(toHandOver(text));
				return ok(undefined);
			} catch (error) {
				return fail(notTaken(wordsOfError(error)));
			}
		},
	});
}

const NOT_STARTED = badInput(
	'There is no trigger connection to use: this execution was not started by an Agent Bridge Trigger',
	'Connect this node behind an Agent Bridge Trigger, or remove the option "Use the Trigger\'s Connection".',
);

const TOO_LARGE = badInput(
	'The frame is larger than 16 million characters',
	'Send less in one frame. Nothing was sent for this item.',
);

function notTaken(why: string): Failure {
	return {
		kind: 'unclear',
		message: `n8n did not confirm that it passed the frame on to the trigger: ${why}`,
		advice:
			'In queue mode frames go to the trigger through Redis. Your workflow decides whether to send it again.',
	};
}
