import { once } from 'node:events';
import WebSocket from 'ws';
import type { LocalPlatform } from '../../platform';
import { until } from '../../until';

export const BASE = '/api/maas/flow_task_api';
export const PROGRESS = '/mass/api/flow_task_api/get_task_progress';

export interface Answer {
	code: number;
	msg: string;
	data: unknown;
}

export interface Info {
	flow_task_id: string;
	status: number;
	queue_size: number;
	current_position: number;
	errMsg: string;
	files: Record<string, string[]>;
	final_files: string[];
	progress_num: number;
}

export interface Submitted {
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

	async call(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
		return fetch(`${this.platform.apiUrl}${BASE}/${path}`, {
			method: 'POST',
			headers: { authorization: `Bearer ${this.apiKey}`, 'content-type': 'application/json' },
			body: typeof body === 'string' ? body : JSON.stringify(body),
			redirect: 'manual',
			...init,
		});
	}

	async answer(path: string, body: unknown): Promise<Answer> {
		const response = await this.call(path, body);
		const envelope: unknown = await response.json();
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

	async finished(id: string): Promise<Info> {
		return await until(async () => {
			const info = await this.info(id);
			return info.status >= 3 && info;
		});
	}

	async upload(file: Blob, name = 'cat.png', part = 'source_file'): Promise<Answer> {
		const form = new FormData();
		form.set(part, file, name);
		const response = await this.uploadForm(form);
		const envelope: unknown = await response.json();
		return {
			code: Number(field(envelope, 'code')),
			msg: String(field(envelope, 'msg')),
			data: field(envelope, 'data'),
		};
	}

	async uploadForm(form: FormData): Promise<Response> {
		return fetch(`${this.platform.apiUrl}${BASE}/upload/image`, {
			method: 'POST',
			headers: { authorization: `Bearer ${this.apiKey}` },
			body: form,
		});
	}

	/** Downloads the first image of a finished task. */
	async image(id: string): Promise<Buffer> {
		const { final_files: files, errMsg } = await this.finished(id);
		if (files[0] === undefined) throw new Error(errMsg);
		const response = await fetch(decodeLink(files[0]));
		return Buffer.from(await response.arrayBuffer());
	}

	watch(token: string, path = PROGRESS): Watch {
		return new Watch(`${this.platform.wsUrl}${path}?authorization=${encodeURIComponent(token)}`);
	}
}

/** A progress socket that records everything it receives. */
export class Watch {
	readonly messages: Info[] = [];
	readonly socket: WebSocket;
	/** The close code, or the HTTP status of a refusal as a negative number. */
	readonly closed: Promise<number>;

	constructor(url: string) {
		this.socket = new WebSocket(url);
		this.socket.on('message', (data: Buffer) => {
			const text = data.toString();
			if (text.startsWith('{"flow_task_info":{')) this.messages.push(JSON.parse(text).flow_task_info);
		});
		this.closed = new Promise((resolve) => {
			this.socket.on('unexpected-response', (_request, response) => {
				response.resume();
				resolve(-(response.statusCode ?? 0));
			});
			this.socket.on('close', resolve);
			this.socket.on('error', () => undefined);
		});
	}

	/** Waits for `count` messages. */
	async heard(count: number): Promise<readonly Info[]> {
		await until(() => this.messages.length >= count);
		return this.messages;
	}

	/** Sends a ping and waits for the pong, so that everything sent before has arrived. */
	async roundTrip(): Promise<void> {
		const back = once(this.socket, 'pong');
		this.socket.ping();
		await back;
	}
}

/** The outcome of a call: the HTTP status and body, or the network error. */
export async function fate(call: Promise<Response>): Promise<string> {
	try {
		const response = await call;
		return `${response.status} ${await response.text()}`;
	} catch (error) {
		return `broken: ${String(field(error, 'name'))}`;
	}
}

export const decodeLink = (link: string): string => link.replaceAll('\\u0026', '&');
