import { isJsonObject } from '../../shared/text/json';

/** A field that no ordinary webhook response has. */
const FIELD = 'flowBridgeFrame';

/**
 * The value that the action passes to n8n's `sendResponse`, which delivers it to the trigger that started the
 * execution, even from a queue-mode worker.
 * @param text the frame as it is sent
 */
export function toHandOver(text: string): Record<string, string> {
	return { [FIELD]: text };
}

/** The text of a handed-over frame; undefined for n8n's own responses. */
export function readHandedOver(response: unknown): string[] {
	const text = isJsonObject(response) ? response[FIELD] : undefined;
	return typeof text === 'string' ? [text] : [];
}
