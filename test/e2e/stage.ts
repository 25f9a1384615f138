import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPlatform, type LocalPlatform, type PlatformOptions } from '../platform';
import { Editor, launchChromium, openWindow } from './browser';
import { packedTarball } from './packOnce';
import { startN8n } from './runner';
import type { RunningN8n, SavedCredential } from './runner';

const START_DEADLINE_MS = 300_000;
const END_DEADLINE_MS = 120_000;

/** A local platform, and a real n8n with the package. */
interface Parts {
	readonly platform: LocalPlatform;
	readonly n8n: RunningN8n;
}

/** Creates an account on the platform, which polls instead of using the WebSocket. */
export async function platformAccount({ platform, n8n }: Parts): Promise<SavedCredential> {
	return await n8n.client.createCredential('flowPlatformApi', 'FlowPlatform account', {
		apiKey: platform.apiKey,
		baseUrl: platform.apiUrl,
		wsBaseUrl: '',
	});
}

interface StageOptions {
	platform?: PlatformOptions;
	/** Additional environment variables of n8n. */
	env?: Record<string, string>;
	/** Prepares what must exist before the first test, and before a browser is opened. */
	prepare?: (parts: Parts) => Promise<void>;
}

/** The stage that all tests of a file share; n8n and its user folder are removed after them. */
interface EditorStage {
	readonly userFolder: string;
	/** The editor, logged in. */
	readonly editor: Editor;
}

interface ServiceStage extends Parts {
	readonly userFolder: string;
	/** An account on the platform. */
	readonly account: SavedCredential;
	/** The platform's agent `default`. */
	readonly agent: SavedCredential;
	/** Starts n8n again in its folder, once it was stopped or killed. */
	startAgain(): Promise<void>;
}

/** Opens a stage before the tests of the calling file, and closes it after them. @returns n8n's user folder */
function n8nStage(
	folderPrefix: string,
	options: StageOptions,
	open: (parts: Parts, whenClosing: (close: () => Promise<void>) => void) => Promise<void>,
): string {
	const userFolder = mkdtempSync(join(tmpdir(), folderPrefix));
	const closing: Array<() => Promise<void>> = [];

	beforeAll(async () => {
		const platform = await startPlatform(options.platform);
		closing.unshift(() => platform.close());
		const n8n = await startN8n({ userFolder, tarball: packedTarball(), env: options.env });
		closing.unshift(() => n8n.stop());
		await options.prepare?.({ platform, n8n });
		await open({ platform, n8n }, (close) => closing.unshift(close));
	}, START_DEADLINE_MS);

	afterAll(async () => {
		for (const close of closing) await close();
		rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
	}, END_DEADLINE_MS);

	return userFolder;
}

/** A stage with n8n's editor in a browser. */
export function editorStage(folderPrefix: string, options: StageOptions): EditorStage {
	let editor: Editor | undefined;
	const userFolder = n8nStage(folderPrefix, options, async ({ n8n }, whenClosing) => {
		const browser = await launchChromium();
		whenClosing(() => browser.close());
		editor = await Editor.logIn(await openWindow(browser), n8n.url, n8n.login);
	});
	return {
		userFolder,
		get editor() {
			return opened(editor);
		},
	};
}

/** A stage without a browser, with an account of each kind that calls the platform. */
export function serviceStage(
	folderPrefix: string,
	platformOptions: PlatformOptions = {},
	options: Omit<StageOptions, 'platform'> = {},
): ServiceStage {
	let parts: Parts | undefined;
	let accounts: Pick<ServiceStage, 'account' | 'agent'> | undefined;
	const userFolder = n8nStage(
		folderPrefix,
		{ ...options, platform: platformOptions },
		async ({ platform, n8n }, whenClosing) => {
			const { client } = n8n;
			accounts = {
				account: await platformAccount({ platform, n8n }),
				agent: await client.createCredential('flowAgentApi', 'FlowAgent account', {
					agentToken: platform.agentToken,
					baseUrl: platform.apiUrl,
				}),
			};
			parts = { platform, n8n };
			// The n8n that the tests started last.
			whenClosing(async () => await opened(parts).n8n.stop());
		},
	);
	return {
		userFolder,
		get platform() {
			return opened(parts).platform;
		},
		get n8n() {
			return opened(parts).n8n;
		},
		get account() {
			return opened(accounts).account;
		},
		get agent() {
			return opened(accounts).agent;
		},
		startAgain: async () => {
			parts = { platform: opened(parts).platform, n8n: await startN8n({ userFolder }) };
		},
	};
}

/** A service stage for templates, with new books for each test. */
export function templateStage(folderPrefix: string): ServiceStage {
	const stage = serviceStage(folderPrefix, { runners: 4, taskMs: 300 });
	beforeEach(() => stage.platform.resetBooks());
	return stage;
}

function opened<T>(part: T | undefined): T {
	if (part === undefined) throw new Error('the stage is not open yet');
	return part;
}
