import { startPlatform } from '../../platform';
import type { LocalPlatform, PlatformOptions } from '../../platform';

export type Fields = Record<string, unknown>;

interface Choice {
	finish_reason: string | null;
	message: Fields;
	delta: Fields;
}

/** An answer or a chunk. Any field may be missing in spite of its type, which the tests check. */
interface Reply {
	id: string;
	object: string;
	model: string;
	choices: Choice[];
	usage?: Fields | null;
	error?: Fields;
}

export const user = (content: unknown): Fields[] => [{ role: 'user', content }];

/** A minimal chat client. */
export class ChatClient {
	constructor(
		readonly platform: LocalPlatform,
		readonly apiKey = platform.apiKey,
	) {}

	/** @param order the text of a user message, or the whole list of messages */
	async send(order: string | Fields[], more: Fields = {}, init: RequestInit = {}): Promise<Response> {
		const messages = typeof order === 'string' ? user(order) : order;
		return this.post({ model: 'plain-1', messages, ...more }, init);
	}

	async post(body: unknown, init: RequestInit = {}): Promise<Response> {
		return fetch(`${this.platform.apiUrl}/maas/v1/chat/completions`, {
			method: 'POST',
			headers: { authorization: `Bearer ${this.apiKey}`, 'content-type': 'application/json' },
			body: typeof body === 'string' ? body : JSON.stringify(body),
			redirect: 'manual',
			...init,
		});
	}

	async complete(order: string | Fields[], more: Fields = {}): Promise<Reply & { status: number }> {
		const response = await this.send(order, more);
		return { status: response.status, ...JSON.parse(await response.text()) };
	}
}

export async function withChat(
	test: (client: ChatClient, platform: LocalPlatform) => Promise<void>,
	options: PlatformOptions = {},
): Promise<void> {
	const platform = await startPlatform(options);
	try {
		await test(new ChatClient(platform), platform);
	} finally {
		await platform.close();
	}
}
