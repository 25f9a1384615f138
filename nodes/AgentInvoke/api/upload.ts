import { fail, failInput, ok, type Result } from '../../shared/errors/failure';
import { excerpt, isJsonObject, jsonText, type Json } from '../../shared/text/json';
import type { Redact } from '../../shared/text/redact';
import { unescapeText } from '../../shared/text/webAddress';
import type { Retry } from '../../shared/retry/retry';
import type { Clock } from '../../shared/time/clock';
import type { SendHttp } from '../../shared/http/exchange';
import type { Outcome } from '../../shared/http/outcome';
import type { AgentAccount } from '../wire/account';
import { explainRefusal, type RefusalFacts } from './failures';
import { busyOutcome, explainAgentCall, isPassing, ofForeign } from './unanswered';
import { wireRequest, type WireFile } from '../wire/request';
import { concludeRefusal } from '../wire/conclusion';
import { isThere, textAt, wordOf } from '../../shared/form/expression';
import { namesError } from '../wire/answerValues';
import { WireReader } from '../wire/reader';

export interface UploadedMedia extends WireFile {
	/** As given by the platform; empty if it gave none. */
	readonly expiresAt: string;
}

export interface CallConnection {
	readonly account: AgentAccount;
	readonly send: SendHttp;
	readonly retry: Pick<Retry, 'run'>;
	readonly clock: Clock;
	readonly redact: Redact;
}

const MEDIA_TIMEOUT_MS = 120_000;
const MEDIA_TRIES = 4;

/**
 * Uploads a file (§4.8), so that an Invoke call can refer to it by its URL, or by its ID if the deployment uses IDs.
 * @param media read from the start by each try
 * @param endByMs when to give up, by the clock's `now()`
 */
export async function uploadMedia(
	connection: CallConnection,
	media: File,
	endByMs: number,
): Promise<Result<UploadedMedia>> {
	const { account, redact } = connection;
	if (!account.mediaUploadPath) {
		return failInput(
			"Files cannot be uploaded, because the credential has no 'Media Upload Path'",
			'Enter it in the FlowAgent credential if your deployment offers uploads, or pass the file by URL.',
		);
	}
	const facts = { account, redact, sessionId: '', isUpload: true };
	// Uploading a file twice does no harm, because only one of the URLs is used.
	const repeatability = 'read';
	const { outcome, tries } = await connection.retry.run(
		{ repeatability, lane: 'work', tries: MEDIA_TRIES, endByMs },
		async () => await uploadOnce(connection, media, endByMs, facts),
	);
	return outcome.kind === 'answered'
		? outcome.data
		: fail(explainAgentCall(outcome, { repeatability, tries }, facts));
}

async function uploadOnce(
	{ account, send, clock, redact }: CallConnection,
	media: File,
	endByMs: number,
	facts: RefusalFacts,
): Promise<Outcome<Result<UploadedMedia>>> {
	const url = `${account.baseUrl}${account.mediaUploadPath}`;
	const timeoutMs = Math.min(MEDIA_TIMEOUT_MS, Math.max(0, endByMs - clock.now()));
	const form = new FormData();
	form.append(account.wire.upload.part, media);
	const call = { sessionId: '', stream: false, uuid: '' };
	const request = wireRequest(account.wire, { kind: 'nothing' }, call);
	if (!request.ok) return { kind: 'answered', data: request };
	// With the type of the other bodies, n8n's client would send the form as JSON.
	const more = Object.entries(request.value.headers).filter(([name]) => !/^content-type$/i.test(name));
	const exchange = await send({ method: 'POST', url, form, headers: Object.fromEntries(more), timeoutMs });
	if (exchange.kind !== 'reply') return exchange;
	const { status, headers, text } = exchange;
	const reader = new WireReader(account.wire, redact.known);
	reader.read({ data: text, isWholeBody: true });
	const failure = concludeRefusal(reader, { status, headers, broken: '', sessionId: '' });
	const uploaded = readMedia(reader.raw, media, account);
	if (!failure) return { kind: 'answered', data: uploaded };
	// The envelope is specified for agents only (§4.6), so the answer to an upload may have another form (§4.8).
	const isOtherForm = failure.kind === 'notAnAnswer' && status < 300 && !reader.isInForm;
	if (isOtherForm && uploaded.ok && uploaded.value.url !== url && !mayReportFailure(reader.raw))
		return { kind: 'answered', data: uploaded };
	if (isPassing(failure)) return busyOutcome(failure, headers);
	if (reader.isInForm || (status >= 400 && status < 500))
		return { kind: 'answered', data: fail(explainRefusal(failure, facts)) };
	return ofForeign(exchange, failure);
}

/** Matches a status, or the words of a code, that reports a failure. */
const FAILS =
	/^[3-5]\d\d$|err(?!ed|ing)|(?<!un)limit|fail|den(y|ied)|invalid|reject|refus|forbid|unauthor|unsupported|exceed|too_?(large|big|many)|quota/i;

/**
 * Whether an answer in no specified form may report a failure. A URL in it may then be that of a manual, or repeat the
 * request's.
 */
function mayReportFailure(answer: Json): boolean {
	if (!isJsonObject(answer)) return false;
	const { success, ok: isOk, error, errors, status, code, status_code: snake, statusCode: camel } = answer;
	const isDenied = [success, isOk].some((said) => /^(false|0)$/i.test(wordOf(said).trim()));
	const hasErrors = namesError(error) || namesError(errors);
	return (
		isDenied || hasErrors || [status, code, snake, camel].some((said) => FAILS.test(wordOf(said).trim()))
	);
}

function readMedia(
	answer: Json,
	{ name, type: mimeType }: File,
	{ wire, baseUrl }: AgentAccount,
): Result<UploadedMedia> {
	const { upload, answer: form } = wire;
	// Links may contain literal escapes in place of "&" (§2.4).
	const given = unescapeText(textAt(upload.url, answer));
	const id = textAt(upload.id, answer);
	const data = form.envelope && isJsonObject(answer) ? answer.data : answer;
	const url = URL.canParse(given, baseUrl) && given ? new URL(given, baseUrl).href : '';
	if (!url && !id) {
		if (!isThere(data)) {
			return fail({
				kind: 'unclear',
				message: 'The platform accepted the file, but its answer contains no data',
				advice: 'The agent was not asked. Run the item again later.',
			});
		}
		return failInput(
			'The file was uploaded, but the answer contains no URL for it',
			`Check "upload.url" of the description in the credential: the answer was ${excerpt(jsonText(data) ?? '')}`,
		);
	}
	return ok({
		url: given.includes('://') ? given : url,
		...(id && { id }),
		name,
		mimeType,
		expiresAt: textAt(upload.expires, answer),
	});
}
