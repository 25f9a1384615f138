import type { IExecuteFunctions } from 'n8n-workflow';

import { wordsOfError } from '../../shared/errors/expressionError';
import { fail, failInput, ok, NOT_SENT, type Result } from '../../shared/errors/failure';
import { isStartedBy } from '../../shared/run/startedBy';
import { MAX_FRAME_CHARS } from '../../shared/http/webSocket';
import { isJsonObject } from '../../shared/text/json';

const TRIGGER = /(^|\.)agentBridgeTrigger$/;

/** The field of a response that holds the text of a frame to send; no ordinary webhook response has it. */
const FIELD = 'flowBridgeFrame';

/**
 * Whether the trigger that started the execution accepts frames to send. In a test in the editor and in a retry of an
 * execution, it does not.
 */
export function canReachTrigger(context: IExecuteFunctions): Result<boolean> {
	if (isStartedBy(context, TRIGGER)) return ok(context.getMode() === 'trigger');
	return failInput(
		'There is no trigger connection to use: this execution was not started by an Agent Bridge Trigger',
		'Connect this node after an Agent Bridge Trigger, or remove the option "Use the Trigger\'s Connection".',
	);
}

/**
 * Hands a frame to the trigger that started the execution, even from a queue-mode worker. Resolves once n8n has
 * accepted the frame; only n8n's log shows whether the trigger could send it.
 */
export async function handOver(context: IExecuteFunctions, text: string): Promise<Result<undefined>> {
	if (text.length > MAX_FRAME_CHARS) {
		return failInput('The frame is larger than 16 million characters', `Send less in one frame. ${NOT_SENT}`);
	}
	try {
		await context.sendResponse({ [FIELD]: text });
		return ok(undefined);
	} catch (error) {
		return fail({
			kind: 'unclear',
			message: `n8n did not confirm that it passed the frame on to the trigger: ${wordsOfError(error)}`,
			advice:
				'In queue mode, frames reach the trigger through Redis. The frame may have been sent: send it again only if a duplicate does no harm.',
		});
	}
}

/** The text of a frame that was handed over; undefined for n8n's own responses. */
export function readHandedOver(response: unknown): string | undefined {
	const text = isJsonObject(response) ? response[FIELD] : undefined;
	return typeof text === 'string' ? text : undefined;
}
