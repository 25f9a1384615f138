import { startPlatform } from '../../platform';
import type { LocalPlatform, PlatformOptions } from '../../platform';
import { field } from './client';

export type Fields = Record<string, unknown>;

interface Choice {
	finish_reason: string | null;
	message: Fields;
	delta: Fields;
}

/** An answer or a chunk; what is not there is undefined whatever its type says, and the tests look. */
interface Reply {
	id: string;
	object: string;
	model: string;
	choices: Choice[];
	usage?: Fields | null;
	error?: Fields;
}

/** What came over a stream, as it came. */
export interface Stream {
	/** The data of all events but `[DONE]`. */
	readonly events: Reply[];
	readonly comments: number;
	readonly done: boolean;
	/** What was left over after the last whole event. */
	readonly tail: string;
	/** The name of the error that broke it. */
	readonly broken: string | undefined;
}

export const user = (content: unknown): Fields[] => [{ role: 'user', content }];

/** The plainest chat client there is. */
export class ChatClient {
	constructor(
		readonly platform: LocalPlatform,
		readonly apiKey = platform.apiKey,
	) {}

	/** `order` is the text of a user message, or the whole list of messages. */
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

	/** The one choice of an answer in one piece. */
	async choice(order: string | Fields[], more: Fields = {}): Promise<Choice> {
		const [choice] = (await this.complete(order, more)).choices;
		if (choice === undefined) throw new Error('no choice');
		return choice;
	}

	async stream(order: string | Fields[], more: Fields = {}): Promise<Stream> {
		return readStream(await this.send(order, { stream: true, ...more }));
	}
}

/** `heard` is told of all text that came so far. */
export async function readStream(response: Response, heard?: (text: string) => void): Promise<Stream> {
	let text = '';
	let broken: string | undefined;
	const decoder = new TextDecoder();
	try {
		for await (const bytes of response.body ?? []) {
			text += decoder.decode(bytes, { stream: true });
			heard?.(text);
		}
	} catch (error) {
		// Node's own errors come from outside of the sandbox that tests run in.
		broken = String(field(error, 'name'));
	}
	const parts = text.split('\n\n');
	const tail = parts.pop() ?? '';
	const data = parts.filter((part) => part.startsWith('data: ')).map((part) => part.slice(6));
	return {
		events: data.filter((entry) => entry !== '[DONE]').map((entry) => JSON.parse(entry)),
		comments: parts.filter((part) => part.startsWith(':')).length,
		done: data.at(-1) === '[DONE]',
		tail,
		broken,
	};
}

/** All deltas of a stream put together: texts joined, everything else as a list. */
export function joined({ events }: Stream): Fields {
	const whole: Fields = {};
	for (const event of events) {
		for (const [key, value] of Object.entries(event.choices[0]?.delta ?? {})) {
			const before = whole[key] ?? '';
			if (typeof value === 'string' && typeof before === 'string') whole[key] = before + value;
			else whole[key] = [whole[key] ?? [], value].flat();
		}
	}
	return whole;
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
