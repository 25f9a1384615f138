import type { Locator, Page } from 'playwright-core';

/** n8n's panel in which nodes are searched for and chosen. */
export class NodePanel {
	private constructor(private readonly page: Page) {}

	/** Opens the panel on the current canvas, whatever it contains. */
	static async open(page: Page): Promise<NodePanel> {
		await page.getByTestId('node-creator-plus-button').click();
		return await NodePanel.opened(page);
	}

	/** The panel that something else has opened, such as the plus after a node. */
	static async opened(page: Page): Promise<NodePanel> {
		const panel = new NodePanel(page);
		await panel.searchBar.waitFor();
		return panel;
	}

	/** The entry for a node type; n8n appends an ID of its own to the type. */
	entry(type: string): Locator {
		return this.page.locator(`[data-test-id="item-iterator-item"][data-keyboard-nav-id^="${type}-"]`);
	}

	/** The entry with a name, such as an action of the chosen node. */
	choice(name: string): Locator {
		const label = this.page.getByText(name, { exact: true });
		return this.page.getByTestId('item-iterator-item').filter({ has: label });
	}

	/** Searches until the node type is listed because of these words, not because of an earlier search. */
	async find(words: string, type: string): Promise<Locator> {
		const entry = this.entry(type);
		await this.searchBar.fill('');
		await entry.waitFor({ state: 'detached' });
		await this.searchBar.fill(words);
		await entry.waitFor().catch((error: unknown) => {
			throw new Error(`The search for "${words}" does not list ${type}.`, { cause: error });
		});
		return entry;
	}

	private get searchBar(): Locator {
		return this.page.getByTestId('node-creator-search-bar');
	}
}
