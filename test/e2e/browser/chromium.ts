import { chromium, selectors } from 'playwright-core';
import type { Browser, BrowserContext } from 'playwright-core';

/** Set by the launcher, see install.mjs. */
const CHROMIUM_VARIABLE = 'FLOWTASK_E2E_CHROMIUM';

/** What a laptop shows; pictures in the docs have this width. */
const VIEWPORT = { width: 1280, height: 900 };

/**
 * n8n's editor loads in about five seconds on two cores; the first time with cold caches takes longer. Nodes of the
 * tests wait for up to half a minute themselves, and what they say then is better to read than that nothing came.
 */
const PATIENCE_MS = 60_000;

const QUIET = [
	...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
	...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
	// Nothing but this machine can be reached, whatever page or browser would like to load.
	'--no-proxy-server',
	'--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** A headless Chromium with an empty profile of its own, which goes with it. */
export async function launchChromium(): Promise<Browser> {
	const executablePath = process.env[CHROMIUM_VARIABLE];
	if (executablePath === undefined) {
		throw new Error(`Run it by "npm run test:e2e", or name a Chromium in ${CHROMIUM_VARIABLE}.`);
	}
	// n8n's spelling.
	selectors.setTestIdAttribute('data-test-id');
	return await chromium.launch({ executablePath, args: QUIET, headless: true });
}

/** A browser window that may read and write the clipboard, as a person's may. */
export async function openWindow(browser: Browser): Promise<BrowserContext> {
	const window = await browser.newContext({ viewport: VIEWPORT, colorScheme: 'light', locale: 'en-US' });
	await window.grantPermissions(['clipboard-read', 'clipboard-write']);
	window.setDefaultTimeout(PATIENCE_MS);
	return window;
}
