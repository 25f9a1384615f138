import { BASE_URL, whyAddressDoesNotFit, WS_BASE_URL, type AddressField } from '../../../credentials/baseUrl';
import { cleanToken, whyTokenDoesNotFit } from '../../../credentials/tokenKinds';
import { badInput, fail, ok, type Result } from '../errors/failure';
import { textOf } from '../text/textOf';

/** A decrypted `flowPlatformApi` credential, checked: where the platform is and how its sockets are reached. */
export interface PlatformAccount {
	/** Without a trailing slash. */
	readonly baseUrl: string;
	/** Scheme ws or wss, without a trailing slash. */
	readonly wsBaseUrl: string;
	/** The path form of §4.4 to try first. */
	readonly progressPath: string;
	/** Where the chat models are listed, with a leading slash; empty where the deployment has no list. */
	readonly modelsPath: string;
	readonly apiKey: string;
	/** Everything in the credential that must never be shown. */
	readonly secrets: readonly string[];
}

/** The two path forms of the progress WebSocket; which one a deployment has is not shown (§4.4). */
export const PROGRESS_PATHS: readonly [string, string] = [
	'/mass/api/flow_task_api/get_task_progress',
	'/api/mass/flow_task_api/get_task_progress',
];

/** Checks the fields of a `flowPlatformApi` credential. */
export function readPlatformAccount(credential: Readonly<Record<string, unknown>>): Result<PlatformAccount> {
	const apiKey = cleanToken(credential.apiKey);
	const misfit = whyTokenDoesNotFit(apiKey, 'FlowPlatform API');
	if (misfit) {
		const advice = 'Open the credential that is selected in this node and enter the right key.';
		return fail({ kind: 'credential', message: misfit.replace(/\.$/, ''), advice });
	}
	const baseUrl = readBaseUrl(textOf(credential.baseUrl).trim(), BASE_URL);
	if (!baseUrl.ok) return baseUrl;
	const wsField = textOf(credential.wsBaseUrl).trim();
	const wsBaseUrl = wsField ? readBaseUrl(wsField, WS_BASE_URL) : ok(baseUrl.value.replace(/^http/, 'ws'));
	if (!wsBaseUrl.ok) return wsBaseUrl;
	return ok({
		baseUrl: baseUrl.value,
		wsBaseUrl: wsBaseUrl.value,
		progressPath: textOf(credential.progressPath).trim() || PROGRESS_PATHS[0],
		modelsPath: textOf(credential.modelsPath).trim().replace(/^\/*(?=.)/, '/'),
		apiKey,
		secrets: [apiKey],
	});
}

function readBaseUrl(text: string, field: AddressField): Result<string> {
	const misfit = whyAddressDoesNotFit(text, field);
	if (misfit) return fail(badInput(misfit.message, `${misfit.advice}. Open the FlowPlatform credential.`));
	const { protocol, host, pathname } = new URL(text);
	return ok(`${protocol}//${host}${pathname}`.replace(/\/+$/, ''));
}
