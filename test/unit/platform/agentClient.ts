import { startPlatform } from '../../platform';
import type { LocalPlatform, PlatformOptions } from '../../platform';
import { field } from './client';

export interface Envelope {
	outer: number;
	ok: boolean;
	status: number;
	requestId: string;
	reason: string;
	sessionId: string;
	answer: string;
	data: unknown;
	retryAfter: string | null;
}

export function readEnvelope(envelope: unknown, response?: Response): Envelope {
	const data = field(envelope, 'data');
	return {
		outer: response?.status ?? 0,
		ok: field(envelope, 'success_response') === true,
		status: Number(field(envelope, 'http_status_code')),
		requestId: String(field(envelope, 'request_id')),
		reason: String(field(data, 'reason')),
		sessionId: String(field(data, 'session_id')),
		answer: String(field(data, 'answer')),
		data,
		retryAfter: response?.headers.get('retry-after') ?? null,
	};
}

/** A minimal agent client, without retries or repairs. */
export class AgentClient {
	constructor(
		readonly platform: LocalPlatform,
		readonly token = platform.agentToken,
	) {}

	async post(body: unknown, init: RequestInit = {}): Promise<Response> {
		return fetch(`${this.platform.apiUrl}/api/agents/Invoke`, {
			method: 'POST',
			headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
			body: typeof body === 'string' ? body : JSON.stringify(body),
			redirect: 'manual',
			...init,
		});
	}

	async invoke(body: unknown): Promise<Envelope> {
		const response = await this.post(body);
		return readEnvelope(await response.json(), response);
	}

	async say(message: string, sessionId?: string): Promise<Envelope> {
		return this.invoke({ message, session_id: sessionId });
	}

	async upload(file: Blob, name: string, part = 'file'): Promise<Envelope> {
		const form = new FormData();
		form.set(part, file, name);
		const response = await fetch(`${this.platform.apiUrl}/api/agents/media`, {
			method: 'POST',
			headers: { authorization: `Bearer ${this.token}` },
			body: form,
			redirect: 'manual',
		});
		return readEnvelope(await response.json(), response);
	}
}

export async function withAgent(
	options: PlatformOptions,
	test: (client: AgentClient, platform: LocalPlatform) => Promise<void>,
): Promise<void> {
	const platform = await startPlatform(options);
	try {
		await test(new AgentClient(platform), platform);
	} finally {
		await platform.close();
	}
}
