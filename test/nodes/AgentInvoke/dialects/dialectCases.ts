import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { RefusalMeaning } from '../../../../nodes/AgentInvoke/wire/conclusion';
import { A2A } from './a2aServer';
import { COZE } from './cozeServer';
import type { Dialect } from './dialect';
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
	readonly server: Dialect;
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

/**
 * The expected refusals, all of which prove that nothing ran.
 * @param malformed what the server says of a call without a message
 * @param codes what the node reports instead of the server's own code, or of its words if it gives no code
 */
function proven(
	{ refusals }: Dialect,
	malformed: string,
	codes: Partial<Record<RefusalKind, string>> = {},
): DialectCase['refusals'] {
	const of = (kind: RefusalKind, meaning?: RefusalExpected['meaning']): RefusalExpected => {
		const [status, message, own] = refusals[kind];
		const detail = message || malformed;
		return { kind: 'refused', meaning, status, code: codes[kind] ?? String(own ?? detail), detail };
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

const NAMED = {
	token: 'unauthorized',
	sessionUnknown: 'session_not_found',
	busy: 'session_busy',
	load: 'rate_limited',
};
const COZE_REFUSALS = proven(COZE, 'bot_id is required', NAMED);
const A2A_REFUSALS = proven(A2A, 'role and messageId are required', NAMED);

export const dialectCases: readonly DialectCase[] = [
	{
		name: 'Dify',
		description: 'dify',
		invokePath: '/v1/chat-messages',
		server: DIFY,
		answersWhole: true,
		usage: (tokensIn, tokensOut) => ({ prompt_tokens: tokensIn, completion_tokens: tokensOut }),
		refusals: proven(DIFY, 'query is required', { sessionUnknown: 'conversation_not_found' }),
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
		server: COZE,
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
		server: RESPONSES,
		answersWhole: true,
		usage: (tokensIn, tokensOut) => ({ input_tokens: tokensIn, output_tokens: tokensOut }),
		refusals: proven(RESPONSES, "Missing required parameter: 'model'."),
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
		server: LANGGRAPH,
		answersWhole: false,
		endsWithBody: true,
		dropsPreamble: true,
		usage: (tokensIn, tokensOut) => ({ input_tokens: tokensIn, output_tokens: tokensOut }),
		refusals: proven(LANGGRAPH, 'assistant_id is required', { ...NAMED, load: 'too_many_requests' }),
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
		server: A2A,
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
		server: JSON_LINES,
		answersWhole: true,
		usage: (tokensIn, tokensOut) => ({ in: tokensIn, out: tokensOut }),
		refusals: proven(JSON_LINES, 'model is required'),
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

/** Describes each dialect, with a server of its own that forgets everything before each test. */
export function describeDialects(tests: (dialect: DialectCase, server: () => StandIn) => void): void {
	describe.each(dialectCases)('$name', (dialect) => {
		let server: StandIn;
		beforeAll(async () => {
			server = await StandIn.open(dialect.server);
		});
		afterAll(async () => {
			await server.close();
		});
		beforeEach(() => {
			server.reset();
		});
		tests(dialect, () => server);
	});
}
