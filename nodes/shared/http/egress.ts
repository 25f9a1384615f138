import type { IExecuteFunctions, ITriggerFunctions } from 'n8n-workflow';

type Helpers = (IExecuteFunctions | ITriggerFunctions)['helpers'];
type Filter = ReturnType<Helpers['getSecureEgressFilter']>;

/**
 * Whether this n8n allows a connection there. A WebSocket by-passes n8n's request helper and with it its protection
 * against server-side request forgery, so that is asked first.
 * @param url `ws:` or `wss:`
 */
export async function allowsSocketTo(helpers: Helpers, url: string): Promise<boolean> {
	const checked = await filterOf(helpers)?.validateUrl(url.replace(/^ws/, 'http'));
	return checked?.ok ?? true;
}

/** An n8n before 2.36 gives none where the protection is off, and one that is older still knows no filter. */
function filterOf(helpers: Helpers): Filter | undefined {
	return 'getSecureEgressFilter' in helpers ? helpers.getSecureEgressFilter() : undefined;
}
