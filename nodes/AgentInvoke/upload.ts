import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import { parseJson, type Json } from '../shared/text/json';
import { readPath } from '../shared/text/jsonPath';
import { redactJson, type Redact } from '../shared/text/redact';
import type { Retry } from '../shared/http/retry';
import type { SendHttp } from '../shared/http/exchange';
import { classify } from '../shared/http/outcome';
import type { AgentAccount } from './account';
import { readEnvelope, textOf, type Envelope } from './envelope';
import { explainRefusal, isPassing, UPLOAD_PURPOSE, withStatus, wordsOf } from './failures';
import type { AgentFile } from './request';

export interface UploadedMedia extends AgentFile {
	/** As the platform says it; empty where it does not. */
	readonly expiresAt: string;
}

export interface MediaInput {
	readonly bytes: Uint8Array;
	readonly fileName: string;
	readonly mimeType: string;
}

export interface UploadParts {
	readonly account: AgentAccount;
	readonly send: SendHttp;
	readonly attempt: Retry;
	readonly redact: Redact;
}

const UPLOAD_TIMEOUT_MS = 120_000;
const UPLOAD_TRIES = 4;

/** Uploads a file that an Invoke call names by its address (§4.8). */
export async function uploadMedia(parts: UploadParts, media: MediaInput): Promise<Result<UploadedMedia>> {
	const { account, redact } = parts;
	const { mediaUploadPath, baseUrl, deployment } = account;
	if (!mediaUploadPath) {
		return fail(
			badInput(
				'Files cannot be uploaded, because the credential has no "Media Upload Path"',
				'Enter it in the FlowAgent credential if your deployment offers uploads, or pass the file by its web address.',
			),
		);
	}
	const terms = { purpose: UPLOAD_PURPOSE, lane: 'work', attempts: UPLOAD_TRIES } as const;
	// Two uploads of a file do no harm: only the address of one is used.
	const sent = await parts.attempt<Result<Envelope>>({ ...terms, repeatability: 'read' }, async () => {
		const form = new FormData();
		form.append(
			deployment.mediaPartField,
			new Blob([new Uint8Array(media.bytes)], { type: media.mimeType }),
			media.fileName,
		);
		const url = `${baseUrl}${mediaUploadPath}`;
		const exchange = await parts.send({ method: 'POST', url, form, timeoutMs: UPLOAD_TIMEOUT_MS });
		const parsed = exchange.kind === 'reply' ? parseJson(exchange.text) : undefined;
		const read = readEnvelope(parsed && redactJson(parsed, redact.known));
		if (read?.succeeded) return { kind: 'done', data: ok(read) };
		const envelope = read && withStatus(read, exchange.kind === 'reply' ? exchange.status : 0);
		if (envelope && isPassing(envelope))
			return { kind: 'busy', retryAfter: undefined, text: wordsOf(envelope), status: envelope.saidStatus };
		if (envelope) {
			return {
				kind: 'done',
				data: fail(explainRefusal(envelope, { account, redact, sessionId: '', isUpload: true })),
			};
		}
		const outcome = classify(exchange);
		return outcome.kind === 'done'
			? { kind: 'broken', status: 200, enveloped: false, text: 'an answer without the fields of an agent' }
			: outcome;
	});
	if (!sent.ok) return sent;
	return sent.value.ok ? readMedia(sent.value.value, media, parts.account) : sent.value;
}

function readMedia(
	{ data }: Envelope,
	{ fileName, mimeType }: MediaInput,
	{ deployment, baseUrl }: AgentAccount,
): Result<UploadedMedia> {
	const given = textOf(readPath(data, deployment.mediaUrlPath));
	const url = URL.canParse(given, baseUrl) && given ? new URL(given, baseUrl).href : '';
	const expiry: Json | undefined = readPath(data, deployment.mediaExpiryPath);
	if (!url) {
		return fail(
			badInput(
				'The file was uploaded, but the answer holds no address of it',
				`Check "Media URL Path" in the credential: the node looked at "${deployment.mediaUrlPath}" in the answer's data.`,
			),
		);
	}
	return ok({
		url: given.includes('://') ? given : url,
		name: fileName,
		mimeType,
		expiresAt: textOf(expiry),
	});
}
