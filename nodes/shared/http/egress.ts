import type { IExecuteFunctions, ITriggerFunctions } from 'n8n-workflow';

type Helpers = (IExecuteFunctions | ITriggerFunctions)['helpers'];
type Filter = ReturnType<Helpers['getSecureEgressFilter']>;

/**
 * Whether this n8n allows a connection there. A WebSocket bypasses n8n's request helper, so its protection against
 * server-side request forgery is asked first.
 * @param url `ws:` or `wss:`
 */
export async function allowsSocketTo(helpers: Helpers, url: string): Promise<boolean> {
	const checked = await filterOf(helpers)?.validateUrl(url.replace(/^ws/, 'http'));
	return checked?.ok ?? true;
}

/** Before 2.36, n8n returns none if the protection is off; even older versions have no filter. */
function filterOf(helpers: Helpers): Filter | undefined {
	return 'getSecureEgressFilter' in helpers ? helpers.getSecureEgressFilter() : undefined;
}
