import type { DialectName } from '../../platform/agents/dialects';
import { describedBy } from '../../unit/AgentInvoke/wire/wire.fixture';

/** A description of nested bodies and an envelope. */
const NESTED = describedBy({
	request: {
		message: {
			input: { query: '$message', attachments: '$files' },
			thread: { id: '$session' },
			mode: '$stream(sse, sync)',
		},
		resume: {
			thread: { id: '$session' },
			decision: { ref: '$interruptId', value: '$result' },
			mode: '$stream(sse, sync)',
		},
		file: { href: '$url', title: '$name', media: '$mimeType' },
	},
	answer: {
		text: 'output.messages[0].content[0].text',
		session: 'thread.id',
		usage: 'billing',
		interrupt: {
			...{ at: 'waiting', id: 'ref', tool: 'action.title', arguments: 'action.params', question: 'prompt' },
		},
	},
	stream: {
		rules: [
			{ on: ['problem'], fail: 'data.detail || data.reason' },
			{ on: ['step'], step: true },
			{ on: ['chunk'], delta: 'token' },
			{ on: ['summary'], whole: 'output.messages[0].content[0].text', end: true },
		],
	},
	refusal: {
		busy: ['THREAD_LOCKED'],
		notRun: ['QUEUE_FULL', 'SLOW_DOWN'],
		sessionUnknown: ['THREAD_LOST'],
		tokenRefused: ['TOKEN_REFUSED'],
	},
	upload: { part: 'blob', url: 'data.location.href', expires: 'data.location.until' },
});

/** A description without an envelope, with streams that end with their body, as in docs/deployments.md. */
const BARE = describedBy({
	request: {
		message: { text: '$message', links: '$files', conversation: '$session', live: '$stream(yes, )' },
		resume: {
			conversation: '$session',
			reply_to: '$interruptId',
			reply: '$result',
			live: '$stream(yes, )',
		},
		file: '$url',
	},
	answer: {
		envelope: false,
		text: 'say',
		session: 'conversation',
		usage: 'tokens',
		interrupt: { at: 'hold', id: 'key', tool: 'act', arguments: 'using', question: 'why' },
	},
	stream: {
		event: 'type',
		end: 'body',
		rules: [
			{ on: ['failure'], fail: 'error.message' },
			{ on: ['tool_use'], step: true },
			{ on: ['text'], delta: 'part' },
		],
	},
	refusal: {
		code: 'error.code',
		detail: 'error.message',
		busy: ['conversation_in_use'],
		notRun: ['no_capacity'],
		sessionUnknown: ['no_such_conversation'],
		tokenRefused: ['bad_key'],
	},
	upload: { part: 'upload', url: 'link', expires: 'until' },
});

/** The credential fields for each dialect of the local platform. */
export const DIALECT_ACCOUNTS: Readonly<Record<DialectName, Record<string, string>>> = {
	usual: {},
	nested: NESTED,
	bare: BARE,
};
