import type { Locator, Page, Request } from 'playwright-core';

/** n8n's form of one credential. */
export class CredentialForm {
	private constructor(private readonly page: Page) {}

	/** Opens the form of a new credential through "Create credential" and the list of types. */
	static async create(page: Page, n8nUrl: string, displayName: string): Promise<CredentialForm> {
		await page.goto(`${n8nUrl}/home/credentials`);
		await page.getByTestId('add-resource-credential').first().click();
		await page.getByTestId('new-credential-type-select').first().click();
		await page.keyboard.type(displayName);
		await page
			.getByTestId('new-credential-type-select-option')
			.filter({ has: page.getByText(displayName, { exact: true }), visible: true })
			.click();
		await page.getByTestId('new-credential-type-button').click();
		const form = new CredentialForm(page);
		await form.dialog.waitFor();
		return form;
	}

	/** Opens the form of an existing credential. */
	static async open(page: Page, n8nUrl: string, { id }: { id: string }): Promise<CredentialForm> {
		await page.goto(`${n8nUrl}/home/credentials/${id}`);
		const form = new CredentialForm(page);
		await form.dialog.waitFor();
		return form;
	}

	get dialog(): Locator {
		return this.page.getByTestId('credential-edit-dialog');
	}

	async fill(fields: Readonly<Record<string, string>>): Promise<void> {
		for (const [field, value] of Object.entries(fields)) {
			const input = this.dialog.getByTestId(`parameter-input-${field}`).locator('input');
			await input.fill(value);
			await input.blur();
		}
	}

	/** Finds a notice between the fields by its text. */
	notice(text: string): Locator {
		return this.dialog.getByRole('alert').filter({ hasText: text });
	}

	/**
	 * Saves, after which n8n tests. The button becomes active once n8n has accepted a change. Waits for n8n's answer,
	 * because an account that existed before already shows that its test passed.
	 */
	async save(): Promise<void> {
		const answered = this.page.waitForResponse((response) => isSaving(response.request()));
		await this.page.getByRole('button', { name: 'Save', exact: true }).click();
		await answered;
	}

	async untilConfirmed(): Promise<void> {
		await this.dialog.getByText('Connection tested successfully').waitFor();
	}

	/** Waits until the test has failed, and reads the whole message. */
	async refusal(): Promise<string> {
		await this.dialog.getByText(/^Couldn.t connect with these settings/).waitFor();
		await this.dialog.getByText('More details').click();
		await this.dialog.getByText('More details').waitFor({ state: 'detached' });
		return await this.dialog.innerText();
	}
}

/** Whether a request creates or changes a credential; n8n tests one by a POST to another path. */
function isSaving(request: Request): boolean {
	const { pathname } = new URL(request.url());
	return (
		['POST', 'PATCH'].includes(request.method()) && /\/rest\/credentials(\/(?!test$)[^/]+)?$/.test(pathname)
	);
}
