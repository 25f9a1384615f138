import type { IExecuteFunctions, ITriggerFunctions } from 'n8n-workflow';

type Helpers = (IExecuteFunctions | ITriggerFunctions)['helpers'];

/**
 * Whether n8n's protection against server-side request forgery, which a WebSocket bypasses, would allow a connection.
 * @param url `ws:` or `wss:`
 */
export async function allowsSocketTo(helpers: Helpers, url: string): Promise<boolean> {
	// n8n up to 2.35 returns no filter if the protection is off, and its oldest versions lack the helper.
	const filter = 'getSecureEgressFilter' in helpers ? helpers.getSecureEgressFilter() : undefined;
	const checked = await filter?.validateUrl(url.replace(/^ws/, 'http'));
	return checked?.ok ?? true;
}
