import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPlatform, type LocalPlatform } from '../platform';
import { packedTarball } from './packOnce';
import { startN8n } from './runner';
import type { RunningN8n, SavedCredential } from './runner';

const START_DEADLINE_MS = 200_000;

/** A local platform, and a real n8n with an account on it, for all tests of a file. */
export interface TemplateStage {
	readonly platform: LocalPlatform;
	readonly n8n: RunningN8n;
	readonly account: SavedCredential;
	/** Of n8n; it is gone after the tests. */
	readonly userFolder: string;
}

/** Opened before the tests of the file that calls this, with new books for each of them, and closed after them. */
export function templateStage(folderPrefix: string): TemplateStage {
	const userFolder = mkdtempSync(join(tmpdir(), folderPrefix));
	let platform: LocalPlatform | undefined;
	let n8n: RunningN8n | undefined;
	let account: SavedCredential | undefined;

	beforeAll(async () => {
		platform = await startPlatform({ runners: 4, taskMs: 300 });
		n8n = await startN8n({ userFolder, tarball: packedTarball() });
		account = await n8n.client.createCredential('flowPlatformApi', 'FlowPlatform account', {
			apiKey: platform.apiKey,
			baseUrl: platform.apiUrl,
			wsBaseUrl: '',
		});
	}, START_DEADLINE_MS);

	beforeEach(() => platform?.resetBooks());

	afterAll(async () => {
		await n8n?.stop();
		await platform?.close();
		rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
	});

	return {
		userFolder,
		get platform() {
			return opened(platform);
		},
		get n8n() {
			return opened(n8n);
		},
		get account() {
			return opened(account);
		},
	};
}

function opened<T>(part: T | undefined): T {
	if (part === undefined) throw new Error('the stage is not open yet');
	return part;
}
