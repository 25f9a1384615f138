import { isRecord } from '../wireJson';
import type { JsonRecord } from '../wireJson';
import { AgentRefusal, type AgentEnvelope } from './envelope';

/** An event of a stream: its data, and the name of its `event:` line, if it has one. */
export interface WireEvent {
	readonly name?: string;
	readonly data: unknown;
}

/**
 * How a deployment words what all agents of the platform do. The interface shows only the envelope (§4.6), so deployments
 * may differ in everything else, as these three do.
 */
export interface Dialect {
	/** Translates a body into the names that `readCall` knows; other fields stay, and the books list them as extra. */
	read(body: JsonRecord): JsonRecord;
	/** The body of an answer that is not a stream. */
	body(envelope: AgentEnvelope): unknown;
	/** Whether the outer HTTP status is always the one that counts. */
	readonly statusIsOuter: boolean;
	piece(envelope: AgentEnvelope): WireEvent;
	/** A tool that the agent used while it worked. */
	step(envelope: AgentEnvelope): WireEvent;
	last(envelope: AgentEnvelope): WireEvent;
	/** The part of an upload's form that contains the file. */
	readonly mediaPart: string;
	/** The body of an answer to an upload. */
	media(envelope: AgentEnvelope): unknown;
}

/** The dialect of the defaults in the node's credential. */
const usual: Dialect = {
	read: (body) => body,
	body: (envelope) => envelope,
	statusIsOuter: false,
	piece: (data) => ({ data }),
	step: (data) => ({ name: 'tool', data }),
	last: (data) => ({ name: data.success_response ? 'done' : 'error', data }),
	mediaPart: 'file',
	media: (envelope) => envelope,
};

function recordAt(value: JsonRecord, key: string): JsonRecord {
	const inner = value[key] ?? {};
	if (!isRecord(inner)) throw new AgentRefusal('body_invalid', `${key} must be an object.`);
	return inner;
}

/** Removes undefined values, because an absent key is not the same as one without a value. */
function defined(record: JsonRecord): JsonRecord {
	return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

const NESTED_REASONS: Readonly<Record<string, string>> = {
	session_busy: 'THREAD_LOCKED',
	overloaded: 'QUEUE_FULL',
	rate_limited: 'SLOW_DOWN',
	session_not_found: 'THREAD_LOST',
	token_invalid: 'TOKEN_REFUSED',
	token_expired: 'TOKEN_REFUSED',
	delta: 'PARTIAL',
	completed: 'FINISHED',
	interrupted: 'WAITING',
};

function nestedInterrupt(interrupt: unknown): JsonRecord[] {
	if (!isRecord(interrupt)) return [];
	const { id, kind, question, tool_name: title, arguments: params } = interrupt;
	return [
		defined({
			ref: id,
			prompt: question,
			action: kind === 'tool' ? { title, params: JSON.stringify(params) } : undefined,
		}),
	];
}

function nestedEnvelope(envelope: AgentEnvelope): JsonRecord {
	const { reason, session_id: id, answer, interrupt, usage, delta, detail, tool, ...rest } = envelope.data;
	const data = defined({
		reason: NESTED_REASONS[String(reason)] ?? reason,
		detail,
		thread: id === undefined ? undefined : { id },
		output: answer === undefined ? undefined : { messages: [{ content: [{ text: answer }] }] },
		token: delta,
		step: tool,
		waiting: interrupt === undefined ? undefined : nestedInterrupt(interrupt),
		billing: isRecord(usage) ? { units: usage.total_tokens } : undefined,
		...rest,
	});
	return { ...envelope, data };
}

/** A dialect with nested bodies, its own words for all reasons, and named events. */
const nested: Dialect = {
	read: (body) => {
		const { input: _input, thread: _thread, mode, decision, ...rest } = body;
		const input = recordAt(body, 'input');
		const { ref: id, value: result } = isRecord(decision) ? decision : {};
		if (mode !== 'sse' && mode !== 'sync' && Object.keys(body).length > 0) {
			throw new AgentRefusal('body_invalid', 'mode must be "sse" or "sync".');
		}
		const attachments = Array.isArray(input.attachments) ? input.attachments : undefined;
		return defined({
			message: input.query,
			session_id: recordAt(body, 'thread').id,
			stream: mode === 'sse' ? true : undefined,
			files: attachments?.map((entry: unknown) => {
				const { href, title, media } = isRecord(entry) ? entry : {};
				return defined({ url: href, name: title, mime_type: media });
			}),
			interrupt_result: isRecord(decision) ? { id, result } : undefined,
			...rest,
		});
	},
	body: nestedEnvelope,
	statusIsOuter: false,
	piece: (envelope) => ({ name: 'chunk', data: nestedEnvelope(envelope) }),
	step: (envelope) => ({ name: 'step', data: nestedEnvelope(envelope) }),
	last: (envelope) => ({
		name: envelope.success_response ? 'summary' : 'problem',
		data: nestedEnvelope(envelope),
	}),
	mediaPart: 'blob',
	media: (envelope) => {
		const { url: href, expires_at: until, ...rest } = envelope.data;
		return { ...envelope, data: { ...rest, location: { href, until } } };
	},
};

const BARE_CODES: Readonly<Record<string, string>> = {
	session_busy: 'conversation_in_use',
	overloaded: 'no_capacity',
	rate_limited: 'no_capacity',
	session_not_found: 'no_such_conversation',
	token_invalid: 'bad_key',
	token_expired: 'bad_key',
};

function bareBody({ success_response: succeeded, data }: AgentEnvelope): JsonRecord {
	const { reason, session_id: conversation, answer, interrupt, usage, delta, detail, tool, ...rest } = data;
	if (!succeeded) {
		const code = BARE_CODES[String(reason)] ?? reason;
		return defined({ error: { code, message: detail }, conversation });
	}
	const { id: key, question: why, tool_name: act, arguments: using } = isRecord(interrupt) ? interrupt : {};
	return defined({
		say: answer === '' ? undefined : answer,
		part: delta,
		used: tool,
		conversation,
		hold: key === undefined ? undefined : defined({ key, why, act, using }),
		tokens: isRecord(usage) ? usage.total_tokens : undefined,
		...rest,
	});
}

/** A dialect without an envelope or named events: HTTP's own status, a `type` in each event, a stream ended by its body. */
const bare: Dialect = {
	read: (body) => {
		const { text, conversation, links, live, reply_to: id, reply: result, ...rest } = body;
		return defined({
			message: text,
			session_id: conversation,
			stream: live === 'yes' ? true : undefined,
			files: Array.isArray(links) ? links.map((url: unknown) => ({ url })) : undefined,
			interrupt_result: id === undefined ? undefined : { id, result },
			...rest,
		});
	},
	body: bareBody,
	statusIsOuter: true,
	piece: (envelope) => ({ data: { type: 'text', ...bareBody(envelope) } }),
	step: (envelope) => ({ data: { type: 'tool_use', ...bareBody(envelope) } }),
	last: (envelope) => {
		const { say: _say, ...body } = bareBody(envelope);
		// The pieces already contain the whole answer.
		return { data: { type: envelope.success_response ? 'receipt' : 'failure', ...body } };
	},
	mediaPart: 'upload',
	media: ({ data: { url: link, expires_at: until } }) => ({ link, until }),
};

export const DIALECTS = { usual, nested, bare } as const satisfies Record<string, Dialect>;
export type DialectName = keyof typeof DIALECTS;
