import type { IExecuteFunctions, ITriggerFunctions } from 'n8n-workflow';

type Helpers = (IExecuteFunctions | ITriggerFunctions)['helpers'];
type Filter = ReturnType<Helpers['getSecureEgressFilter']>;

/**
 * Whether n8n's protection against server-side request forgery allows a connection, which a WebSocket would bypass.
 * @param url `ws:` or `wss:`
 */
export async function allowsSocketTo(helpers: Helpers, url: string): Promise<boolean> {
	const checked = await filterOf(helpers)?.validateUrl(url.replace(/^ws/, 'http'));
	return checked?.ok ?? true;
}

/** Before 2.36, n8n returns no filter if the protection is off; versions before that one lack the helper. */
function filterOf(helpers: Helpers): Filter | undefined {
	return 'getSecureEgressFilter' in helpers ? helpers.getSecureEgressFilter() : undefined;
}
