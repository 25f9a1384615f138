import type { IExecuteFunctions, IHttpRequestOptions, ITriggerFunctions } from 'n8n-workflow';

import { systemClock } from '../../shared/run/clock';
import { readCredential } from '../../shared/platform/credential';
import { badInput, fail, failInput, ok, type Failure, type Result } from '../../shared/errors/failure';
import { isJsonObject, jsonText, parseJson } from '../../shared/text/json';
import { checkEntered } from '../../shared/form/options';
import { redactor, type Redact } from '../../shared/text/redact';
import { allowsSocketTo } from '../../shared/http/webSocket';
import { fillAuthFrame, readBridgeAccount, type BridgeAccount } from '../account';
import { openConnection, probeHandshake, type BridgeSettings } from '../connection/connection';
import type { Bridge } from '../connection/failures';
import { LISTEN_OPTIONS } from './trigger/fields.listen';

export const CREDENTIAL = 'flowBridgeApi';

interface ConnectionFields {
	readonly authMode: unknown;
	readonly authFrame: unknown;
	readonly options: Readonly<Record<string, unknown>>;
}

type BridgeContext = Pick<IExecuteFunctions | ITriggerFunctions, 'getCredentials' | 'helpers'>;

/** Prepares a connection: reads the credential and the connection fields, and asks n8n's SSRF guard. */
export async function openBridge(context: BridgeContext, form: ConnectionFields): Promise<Result<Bridge>> {
	const fields = await readCredential(context, CREDENTIAL);
	if (!fields.ok) return fields;
	const account = readBridgeAccount(fields.value);
	if (!account.ok) return account;
	return await openBridgeOf(context, account.value, redactor(account.value.secrets), form);
}

/** Like `openBridge`, for an account that has already been read. */
export async function openBridgeOf(
	context: Pick<BridgeContext, 'helpers'>,
	account: BridgeAccount,
	redact: Redact,
	form: ConnectionFields,
): Promise<Result<Bridge>> {
	const settings = readSettings(account, form);
	if (!settings.ok) return settings;
	// Never throws: the listener calls this again before each reconnection, and an exception would end its loop.
	const refusal = async (): Promise<Failure | undefined> => {
		const isAllowed = await allowsSocketTo(context.helpers, account.url).catch(() => false);
		if (isAllowed) return undefined;
		return badInput(
			`This n8n instance does not allow connections to ${account.host}`,
			"n8n's protection against server-side request forgery (SSRF) blocks this address. Ask the administrator of n8n to allow it.",
		);
	};
	const refused = await refusal();
	if (refused) return fail(refused);

	const [protocol, bearer] = settings.value.protocols;
	const withoutBearer = settings.value.authFrame === undefined ? 'nothing' : 'frame';
	const tokenIn = bearer === undefined ? withoutBearer : 'handshake';
	const ask = async (request: IHttpRequestOptions): Promise<unknown> =>
		await context.helpers.httpRequest(request);
	return ok({
		clock: systemClock,
		peer: { host: account.host, protocol, tokenIn, redact },
		open: (events) => openConnection(settings.value, events, systemClock),
		probe: async () => await probeHandshake(settings.value, ask, systemClock),
		refusal,
	});
}

function readSettings(
	account: BridgeAccount,
	{ authMode, authFrame, options }: ConnectionFields,
): Result<BridgeSettings> {
	const heartbeat = readHeartbeat(options.heartbeatFrame);
	if (!heartbeat.ok) return heartbeat;
	const { value: frame } = heartbeat;
	const used = frame === undefined ? { ...options, heartbeatSeconds: undefined } : options;
	const seconds = checkEntered(used, LISTEN_OPTIONS);
	if (!seconds.ok) return seconds;
	const { number } = seconds.value;
	const { url, protocols, token } = account;
	const connection = {
		url,
		heartbeat: frame === undefined ? undefined : { frame, everyMs: number('heartbeatSeconds') * 1000 },
		idleMs: number('idleTimeoutSeconds') * 1000,
	};
	// The two ways to authenticate exclude each other (§5.4), so the token is sent in only one of them.
	if (authMode !== 'inFrame') return ok({ ...connection, protocols });
	const filled = fillAuthFrame(authFrame, token);
	if (!filled.ok) return filled;
	return ok({ ...connection, protocols: protocols.slice(0, 1), authFrame: filled.value });
}

/** @returns the frame's text; undefined if there is none */
function readHeartbeat(entered: unknown): Result<string | undefined> {
	const isBlank = typeof entered === 'string' && !entered.trim();
	const { frame, text } = parseFrame(isBlank ? {} : (entered ?? {}));
	if (isJsonObject(frame) && text !== undefined) return ok(Object.keys(frame).length > 0 ? text : undefined);
	return failInput(
		"'Heartbeat Frame' is not a JSON object",
		'Enter one such as {"type": "ping"}, or leave it empty.',
	);
}

/** Pasted text is sent unchanged, because a long number would lose its last digits if it were parsed. */
export function parseFrame(value: unknown): { readonly frame: unknown; readonly text: string | undefined } {
	return typeof value === 'string'
		? { frame: parseJson(value), text: value.trim() }
		: { frame: value, text: jsonText(value) };
}
