import type { BrowserContext, Locator, Page } from 'playwright-core';
import type { Login } from '../runner/n8nClient';
import { NodePanel } from './nodePanel';

const DISMISS_WITHIN_MS = 30_000;
const MENU_OPENS_WITHIN_MS = 3_000;
const LIST_IS_READ_WITHIN_MS = 1_500;
const FOUND_WITHIN_MS = 30_000;
/** How long the editor takes to accept what is typed, chosen, pasted or dropped; an earlier click on "Execute" uses the old values. */
const TAKEN_OVER_AFTER_MS = 700;

/** n8n's editor as a person uses it: it reads the screen and acts with mouse and keyboard, never past the page. */
export class Editor {
	private constructor(
		readonly page: Page,
		private readonly url: string,
	) {}

	/** Fills in n8n's own login form. */
	static async logIn(window: BrowserContext, url: string, login: Login): Promise<Editor> {
		const page = await window.newPage();
		await page.goto(`${url}/signin`);
		await page.getByLabel('Email').fill(login.email);
		await page.getByLabel('Password').fill(login.password);
		await page.getByTestId('form-submit-button').click();
		await page.waitForURL((address) => !address.pathname.startsWith('/signin'));
		return new Editor(page, url);
	}

	async openWorkflow({ id }: { id: string }): Promise<void> {
		await this.page.goto(`${this.url}/workflow/${id}`);
		await this.page.getByTestId('canvas-node').first().waitFor();
	}

	/** Imports a workflow by "Import from file" in the menu of a new one. */
	async importWorkflow(path: string): Promise<void> {
		await this.page.goto(`${this.url}/workflow/new`);
		await this.page.getByTestId('canvas-add-button').waitFor();
		await this.page.getByTestId('workflow-import-input').setInputFiles(path);
		await this.page.getByTestId('canvas-node').first().waitFor();
		// Everything imported is selected, and the frame of a selection covers its nodes.
		await this.page.locator('.vue-flow__pane').click({ position: { x: 300, y: 24 } });
	}

	/** The names of the nodes with a red mark. */
	async marked(): Promise<string[]> {
		const mark = this.page.getByTestId('node-issues');
		const marked = await this.page.getByTestId('canvas-node').filter({ has: mark }).all();
		const names = await Promise.all(marked.map((node) => node.getAttribute('data-node-name')));
		return names.map((name) => name ?? '').sort();
	}

	/** Opens the panel of the plus at the end of a node's output; the node chosen in it is connected. */
	async addBehind(name: string): Promise<NodePanel> {
		await this.canvasNode(name).getByTestId('canvas-handle-plus').click();
		return await NodePanel.opened(this.page);
	}

	canvasNode(name: string): Locator {
		return this.page.locator(`[data-test-id="canvas-node"][data-node-name="${name}"]`);
	}

	/** The labels at a node's outputs from top to bottom; an output without a label is "". */
	async outputLabels(name: string): Promise<string[]> {
		const handles = this.canvasNode(name).getByTestId('canvas-node-output-handle');
		return (await handles.allInnerTexts()).map((text) => text.trim());
	}

	/** Draws a connection from an output to an input, on the same node or another. */
	async connect(from: string, output: number, to: string): Promise<void> {
		await this.drag(
			this.canvasNode(from).getByTestId('canvas-node-output-handle').nth(output),
			this.canvasNode(to).getByTestId('canvas-node-input-handle').first(),
		);
	}

	async openNode(name: string): Promise<void> {
		await this.canvasNode(name).dblclick();
		await this.page.getByTestId('node-parameters').waitFor();
	}

	async closeNode(): Promise<void> {
		await this.page.getByTestId('ndv-close-button').click();
		await this.page.getByTestId('ndv').waitFor({ state: 'detached' });
	}

	field(parameter: string): Locator {
		return this.page.getByTestId(`parameter-input-${parameter}`);
	}

	/** Replaces the content of a text or number field by typing. */
	async type(parameter: string, text: string): Promise<void> {
		const input = this.field(parameter).locator('input, textarea').first();
		await input.click();
		await this.page.keyboard.press('ControlOrMeta+A');
		await this.page.keyboard.type(text);
		await input.blur();
		await this.page.waitForTimeout(TAKEN_OVER_AFTER_MS);
	}

	/** Drags a field of the input from the schema on the left onto a field of the form. */
	async map(inputField: string, parameter: string): Promise<void> {
		const pill = this.page.locator(`[data-test-id="run-data-schema-node-name"][data-name="${inputField}"]`);
		await this.drag(pill.first(), this.field(parameter));
		await this.page.waitForTimeout(TAKEN_OVER_AFTER_MS);
	}

	/** Chooses the account by its name. */
	async chooseCredential(name: string): Promise<void> {
		await this.page.getByTestId('node-credentials-select').click();
		await this.choose(name);
	}

	/** Replaces the content of a long text or of a code field from the clipboard. */
	async paste(parameter: string, text: string): Promise<void> {
		await this.longText(parameter).click();
		await this.page.keyboard.press('ControlOrMeta+A');
		await this.page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
		await this.page.keyboard.press('ControlOrMeta+V');
		await this.page.waitForTimeout(TAKEN_OVER_AFTER_MS);
	}

	/** Empties a long text or a code field, as a person does before pasting. */
	async clear(parameter: string): Promise<void> {
		await this.longText(parameter).click();
		await this.page.keyboard.press('ControlOrMeta+A');
		await this.page.keyboard.press('Delete');
	}

	/** Opens the list of a field that can also be entered by ID. @returns the entries */
	async openSearch(parameter: string, which: 'first' | 'last' = 'first'): Promise<string[]> {
		const field = this.page.getByTestId(`resource-locator-${parameter}`)[which]();
		await field.locator('input').last().click();
		const entries = this.page.getByTestId('rlc-item');
		await entries.first().waitFor();
		return await entries.allInnerTexts();
	}

	/** Searches the list of such a field, and chooses the first entry with this text. */
	async search(parameter: string, words: string, entry: string): Promise<void> {
		await this.openSearch(parameter);
		await this.page.getByTestId('rlc-search').fill(words);
		const entries = this.page.getByTestId('rlc-item');
		const wanted = entries.filter({ hasText: entry }).first();
		await wanted.waitFor({ timeout: FOUND_WITHIN_MS }).catch(async (error: unknown) => {
			throw new Error(`the list shows: ${(await entries.allInnerTexts()).join(' | ')}`, { cause: error });
		});
		await wanted.click();
		await this.page.waitForTimeout(TAKEN_OVER_AFTER_MS);
	}

	/** Reads what a text, number or drop-down field shows. */
	async shown(parameter: string): Promise<string> {
		return await this.field(parameter).locator('input, textarea').first().inputValue();
	}

	/** Opens a drop-down. @returns its choices */
	async openList(parameter: string): Promise<string[]> {
		await this.field(parameter).click();
		const options = this.visibleOptions();
		await options.first().waitFor();
		return (await options.allInnerTexts()).map((text) => text.trim());
	}

	/** Chooses an entry in the open drop-down. */
	async choose(option: string): Promise<void> {
		await this.visibleOptions()
			.filter({ has: this.page.getByText(option, { exact: true }) })
			.click();
		await this.page.waitForTimeout(TAKEN_OVER_AFTER_MS);
	}

	/** Adds an option, for which older editors have a drop-down and newer ones a menu. */
	async addOption(name: string, menu = 'Add option'): Promise<void> {
		const { page } = this;
		const button = page.getByRole('button', { name: menu, exact: true });
		const placeholder = page.getByPlaceholder(menu, { exact: true });
		const select = page.getByTestId('collection-parameter-add').filter({ has: placeholder });
		await select.or(button).first().click();
		const entry = page.getByTestId('collection-parameter-option').filter({ hasText: name });
		await page.getByRole('menuitem', { name, exact: true }).or(entry).filter({ visible: true }).click();
	}

	/** Adds an option from the list within the options. */
	async addExpertOption(name: string): Promise<void> {
		await this.addOption('Expert Options');
		await this.addOption(name, 'Add expert option');
	}

	/** The notice that n8n shows in place of a list of inputs. */
	get rowsNotice(): Locator {
		return this.page.getByTestId('empty-fields-notice');
	}

	/** The titles of the rows in a list of inputs. */
	async rows(): Promise<string[]> {
		const container = this.page.getByTestId('mapping-fields-container');
		const labels = container.getByTestId('input-label').filter({ hasText: '·', hasNotText: /^Prompt fills/ });
		await labels.first().waitFor();
		// The buttons of the row under the mouse are next to its title.
		return (await labels.allInnerTexts()).map((text) => text.trim().split('\n', 1)[0] ?? '');
	}

	/** Waits for a row; rows are drawn at once, and again when n8n has reloaded the list. */
	async untilRow(title: string): Promise<Locator> {
		const container = this.page.getByTestId('mapping-fields-container');
		const row = container.getByTestId('input-label').filter({ hasText: title });
		await row.waitFor();
		return row;
	}

	/** Opens the menu of inputs that can be added. @returns the entries */
	async openRowMenu(): Promise<string[]> {
		await this.page.getByTestId('add-fields-select').getByRole('button').click();
		const entries = this.page.getByRole('menuitem').filter({ hasText: '·', visible: true });
		await entries.first().waitFor();
		return await entries.allInnerTexts();
	}

	/** Opens the menu until it offers an input: n8n reloads the list a moment after a paste, which closes the menu. */
	async untilOffered(title: string): Promise<string[]> {
		const deadline = Date.now() + DISMISS_WITHIN_MS;
		const entries = this.page.getByRole('menuitem').filter({ hasText: '·', visible: true });
		for (;;) {
			await this.page.waitForTimeout(LIST_IS_READ_WITHIN_MS);
			await this.page.getByTestId('add-fields-select').getByRole('button').click();
			await entries
				.first()
				.waitFor({ timeout: MENU_OPENS_WITHIN_MS })
				.catch(() => undefined);
			const offered = await entries.allInnerTexts();
			if (offered.includes(title)) return offered;
			if (Date.now() > deadline) throw new Error(`The list has no "${title}": ${offered.join(', ')}`);
			// If no menu is open, Escape would close the node.
			if (offered.length === 0) continue;
			await this.page.keyboard.press('Escape');
			await this.page.getByRole('menu').waitFor({ state: 'detached' });
		}
	}

	/** Adds a row from the open menu. */
	async addRow(title: string): Promise<void> {
		await this.page.getByRole('menuitem', { name: title, exact: true }).click();
		await this.page.getByRole('menu').waitFor({ state: 'detached' });
	}

	/** Presses "Execute step" and waits until the node has succeeded or failed. */
	async executeStep(): Promise<void> {
		await this.page.getByTestId('node-execute-button').click();
		const ended = this.output.locator('[data-test-id^="node-run-status-"]');
		await ended.waitFor();
	}

	get output(): Locator {
		return this.page.getByTestId('output-panel');
	}

	/** Copies the whole output with the button that n8n shows over its JSON, which fills the clipboard a moment later. */
	async copyOutput(): Promise<string> {
		await this.page.evaluate(`navigator.clipboard.writeText('')`);
		await this.output.getByText('JSON', { exact: true }).click();
		await this.output.getByTestId('ndv-data-container').hover();
		await this.output.getByTestId('ndv-json-actions').getByRole('button').first().click();
		await this.page.waitForFunction(`navigator.clipboard.readText().then((text) => text !== '')`);
		return await this.page.evaluate<string>('navigator.clipboard.readText()');
	}

	/**
	 * Closes the messages in the corner, which would cover what the test reads or captures. One may appear while others are
	 * being closed, and a slow machine may miss a click on one that is still sliding in, so this repeats until none is left.
	 */
	async dismissMessages(): Promise<void> {
		const close = this.page.locator('.el-notification .el-notification__closeBtn');
		const deadline = Date.now() + DISMISS_WITHIN_MS;
		while ((await close.count()) > 0) {
			if (Date.now() > deadline) throw new Error('a message in the corner does not close');
			// The mouse is not used: if a message slides away under it, the click hits the button that closes the node.
			await close
				.first()
				.dispatchEvent('click', {}, { timeout: 1_000 })
				.catch(() => undefined);
			await this.page.waitForTimeout(200);
		}
	}

	private async drag(from: Locator, to: Locator): Promise<void> {
		const start = await middleOf(from);
		const end = await middleOf(to);
		await this.page.mouse.move(start.x, start.y);
		await this.page.mouse.down();
		// The editor notices a drag by its path, not by its ends.
		await this.page.mouse.move((start.x + end.x) / 2, start.y + 60, { steps: 8 });
		await this.page.mouse.move(end.x, end.y, { steps: 8 });
		await this.page.mouse.up();
	}

	private longText(parameter: string): Locator {
		return this.field(parameter).locator('.cm-content, textarea').first();
	}

	private visibleOptions(): Locator {
		return this.page.locator('.el-select-dropdown__item').filter({ visible: true });
	}
}

async function middleOf(target: Locator): Promise<{ x: number; y: number }> {
	const box = await target.boundingBox();
	if (!box) throw new Error('It is not on the screen.');
	return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}
