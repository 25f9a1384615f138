import { chromium, selectors } from 'playwright-core';
import type { Browser, BrowserContext } from 'playwright-core';

/** The variable that the launcher sets; see install.mjs. */
const CHROMIUM_VARIABLE = 'FLOWTASK_E2E_CHROMIUM';

/** The size of a laptop's window; images in the docs have this width. */
const VIEWPORT = { width: 1280, height: 900 };

/**
 * n8n's editor loads in about five seconds on two cores, and the first time, with cold caches, takes longer. Nodes in the
 * tests wait up to half a minute themselves, and their own message is more useful than a timeout here.
 */
const PATIENCE_MS = 60_000;

const QUIET = [
	...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
	...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
	// Only this machine can be reached, whatever the page or the browser tries to load.
	'--no-proxy-server',
	'--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** Starts a headless Chromium with an empty profile of its own, which is deleted with it. */
export async function launchChromium(): Promise<Browser> {
	const executablePath = process.env[CHROMIUM_VARIABLE];
	if (executablePath === undefined) {
		throw new Error(`Run it by "npm run test:e2e", or name a Chromium in ${CHROMIUM_VARIABLE}.`);
	}
	// n8n spells the attribute this way.
	selectors.setTestIdAttribute('data-test-id');
	return await chromium.launch({ executablePath, args: QUIET, headless: true });
}

/** Opens a browser window that may read and write the clipboard, as a person's may. */
export async function openWindow(browser: Browser): Promise<BrowserContext> {
	const window = await browser.newContext({ viewport: VIEWPORT, colorScheme: 'light', locale: 'en-US' });
	await window.grantPermissions(['clipboard-read', 'clipboard-write']);
	window.setDefaultTimeout(PATIENCE_MS);
	return window;
}
