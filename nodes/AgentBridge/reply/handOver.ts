import { isJsonObject } from '../../shared/text/json';

/** No webhook's response has such a field. */
const FIELD = 'flowBridgeFrame';

/**
 * What the action gives to n8n's `sendResponse`, which brings it to the trigger that started the execution, from a
 * worker of queue mode too.
 * @param text the frame as it is sent
 */
export function toHandOver(text: string): Record<string, string> {
	return { [FIELD]: text };
}

/** The text of a frame that was handed over. n8n has responses of its own, which hold none. */
export function readHandedOver(response: unknown): string[] {
	const text = isJsonObject(response) ? response[FIELD] : undefined;
	return typeof text === 'string' ? [text] : [];
}
