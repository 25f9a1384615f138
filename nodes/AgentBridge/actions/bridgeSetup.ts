import type { IExecuteFunctions, IHttpRequestOptions, ITriggerFunctions } from 'n8n-workflow';

import { systemClock, type Clock } from '../../shared/run/clock';
import { readCredential } from '../../shared/platform/credential';
import { badInput, fail, ok, type Result } from '../../shared/errors/failure';
import { isJsonObject, jsonText, parseJson } from '../../shared/text/json';
import { readNumberOptions } from '../../shared/form/options';
import { redactor, type Redact } from '../../shared/text/redact';
import { allowsSocketTo } from '../../shared/http/egress';
import { readBridgeAccount, type BridgeAccount } from '../account';
import { fillAuthFrame } from '../auth';
import { openBridge, type BridgeEvents, type BridgeLine, type BridgeSettings } from '../connection';
import type { Whom } from '../failures';
import { probeHandshake, type Probe } from '../probe';

export const CREDENTIAL = 'flowBridgeApi';
/** The longest time that a field accepts: what a timer can hold. */
export const MAX_SECONDS = 2_000_000;

/** All that either node needs to open connections. */
export interface BridgeSetup {
	readonly clock: Clock;
	readonly redact: Redact;
	readonly whom: Whom;
	readonly open: (events: BridgeEvents) => BridgeLine;
	readonly probe: () => Promise<Probe>;
}

/** The fields of the form that are about authentication. */
interface AuthFields {
	readonly authMode: unknown;
	readonly authFrame: unknown;
}

/** The node's options. */
type LineOptions = Readonly<Record<string, unknown>>;

type Context = Pick<IExecuteFunctions | ITriggerFunctions, 'getCredentials' | 'helpers'>;

/** Reads the credential and the fields that are about the connection, before anything is opened. */
export async function prepareBridge(
	context: Context,
	auth: AuthFields,
	options: LineOptions,
): Promise<Result<BridgeSetup>> {
	const fields = await readCredential(context, CREDENTIAL);
	if (!fields.ok) return fields;
	const account = readBridgeAccount(fields.value);
	if (!account.ok) return account;
	return await setUpBridge(context, account.value, redactor(account.value.secrets), auth, options);
}

/** The same for an account that was read already. */
export async function setUpBridge(
	context: Pick<Context, 'helpers'>,
	account: BridgeAccount,
	redact: Redact,
	auth: AuthFields,
	options: LineOptions,
): Promise<Result<BridgeSetup>> {
	const settings = readSettings(account, auth, options);
	if (!settings.ok) return settings;
	const allowed = await checkEgress(context.helpers, account);
	if (!allowed.ok) return allowed;

	const clock = systemClock;
	const { protocol, bearer } = settings.value;
	const target = { url: account.url, protocols: bearer === undefined ? [protocol] : [protocol, bearer] };
	const ask = async (request: IHttpRequestOptions): Promise<unknown> => {
		const response: unknown = await context.helpers.httpRequest(request);
		return response;
	};
	return ok({
		clock,
		redact,
		whom: { host: account.host, protocol, redact },
		open: (events) => openBridge(settings.value, events, clock),
		probe: async () => await probeHandshake(target, ask, clock),
	});
}

function readSettings(
	account: BridgeAccount,
	{ authMode, authFrame }: AuthFields,
	options: LineOptions,
): Result<BridgeSettings> {
	const seconds = readNumberOptions(options, {
		heartbeatSeconds: { label: 'Heartbeat Interval (Seconds)', min: 0, max: MAX_SECONDS, fallback: 30 },
		idleTimeoutSeconds: { label: 'Idle Timeout (Seconds)', min: 0, max: MAX_SECONDS, fallback: 0 },
	});
	if (!seconds.ok) return seconds;
	const everyMs = Math.max(1, seconds.value('heartbeatSeconds') ?? 30) * 1000;
	const heartbeat = readHeartbeat(options.heartbeatFrame, everyMs);
	if (!heartbeat.ok) return heartbeat;
	const { url, protocol, bearer } = account;
	const line = {
		url,
		protocol,
		...(heartbeat.value && { heartbeat: heartbeat.value }),
		idleMs: (seconds.value('idleTimeoutSeconds') ?? 0) * 1000,
	};
	// Mutually exclusive (§5.4): only one of them is ever sent.
	if (authMode !== 'inFrame') return ok({ ...line, bearer });
	const filled = fillAuthFrame(authFrame, account.token);
	return filled.ok ? ok({ ...line, authFrame: filled.value }) : filled;
}

function readHeartbeat(value: unknown, everyMs: number): Result<BridgeSettings['heartbeat']> {
	const { frame, text } = parseFrame(value ?? '');
	if (text === '' || (isJsonObject(frame) && Object.keys(frame).length === 0)) return ok(undefined);
	if (isJsonObject(frame) && text !== undefined) return ok({ frame: text, everyMs });
	return fail(
		badInput(
			'The Heartbeat Frame is not a JSON object',
			'Enter one such as {"type": "ping"}, or leave it empty.',
		),
	);
}

/** Pasted text is sent as it stands: a number of more than 15 digits does not survive parsing. */
export function parseFrame(value: unknown): { readonly frame: unknown; readonly text: string | undefined } {
	return typeof value === 'string'
		? { frame: parseJson(value), text: value.trim() }
		: { frame: value, text: jsonText(value) };
}

async function checkEgress(
	helpers: Context['helpers'],
	{ url, host }: BridgeAccount,
): Promise<Result<undefined>> {
	if (await allowsSocketTo(helpers, url)) return ok(undefined);
	return fail(
		badInput(
			`This n8n does not allow connections to ${host}`,
			"n8n's protection against server-side request forgery blocks this address range. Ask whoever runs this n8n to allow it.",
		),
	);
}
