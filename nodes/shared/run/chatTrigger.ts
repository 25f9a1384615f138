import { isStartedBy } from './startedBy';

const CHAT_TRIGGER = /(^|\.)chatTrigger$/;

/** Whether a Chat Trigger started the execution: the chat then shows the `output` field of the last node. */
export function isStartedByChat(context: Parameters<typeof isStartedBy>[0]): boolean {
	return isStartedBy(context, CHAT_TRIGGER);
}
