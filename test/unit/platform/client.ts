import WebSocket from 'ws';
import { SAMPLE_WORKFLOWS, startPlatform } from '../../platform';
import type { LocalPlatform, PlatformOptions } from '../../platform';

export const BASE = '/api/maas/flow_task_api';
export const PROGRESS = '/mass/api/flow_task_api/get_task_progress';

interface Answer {
	code: number;
	msg: string;
	data: unknown;
}

interface Info {
	flow_task_id: string;
	status: number;
	files: Record<string, string[]>;
	final_files: string[];
}

interface Submitted {
	code: number;
	msg: string;
	id: string;
	token: string;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value);

export function field(value: unknown, name: string): unknown {
	return isObject(value) ? value[name] : undefined;
}

/** A minimal client, without retries or repairs. */
export class Client {
	constructor(
		readonly platform: LocalPlatform,
		readonly apiKey = platform.apiKey,
	) {}

	async call(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
		const isForm = body instanceof FormData;
		return fetch(`${this.platform.apiUrl}${BASE}/${path}`, {
			method: 'POST',
			headers: {
				authorization: `Bearer ${this.apiKey}`,
				accept: 'application/json',
				...(!isForm && { 'content-type': 'application/json' }),
				...headers,
			},
			body: isForm || typeof body === 'string' ? body : JSON.stringify(body),
		});
	}

	async answer(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer> {
		const envelope: unknown = await (await this.call(path, body, headers)).json();
		return {
			code: Number(field(envelope, 'code')),
			msg: String(field(envelope, 'msg')),
			data: field(envelope, 'data'),
		};
	}

	async submit(prompt: unknown = {}, workflowId = 'text-to-image'): Promise<Submitted> {
		const { code, msg, data } = await this.answer('prompt', { workflow_id: workflowId, prompt });
		return { code, msg, id: String(field(data, 'prompt_id')), token: String(field(data, 'prompt_token')) };
	}

	/** Submits a task with this prompt text. */
	async submitText(text: string): Promise<Submitted> {
		return this.submit({ '6': { inputs: { text } } });
	}

	async infos(ids: readonly string[], period?: number): Promise<Info[]> {
		const { data } = await this.answer('get_task_info', { flow_task_ids: ids, url_expire_period: period });
		const items = field(data, 'flow_task_info');
		return Array.isArray(items) ? items : [];
	}

	async info(id: string, period?: number): Promise<Info> {
		const [info] = await this.infos([id], period);
		if (info === undefined) throw new Error(`no info on ${id}`);
		return info;
	}
}

/** How a progress socket with this query ends: its close code, or the HTTP status of a refusal as a negative number. */
export async function progressEnd(
	platform: LocalPlatform,
	query: string,
	path = PROGRESS,
	headers: Record<string, string> = {},
): Promise<number> {
	const socket = new WebSocket(`${platform.wsUrl}${path}${query}`, { headers });
	return new Promise((resolve) => {
		socket.on('unexpected-response', (_request, response) => {
			response.resume();
			resolve(-(response.statusCode ?? 0));
		});
		socket.on('close', resolve);
		socket.on('error', () => undefined);
	});
}

export const decodeLink = (link = ''): string => link.replaceAll('\\u0026', '&');

async function start(options: PlatformOptions): Promise<Client> {
	const platform = await startPlatform(options);
	for (const [workflowId, exported] of Object.entries(SAMPLE_WORKFLOWS)) {
		await platform.hostWorkflow(exported, { workflowId });
	}
	return new Client(platform);
}

/** Runs a test against a fresh platform with the sample workflows. */
export async function withPlatform(
	options: PlatformOptions,
	test: (client: Client, platform: LocalPlatform) => Promise<void>,
): Promise<void> {
	const client = await start(options);
	try {
		await test(client, client.platform);
	} finally {
		await client.platform.close();
	}
}

/** One platform with the sample workflows for all tests of a file; tasks end at once. */
export function sharedClient(): () => Client {
	let client: Client;
	beforeAll(async () => {
		client = await start({ taskMs: 0 });
	});
	afterAll(async () => client.platform.close());
	return () => client;
}
