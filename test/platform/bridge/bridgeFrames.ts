/**
 * The frames of the bridge. The interface does not show them (§6.2), so these are invented; the README lists all of them.
 * A frame is a JSON object; only the local platform and its tests know these fields.
 */
export type BridgeFrame = Record<string, unknown>;

export function readFrame(text: string): BridgeFrame | undefined {
	try {
		const value: unknown = JSON.parse(text);
		return isFrame(value) ? value : undefined;
	} catch {
		return undefined;
	}
}

function isFrame(value: unknown): value is BridgeFrame {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const TOOL = { tool: 'lookup_order', arguments: { order: 'A-1042' } };

/** The answers of the channel's agent to a frame, in order. `nextId` gives each frame an ID of its own. */
export function answersTo(frame: BridgeFrame, nextId: () => string): BridgeFrame[] {
	const correlation = { correlation_id: frame.id ?? null, conversation_id: frame.conversation_id ?? null };
	const say = (type: string, fields: BridgeFrame): BridgeFrame => ({
		type,
		id: nextId(),
		...correlation,
		...fields,
	});
	switch (frame.type) {
		case 'echo':
			return [{ ...frame, id: nextId(), correlation_id: frame.id ?? null }];
		case 'message':
			// This is an answer of the message system, and the agent does not answer answers.
			if (frame.reply_to !== undefined) return [];
			return agentSays(typeof frame.text === 'string' ? frame.text : '', say);
		case 'interrupt_result':
			return [say('message', { text: `Resumed with: ${JSON.stringify(frame.result ?? null)}` })];
		default:
			return [say('error', { message: `There is no frame of type ${JSON.stringify(frame.type ?? null)}` })];
	}
}

/** Reads from the text what the agent should do, as a prompt orders a task's outcome. */
function agentSays(text: string, say: (type: string, fields: BridgeFrame) => BridgeFrame): BridgeFrame[] {
	if (text.includes('[silent]')) return [];
	const tool = text.includes('[tool]')
		? [
				say('tool_event', { ...TOOL, status: 'started' }),
				say('tool_event', { ...TOOL, status: 'finished', result: { state: 'shipped' } }),
			]
		: [];
	if (text.includes('[interrupt]')) {
		const interrupt = { id: `int-${text.length}`, kind: 'approval', tool: 'refund_order' };
		return [...tool, say('interrupt', { interrupt, question: 'May I refund this order?' })];
	}
	return [...tool, say('message', { text: `Agent: ${text}` })];
}
