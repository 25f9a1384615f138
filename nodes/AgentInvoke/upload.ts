import { badInput, fail, ok, type Result } from '../shared/errors/failure';
import { parseJson } from '../shared/text/json';
import { redactJson, type Redact } from '../shared/text/redact';
import type { Retry } from '../shared/http/retry';
import type { Clock } from '../shared/run/clock';
import type { SendHttp } from '../shared/http/exchange';
import type { Outcome } from '../shared/http/outcome';
import { classify } from '../shared/platform/envelope';
import type { AgentAccount } from './account';
import { isPassing, notOfAnAgent, readEnvelope, withStatus, wordsOf, type Envelope } from './envelope';
import { explainCall, explainRefusal } from './failures';
import { textAt } from './paths';
import type { AgentFile } from './request';

export interface UploadedMedia extends AgentFile {
	/** As the platform says it; empty where it does not. */
	readonly expiresAt: string;
}

export interface UploadParts {
	readonly account: AgentAccount;
	readonly send: SendHttp;
	readonly retry: Retry;
	readonly clock: Clock;
	readonly redact: Redact;
}

const UPLOAD_TIMEOUT_MS = 120_000;
const UPLOAD_TRIES = 4;

/**
 * Uploads a file that an Invoke call names by its address (§4.8).
 * @param media sent anew by each try, from its start
 * @param endByMs when nobody waits for it any more, by the clock's `now()`
 */
export async function uploadMedia(
	parts: UploadParts,
	media: File,
	endByMs: number,
): Promise<Result<UploadedMedia>> {
	const { account, redact } = parts;
	const { mediaUploadPath, baseUrl } = account;
	if (!mediaUploadPath) {
		return fail(
			badInput(
				'Files cannot be uploaded, because the credential has no "Media Upload Path"',
				'Enter it in the FlowAgent credential if your deployment offers uploads, or pass the file by its web address.',
			),
		);
	}
	// Two uploads of a file do no harm: only the address of one is used.
	const repeatability = 'read';
	const { outcome, tries } = await parts.retry(
		{ repeatability, lane: 'work', tries: UPLOAD_TRIES, endByMs },
		async () => {
			const timeoutMs = Math.min(UPLOAD_TIMEOUT_MS, Math.max(0, endByMs - parts.clock.now()));
			return await uploadOnce(parts, `${baseUrl}${mediaUploadPath}`, media, timeoutMs);
		},
	);
	if (outcome.kind === 'answered') return outcome.data;
	return fail(
		explainCall(outcome, { repeatability, tries }, { account, redact, sessionId: '', isUpload: true }),
	);
}

async function uploadOnce(
	{ account, send, redact }: UploadParts,
	url: string,
	media: File,
	timeoutMs: number,
): Promise<Outcome<Result<UploadedMedia>>> {
	const form = new FormData();
	form.append(account.deployment.mediaPart, media);
	const exchange = await send({ method: 'POST', url, form, timeoutMs });
	const status = exchange.kind === 'reply' ? exchange.status : 0;
	const parsed = exchange.kind === 'reply' ? parseJson(exchange.text) : undefined;
	const envelope = readEnvelope(parsed && redactJson(parsed, redact.known), account.deployment, status);
	if (!envelope) {
		const outcome = classify(exchange);
		return outcome.kind === 'answered' ? notOfAnAgent(status) : outcome;
	}
	if (envelope.succeeded) return { kind: 'answered', data: readMedia(envelope, media, account) };
	const refusal = withStatus(envelope, status, account.deployment);
	if (isPassing(refusal)) {
		return { kind: 'busy', retryAfter: undefined, text: wordsOf(refusal), status: refusal.saidStatus };
	}
	const facts = { account, redact, sessionId: '', isUpload: true };
	return { kind: 'answered', data: fail(explainRefusal(refusal, facts)) };
}

function readMedia(
	{ data }: Envelope,
	{ name, type: mimeType }: File,
	{ deployment, baseUrl }: AgentAccount,
): Result<UploadedMedia> {
	const given = textAt(data, deployment.paths.mediaUrl);
	const url = URL.canParse(given, baseUrl) && given ? new URL(given, baseUrl).href : '';
	if (Object.keys(data).length === 0) {
		return fail({
			kind: 'unclear',
			message: 'The platform took the file, but its answer holds no data',
			advice: 'The agent was not asked. Run the item again later.',
		});
	}
	if (!url) {
		return fail(
			badInput(
				'The file was uploaded, but the answer holds no address of it',
				`Check "Media URL Path" in the credential: the node looked at "${deployment.paths.mediaUrl.join('" and "')}" in the answer's data.`,
			),
		);
	}
	return ok({
		url: given.includes('://') ? given : url,
		name,
		mimeType,
		expiresAt: textAt(data, deployment.paths.mediaExpiry),
	});
}
