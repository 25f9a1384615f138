import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { refusal } from '../codes';
import type { Fault } from '../faults/faultBoard';
import type { FaultRule } from '../faults/rules';
import { pause } from '../time';

export interface HttpAnswer {
	readonly status: number;
	readonly headers: Readonly<Record<string, string>>;
	readonly body: string;
}

/** How a service words a refusal in its body; the code begins with the HTTP status. */
export type Wording = (code: number, message: string) => unknown;

const JSON_TYPE = 'application/json; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';

export function jsonAnswer(status: number, envelope: unknown): HttpAnswer {
	return { status, headers: { 'content-type': JSON_TYPE }, body: JSON.stringify(envelope) };
}

function htmlAnswer(status: number, text: string): HttpAnswer {
	const body = `<html><head><title>${text}</title></head><body><h1>${text}</h1></body></html>\n`;
	return { status, headers: { 'content-type': HTML_TYPE }, body };
}

const STATUS_TEXTS: Readonly<Record<number, string>> = {
	429: 'Too Many Requests',
	500: 'Internal Server Error',
	502: 'Bad Gateway',
	503: 'Service Unavailable',
	504: 'Gateway Timeout',
};

function failureAnswer(status: number, body: FaultRule['body'], wording: Wording): HttpAnswer {
	const text = STATUS_TEXTS[status] ?? 'Server Error';
	if (body === 'empty') return { status, headers: {}, body: '' };
	if (body === 'html') return htmlAnswer(status, `${status} ${text}`);
	return jsonAnswer(status, wording(status * 100, text));
}

function withRetryAfter(answer: HttpAnswer, rule: FaultRule, style: FaultRule['retryAfter']): HttpAnswer {
	if (style === 'none' || style === undefined) return answer;
	const seconds = rule.retryAfterSeconds ?? 1;
	// A date has whole seconds, so it is rounded up, in order not to be too early.
	const date = new Date(Math.ceil(Date.now() / 1000 + seconds) * 1000).toUTCString();
	return {
		...answer,
		headers: { ...answer.headers, 'retry-after': style === 'date' ? date : String(seconds) },
	};
}

/** The answer of a fault in place of the service's; undefined if it does not answer at all. */
export function faultAnswer(
	{ kind, rule }: Fault,
	trapUrl: string,
	wording: Wording = refusal,
): HttpAnswer | undefined {
	switch (kind) {
		case '429': {
			const answer = failureAnswer(429, rule.body, wording);
			return withRetryAfter(answer, rule, rule.retryAfter ?? 'seconds');
		}
		case '5xx':
			return withRetryAfter(failureAnswer(rule.status ?? 503, rule.body, wording), rule, rule.retryAfter);
		case 'code':
			return withRetryAfter(
				jsonAnswer(200, wording(rule.code ?? 50000, rule.msg ?? 'Internal service error, try again later')),
				rule,
				rule.retryAfter,
			);
		case 'html200':
			return htmlAnswer(200, 'Down for maintenance');
		case 'redirect':
			return { status: rule.status ?? 302, headers: { location: trapUrl }, body: '' };
		default:
			return undefined;
	}
}

/** Cuts the connection with a TCP reset. */
export function resetConnection(response: ServerResponse): void {
	response.socket?.resetAndDestroy();
}

/** Calls back once a whole answer was sent on an open connection; a response also ends on a broken one. */
export function onceWhole(response: ServerResponse, callback: () => void): void {
	const { socket } = response;
	response.once('finish', () => {
		if (socket !== null && !socket.destroyed) callback();
	});
}

/** Writes ten parts over the given time, as a slow connection does. */
export async function writeSlowly(response: ServerResponse, body: Buffer, ms: number): Promise<void> {
	const part = Math.max(1, Math.ceil(body.length / 10));
	for (let offset = 0; offset < body.length; offset += part) {
		await pause(ms / 10);
		if (response.destroyed) return;
		response.write(body.subarray(offset, offset + part));
	}
}

async function writeRaw(
	reply: FastifyReply,
	answer: HttpAnswer,
	body: Buffer,
	ms: number | undefined,
	cut: boolean,
): Promise<void> {
	reply.hijack();
	const response = reply.raw;
	const length = Buffer.byteLength(answer.body);
	response.writeHead(answer.status, { ...answer.headers, 'content-length': length });
	if (ms !== undefined) await writeSlowly(response, body, ms);
	else response.write(body);
	if (!cut) response.end();
	// Everything written before must arrive first.
	else setImmediate(() => response.socket?.destroy());
}

function cutShort(answer: HttpAnswer): HttpAnswer {
	return { ...answer, body: answer.body.slice(0, Math.floor(answer.body.length * 0.6)) };
}

/** Nests a field of the matching or first task by editing the text, so that the body need not be parsed. */
function nested(answer: HttpAnswer, { match, after: levels = 5_000 }: FaultRule): HttpAnswer {
	const deep = `"previews":${'['.repeat(levels)}${']'.repeat(levels)},`;
	const start = `"flow_task_id":${match === undefined ? '' : JSON.stringify(match)}`;
	return { ...answer, body: answer.body.replace(start, `${deep}${start}`) };
}

/** Sends an answer and applies the faults of its delivery. `whenWhole` is called once all of it was sent. */
export async function deliver(
	reply: FastifyReply,
	answer: HttpAnswer,
	faults: readonly Fault[] = [],
	trapUrl = '',
	whenWhole?: () => void,
): Promise<FastifyReply> {
	const delivery = faults.find(({ phase }) => phase === 'delivery');
	const slow = faults.find(({ kind }) => kind === 'slowBody');
	const slowMs = slow === undefined ? undefined : (slow.rule.ms ?? 500);
	if (delivery?.kind === 'resetAfter') {
		reply.hijack();
		resetConnection(reply.raw);
		return reply;
	}
	if (delivery?.kind === 'hang') return reply.hijack();
	const spoilt = delivery === undefined ? undefined : faultAnswer(delivery, trapUrl);
	if (spoilt === undefined && delivery?.kind !== 'truncatedJson' && whenWhole !== undefined) {
		onceWhole(reply.raw, whenWhole);
	}
	if (delivery?.kind === 'truncatedJson' && delivery.rule.cut === 'connection') {
		await writeRaw(reply, answer, Buffer.from(cutShort(answer).body), slowMs, true);
		return reply;
	}
	const sent =
		delivery?.kind === 'truncatedJson'
			? cutShort(answer)
			: delivery?.kind === 'deepInfo'
				? nested(answer, delivery.rule)
				: (spoilt ?? answer);
	if (slowMs === undefined) return reply.code(sent.status).headers(sent.headers).send(sent.body);
	await writeRaw(reply, sent, Buffer.from(sent.body), slowMs, false);
	return reply;
}
