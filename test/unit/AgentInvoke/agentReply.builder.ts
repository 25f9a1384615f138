import type { AgentReply } from '../../../nodes/AgentInvoke/wire/conclusion';

/** What an agent answers that asks for nothing and reports nothing. */
export function replyOf(answer: string, sessionId: string, more: Partial<AgentReply> = {}) {
	const nothing = { interrupts: [], reason: '', requestId: '', usage: null, hint: '', raw: {} };
	return { answer, sessionId, ...nothing, ...more };
}
