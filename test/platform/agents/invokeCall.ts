import { isRecord } from '../wireJson';
import type { JsonRecord } from '../wireJson';
import { AgentRefusal } from './envelope';

export interface FileReference {
	readonly url: string;
	readonly name?: string;
	readonly mimeType?: string;
}

export interface InterruptAnswer {
	readonly id: string;
	readonly result: unknown;
}

/** The body of an Invoke call. */
export interface InvokeCall {
	readonly message: string | undefined;
	readonly sessionId: string | undefined;
	readonly stream: boolean;
	readonly files: readonly FileReference[];
	readonly interruptAnswer: InterruptAnswer | undefined;
	/** The keys that the service does not know. */
	readonly extraBody: JsonRecord;
	readonly body: JsonRecord;
}

function textOrNothing(value: unknown, name: string): string | undefined {
	if (value === undefined || value === null) return undefined;
	if (typeof value !== 'string') throw new AgentRefusal('body_invalid', `${name} must be a string.`);
	return value;
}

function readFiles(value: unknown): FileReference[] {
	if (value === undefined || value === null) return [];
	if (!Array.isArray(value)) throw new AgentRefusal('body_invalid', 'files must be an array.');
	return value.map((entry: unknown, index) => {
		if (!isRecord(entry) || typeof entry.url !== 'string') {
			throw new AgentRefusal('body_invalid', `files[${index}] must be an object with a url.`);
		}
		return {
			url: entry.url,
			name: textOrNothing(entry.name, `files[${index}].name`),
			mimeType: textOrNothing(entry.mime_type, `files[${index}].mime_type`),
		};
	});
}

function readInterruptAnswer(value: unknown): InterruptAnswer | undefined {
	if (value === undefined || value === null) return undefined;
	if (!isRecord(value) || typeof value.id !== 'string') {
		throw new AgentRefusal('body_invalid', 'interrupt_result must be an object with an id and a result.');
	}
	return { id: value.id, result: value.result ?? null };
}

/** Throws AgentRefusal. A missing body is a call without a message, which costs nothing, so it can test a token. */
export function readCall(given: unknown): InvokeCall {
	const body = given ?? {};
	if (!isRecord(body)) throw new AgentRefusal('body_invalid', 'The body must be a JSON object.');
	const { message, session_id: session, stream, files, interrupt_result: result, ...extraBody } = body;
	const call: InvokeCall = {
		message: textOrNothing(message, 'message'),
		sessionId: textOrNothing(session, 'session_id'),
		stream: stream === true,
		files: readFiles(files),
		interruptAnswer: readInterruptAnswer(result),
		extraBody,
		body,
	};
	if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
		throw new AgentRefusal('body_invalid', 'stream must be a boolean.');
	}
	if ((call.message ?? '') === '' && call.interruptAnswer === undefined) {
		throw new AgentRefusal('message_required', 'message is required: a string that is not empty.');
	}
	return call;
}
