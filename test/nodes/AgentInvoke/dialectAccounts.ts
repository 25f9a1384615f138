import type { DialectName } from '../../platform/agents/dialects';

const json = (value: unknown): string => JSON.stringify(value);

const USUAL = {};

/** Nested bodies and an envelope. docs/deployments.md shows it. */
const NESTED = {
	customFields: true,
	requestFormat: 'template',
	messageTemplate: json({
		input: { query: '$message', attachments: '$files' },
		thread: { id: '$session' },
		mode: '$stream(sse, sync)',
	}),
	resumeTemplate: json({
		thread: { id: '$session' },
		decision: { ref: '$interruptId', value: '$result' },
		mode: '$stream(sse, sync)',
	}),
	fileTemplate: json({ href: '$url', title: '$name', media: '$mimeType' }),
	answerPath: 'output.messages[0].content[0].text',
	deltaPath: 'token',
	sessionPath: 'thread.id',
	usagePath: 'billing',
	interruptPath: 'waiting',
	interruptIdPath: 'ref',
	interruptToolPath: 'action.title',
	interruptArgumentsPath: 'action.params',
	interruptQuestionPath: 'prompt',
	busyCodes: 'THREAD_LOCKED',
	notRunCodes: 'QUEUE_FULL, SLOW_DOWN',
	sessionUnknownCodes: 'THREAD_LOST',
	tokenRefusedCodes: 'TOKEN_REFUSED',
	interruptCodes: 'WAITING',
	endEvents: 'summary',
	errorEvents: 'problem',
	textEvents: 'chunk',
	toolEvents: 'step',
	mediaPartField: 'blob',
	mediaUrlPath: 'location.href',
	mediaExpiryPath: 'location.until',
};

/** No envelope, no event names. docs/deployments.md shows it. */
const BARE = {
	customFields: true,
	requestFormat: 'template',
	messageTemplate: json({
		text: '$message',
		links: '$files',
		conversation: '$session',
		live: '$stream(yes, )',
	}),
	resumeTemplate: json({
		conversation: '$session',
		reply_to: '$interruptId',
		reply: '$result',
		live: '$stream(yes, )',
	}),
	fileTemplate: json('$url'),
	envelope: 'none',
	answerPath: 'say',
	deltaPath: 'part',
	sessionPath: 'conversation',
	usagePath: 'tokens',
	interruptPath: 'hold',
	interruptIdPath: 'key',
	interruptToolPath: 'act',
	interruptArgumentsPath: 'using',
	interruptQuestionPath: 'why',
	reasonPath: 'error.code',
	detailPath: 'error.message',
	busyCodes: 'conversation_in_use',
	notRunCodes: 'no_capacity',
	sessionUnknownCodes: 'no_such_conversation',
	tokenRefusedCodes: 'bad_key',
	streamEnd: 'body',
	eventNamePath: 'type',
	errorEvents: 'failure',
	textEvents: 'text',
	toolEvents: 'tool_use',
	mediaPartField: 'upload',
	mediaUrlPath: 'link',
	mediaExpiryPath: 'until',
};

/** What a credential says of each dialect of the local platform. */
export const DIALECT_ACCOUNTS: Readonly<Record<DialectName, Record<string, string | boolean>>> = {
	usual: USUAL,
	nested: NESTED,
	bare: BARE,
};
