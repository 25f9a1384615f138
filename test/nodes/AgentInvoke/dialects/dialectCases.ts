import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { RefusalMeaning } from '../../../../nodes/AgentInvoke/wire/conclusion';
import { A2A } from './a2aServer';
import { COZE } from './cozeServer';
import { DIFY } from './difyServer';
import { JSON_LINES } from './jsonLinesServer';
import { LANGGRAPH } from './langgraphServer';
import type { RefusalKind } from './plan';
import { RESPONSES } from './responsesServer';
import { StandIn, TOKEN } from './standIn';

/** How the node reports a refusal. */
export interface RefusalExpected {
	readonly kind: 'refused' | 'failed';
	readonly meaning: RefusalMeaning | undefined;
	readonly status: number;
	readonly code: string;
	readonly detail: string;
}

export interface DialectCase {
	readonly name: string;
	readonly description: string;
	/** The folder of the description; default: `docs/wires`. */
	readonly folder?: string;
	readonly invokePath: string;
	open(): Promise<StandIn>;
	/** Whether the product can answer without a stream; otherwise the description always asks for one. */
	readonly answersWhole: boolean;
	/** Whether a stream ends without an event that says so. */
	readonly endsWithBody?: boolean;
	/** Whether only the last message is the answer. */
	readonly dropsPreamble?: boolean;
	usage(tokensIn: number, tokensOut: number): object | null;
	readonly refusals: Readonly<Record<RefusalKind, RefusalExpected>>;
	/** The failure of an agent that ran; `isWholeIn200`: without a stream it is reported with HTTP 200. */
	readonly failure: { readonly code: string; readonly detail: string; readonly isWholeIn200: boolean };
	/** Whether the description has a placeholder for files. */
	readonly takesFiles: boolean;
	/** The maximum number of tool results per call. */
	readonly mostResults: number;
	/** What the node outputs for a question of the agent. */
	readonly question: 'interrupt' | 'text' | 'tool';
	/** Text of the event without which a stream is incomplete. */
	readonly endMark: string;
}

const WIRES = join(__dirname, '../../../../docs/wires');

type Refusals = DialectCase['refusals'];

/** The expected refusals, all of which prove that nothing ran. */
function proven(
	kinds: Readonly<Record<RefusalKind, readonly [status: number, code: string, detail: string]>>,
): Refusals {
	const of = (kind: RefusalKind, meaning?: RefusalExpected['meaning']): RefusalExpected => {
		const [status, code, detail] = kinds[kind];
		return { kind: 'refused', meaning, status, code, detail };
	};
	return {
		noSuchPath: of('noSuchPath'),
		malformed: of('malformed', 'rejected'),
		token: of('token', 'tokenRefused'),
		sessionUnknown: of('sessionUnknown', 'sessionUnknown'),
		busy: of('busy', 'busy'),
		load: of('load', 'notRun'),
		forGood: of('forGood', 'rejected'),
	};
}

const COZE_REFUSALS = proven({
	noSuchPath: [404, '4200', 'Requested resource not found.'],
	malformed: [400, '4000', 'bot_id is required'],
	token: [401, 'unauthorized', 'authentication is invalid'],
	sessionUnknown: [200, 'session_not_found', 'Invalid conversation.'],
	busy: [200, 'session_busy', 'A chat is already running in this conversation.'],
	load: [200, 'rate_limited', 'The system has reached its limit of requests.'],
	forGood: [200, '4006', 'Invalid bot.'],
});

const A2A_REFUSALS = proven({
	noSuchPath: [404, '-32601', 'Method not found'],
	malformed: [200, '-32602', 'role and messageId are required'],
	token: [401, 'unauthorized', 'Unauthorized'],
	sessionUnknown: [200, 'session_not_found', 'Task not found'],
	busy: [200, 'session_busy', 'A task of this context is running'],
	load: [200, 'rate_limited', 'Too many tasks'],
	forGood: [200, '-32004', 'This operation is not supported'],
});

export const dialectCases: readonly DialectCase[] = [
	{
		name: 'Dify',
		description: 'dify',
		invokePath: '/v1/chat-messages',
		open: async () => await StandIn.open(DIFY),
		answersWhole: true,
		usage: (tokensIn, tokensOut) => ({ prompt_tokens: tokensIn, completion_tokens: tokensOut }),
		refusals: proven({
			noSuchPath: [404, 'not_found', 'The requested URL was not found on the server.'],
			malformed: [400, 'invalid_param', 'query is required'],
			token: [401, 'unauthorized', 'Access token is invalid'],
			sessionUnknown: [404, 'conversation_not_found', 'Conversation Not Exists.'],
			busy: [409, 'conversation_busy', 'A message of this conversation is being answered.'],
			load: [429, 'rate_limit_error', 'Rate limit exceeded, please try again later.'],
			forGood: [400, 'app_unavailable', 'App unavailable, please check your app configurations.'],
		}),
		failure: { code: 'completion_request_error', detail: 'The model gave up.', isWholeIn200: false },
		takesFiles: true,
		mostResults: 1,
		question: 'interrupt',
		endMark: '"event":"message_end"',
	},
	{
		name: 'Coze',
		description: 'coze',
		invokePath: '/v3/chat',
		open: async () => await StandIn.open(COZE),
		answersWhole: false,
		usage: (tokensIn, tokensOut) => ({
			...{ total_tokens: tokensIn + tokensOut, input_tokens: tokensIn, output_tokens: tokensOut },
		}),
		refusals: { ...COZE_REFUSALS, noSuchPath: { ...COZE_REFUSALS.noSuchPath, meaning: 'rejected' } },
		failure: { code: '', detail: 'Model error.', isWholeIn200: true },
		takesFiles: false,
		mostResults: 2,
		question: 'text',
		endMark: 'event:done',
	},
	{
		name: 'Responses',
		description: 'responses',
		invokePath: '/v1/responses',
		open: async () => await StandIn.open(RESPONSES),
		answersWhole: true,
		usage: (tokensIn, tokensOut) => ({ input_tokens: tokensIn, output_tokens: tokensOut }),
		refusals: proven({
			noSuchPath: [404, 'not_found', 'Invalid URL'],
			malformed: [400, 'invalid_value', "Missing required parameter: 'model'."],
			token: [401, 'invalid_api_key', 'Incorrect API key provided.'],
			sessionUnknown: [400, 'previous_response_not_found', 'Previous response not found.'],
			busy: [400, 'conversation_locked', 'Another process is currently operating on this conversation.'],
			load: [429, 'rate_limit_exceeded', 'Rate limit reached.'],
			forGood: [400, 'context_length_exceeded', 'Your input exceeds the context window.'],
		}),
		failure: { code: '', detail: 'The model produced an error.', isWholeIn200: true },
		takesFiles: false,
		mostResults: 2,
		question: 'tool',
		endMark: '"type":"response.completed"',
	},
	{
		name: 'LangGraph',
		description: 'langgraph',
		invokePath: '/runs/stream',
		open: async () => await StandIn.open(LANGGRAPH),
		answersWhole: false,
		endsWithBody: true,
		dropsPreamble: true,
		usage: (tokensIn, tokensOut) => ({ input_tokens: tokensIn, output_tokens: tokensOut }),
		refusals: proven({
			noSuchPath: [404, 'Not Found', 'Not Found'],
			malformed: [422, 'assistant_id is required', 'assistant_id is required'],
			token: [403, 'unauthorized', 'Invalid authentication'],
			sessionUnknown: [404, 'session_not_found', 'Thread or assistant not found.'],
			busy: [
				...([409, 'session_busy'] as const),
				'Thread is already running a task. Wait for it to finish or choose a different multitask strategy.',
			],
			load: [429, 'too_many_requests', 'Too many requests'],
			forGood: [400, 'Assistant is not deployed', 'Assistant is not deployed'],
		}),
		failure: { code: '', detail: 'The graph gave up.', isWholeIn200: false },
		takesFiles: false,
		mostResults: 1,
		question: 'interrupt',
		endMark: 'event: updates',
	},
	{
		name: 'A2A',
		description: 'a2a',
		invokePath: '/a2a/agent',
		open: async () => await StandIn.open(A2A),
		answersWhole: true,
		// The protocol reports no usage.
		usage: () => null,
		refusals: {
			...A2A_REFUSALS,
			noSuchPath: { ...A2A_REFUSALS.noSuchPath, meaning: 'rejected' },
			// Servers also send this code after an agent has run.
			forGood: { ...A2A_REFUSALS.forGood, kind: 'failed', meaning: undefined },
		},
		failure: { code: '', detail: 'The agent gave up.', isWholeIn200: true },
		takesFiles: true,
		mostResults: 1,
		question: 'interrupt',
		endMark: '"final":true',
	},
	{
		name: 'JSON lines',
		description: 'jsonLines',
		folder: __dirname,
		invokePath: '/api/chat',
		open: async () => await StandIn.open(JSON_LINES),
		answersWhole: true,
		usage: (tokensIn, tokensOut) => ({ in: tokensIn, out: tokensOut }),
		refusals: proven({
			noSuchPath: [404, '404 page not found', '404 page not found'],
			malformed: [400, 'model is required', 'model is required'],
			token: [401, 'unauthorized', 'unauthorized'],
			sessionUnknown: [404, 'conversation not found', 'conversation not found'],
			busy: [409, 'conversation busy', 'conversation busy'],
			load: [
				...([503, 'server busy, please try again. maximum pending requests exceeded'] as const),
				'server busy, please try again. maximum pending requests exceeded',
			],
			forGood: [400, 'model requires more system memory', 'model requires more system memory'],
		}),
		failure: { code: '', detail: 'the model runner stopped', isWholeIn200: false },
		takesFiles: false,
		mostResults: 2,
		question: 'tool',
		endMark: '"done":true',
	},
];

/** The description with the operator's own values filled in. */
export function descriptionOf({ description, folder = WIRES }: DialectCase): string {
	const text = readFileSync(join(folder, `${description}.json`), 'utf8');
	return text.replace(/YOUR-[A-Z-]+/g, 'mine-1');
}

export function accountOf(dialect: DialectCase, server: StandIn, agentToken = TOKEN): Record<string, string> {
	return {
		agentToken,
		baseUrl: server.baseUrl,
		invokePath: dialect.invokePath,
		mediaUploadPath: '',
		wire: 'described',
		description: descriptionOf(dialect),
	};
}
