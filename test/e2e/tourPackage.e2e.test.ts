// Tests what a person does first with the package in n8n: view what is installed, find the nodes, add accounts.
import type { Page } from 'playwright-core';
import type { LocalPlatform } from '../platform';
import type { Editor } from './browser';
import { CredentialForm, docsImage, drawnWidth, NodePanel } from './browser';
import {
	installedAliases,
	installedManifest,
	loadedNodes,
	recordInstalledPackage,
} from './installedPackages';
import type { NodeType } from './installedPackages';
import type { RunningN8n, SavedCredential } from './runner';
import { noteSecrets } from './runner/secretHunt';
import { editorStage } from './stage';

const PACKAGE = 'n8n-nodes-flowtask';

const TEST_DEADLINE_MS = 300_000;

let platform: LocalPlatform;
let n8n: RunningN8n;
let editor: Editor;
let page: Page;
let nodes: NodeType[];
const stage = editorStage('tour-package-', {
	// The screen of the community nodes lets npm check for newer versions.
	env: { npm_config_offline: 'true' },
	prepare: async (parts) => {
		({ platform, n8n } = parts);
		nodes = await loadedNodes(n8n.client, PACKAGE);
	},
});

beforeAll(() => {
	({ editor } = stage);
	({ page } = editor);
});

/** The part of the window in which n8n shows the form of a credential. */
const DIALOG = { x: 192, y: 90, width: 896, height: 720 };

/** n8n lists a trigger and the node of the same name as one. */
const listedAs = (type: string) => type.replace(/Trigger$/, '');

describe('the search panel', () => {
	async function openPanel(colorScheme: 'light' | 'dark'): Promise<NodePanel> {
		await page.emulateMedia({ colorScheme });
		await page.goto(`${n8n.url}/workflow/new`);
		return await NodePanel.open(page);
	}

	test(
		'finds each node by the words of its codex',
		async () => {
			const aliases = installedAliases(stage.userFolder, PACKAGE);
			expect([...aliases.keys()].sort()).toEqual(nodes.map(({ name }) => name).sort());
			const searches = [...aliases].flatMap(([type, words]) =>
				words.map((word) => `${listedAs(type)}\n${word}`),
			);
			const panel = await openPanel('light');
			for (const search of new Set(searches)) {
				const [type = '', word = ''] = search.split('\n');
				await panel.find(word, type);
			}
		},
		TEST_DEADLINE_MS,
	);

	test.each(['light', 'dark'] as const)(
		'finds each node by its own name and shows its icon, in the %s theme',
		async (theme) => {
			const panel = await openPanel(theme);
			expect(nodes).toHaveLength(6);
			for (const { name, displayName, iconUrl } of nodes) {
				expect(iconUrl.dark).not.toBe(iconUrl.light);
				const entry = await panel.find(displayName, listedAs(name));
				expect(await entry.innerText()).toContain(displayName.replace(' Trigger', ''));
				const icon = entry.locator(`img[src$="${iconUrl[theme]}"]`).first();
				await icon.waitFor();
				expect(await drawnWidth(icon)).toBeGreaterThan(0);
			}
		},
		TEST_DEADLINE_MS,
	);

	test(
		'lists the bridge as one entry, with its trigger next to its actions',
		async () => {
			const panel = await openPanel('light');
			await (await panel.find('inbox', `${PACKAGE}.agentBridge`)).click();
			await panel.choice('On new Agent Bridge event').waitFor();
		},
		TEST_DEADLINE_MS,
	);
});

test(
	'the screen of the community nodes lists the package with its version and its nodes',
	async () => {
		await recordInstalledPackage(n8n.client, stage.userFolder, PACKAGE);
		await page.goto(`${n8n.url}/settings/community-nodes`);
		const card = page.getByTestId('community-package-card').filter({ hasText: PACKAGE });
		await card.getByText(`v${installedManifest(stage.userFolder, PACKAGE).version}`).waitFor();
		const text = await card.innerText();
		expect(text).toContain('6 nodes');
		for (const { displayName } of nodes) expect(text).toContain(displayName);
		await docsImage(page, 'community-nodes', { x: 0, y: 0, width: 1280, height: 480 });

		// n8n reports for each package whether its nodes could be loaded.
		const installed = await n8n.client.call<unknown[]>('GET', '/rest/community-packages');
		expect(installed).toEqual([
			expect.objectContaining({ packageName: PACKAGE, failedLoading: false, authorName: expect.anything() }),
		]);
	},
	TEST_DEADLINE_MS,
);

describe('the form of a credential', () => {
	interface Account {
		displayName: string;
		secretField: string;
		wrong: string;
		/** The message about the wrong secret. */
		refusal: string;
		right: () => string;
		address: () => Record<string, string>;
		/** A secret that belongs in another form. */
		foreign: () => string;
		belongsTo: string;
		image?: string;
	}

	const accounts: Account[] = [
		{
			displayName: 'FlowPlatform API',
			secretField: 'apiKey',
			wrong: 'sk-of-nobody',
			refusal:
				'The platform refused this API key. It may be mistyped or revoked, or belong to another account',
			right: () => platform.apiKey,
			address: () => ({ baseUrl: platform.apiUrl }),
			foreign: () => platform.agentToken,
			belongsTo: 'FlowAgent API',
			image: 'platform-credential',
		},
		{
			displayName: 'FlowAgent API',
			secretField: 'agentToken',
			wrong: 'agt_of_nobody',
			refusal: 'The platform refused this token. It may be mistyped, revoked or expired',
			right: () => platform.agentToken,
			address: () => ({ baseUrl: platform.apiUrl }),
			foreign: () => platform.apiKey,
			belongsTo: 'FlowPlatform API',
		},
		{
			displayName: 'FlowBridge API',
			secretField: 'channelToken',
			wrong: 'wst_of_nobody',
			refusal:
				'refused the channel token (HTTP 401). The channel token may be mistyped or revoked, or belong to another',
			right: () => platform.createChannel().token,
			address: () => ({ wsBaseUrl: platform.wsUrl }),
			foreign: () => platform.agentToken,
			belongsTo: 'FlowAgent API',
			image: 'bridge-credential',
		},
	];

	test.each(accounts)(
		'$displayName: a wrong secret is refused with a clear message, the right one is confirmed',
		async ({ displayName, secretField, wrong, refusal, right, address, foreign, belongsTo, image }) => {
			const form = await CredentialForm.create(page, n8n.url, displayName);
			await form.fill(address());
			noteSecrets(stage.userFolder, { foreign: foreign() });
			await form.fill({ [secretField]: foreign() });
			const notice = form.notice(`a ${belongsTo} credential`);
			await notice.waitFor();

			await form.fill({ [secretField]: wrong });
			// n8n accepts input a moment later, and tests the values that it has by then.
			await notice.waitFor({ state: 'detached' });
			await form.save();
			const said = await form.refusal();
			expect(said).toContain(refusal);
			expect(said).not.toContain(wrong);

			const secret = right();
			noteSecrets(stage.userFolder, { secret });
			await form.fill({ [secretField]: secret });
			await form.save();
			await form.untilConfirmed();
			await editor.dismissMessages();
			if (image !== undefined) await docsImage(page, image, DIALOG);
		},
		TEST_DEADLINE_MS,
	);

	test('the credentials are saved, and the tests have called nothing that costs money', async () => {
		const saved = await n8n.client.call<SavedCredential[]>('GET', '/rest/credentials');
		expect(saved.map(({ type }) => type).sort()).toEqual([
			'flowAgentApi',
			'flowBridgeApi',
			'flowPlatformApi',
		]);
		const { requests, invocations, chats, leaks } = platform.books();
		expect({ submits: requests.submit, invocations, chats, leaks }).toEqual({
			submits: 0,
			invocations: [],
			chats: [],
			leaks: [],
		});
	});
});
