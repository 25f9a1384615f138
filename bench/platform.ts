import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Books } from '../test/platform/books';
import type { PlatformOptions } from '../test/platform';
import textToImage from '../test/platform/workflows/text-to-image.json';
import type { PlatformAddress } from './platformChild';

const START_DEADLINE_MS = 30_000;

/** A customer of the platform with a separate workflow, so that flows that run in parallel can be told apart. */
export interface Customer {
	readonly name: string;
	readonly apiKey: string;
	readonly workflowId: string;
}

/** The local platform in its own process, controlled through its admin endpoints as an operator would. */
export class BenchPlatform implements PlatformAddress {
	readonly apiUrl: string;
	readonly wsUrl: string;
	readonly fileUrl: string;
	readonly apiKey: string;
	readonly agentToken: string;

	private constructor(
		private readonly child: ChildProcess,
		address: PlatformAddress,
	) {
		this.apiUrl = address.apiUrl;
		this.wsUrl = address.wsUrl;
		this.fileUrl = address.fileUrl;
		this.apiKey = address.apiKey;
		this.agentToken = address.agentToken;
	}

	static async start(options: PlatformOptions): Promise<BenchPlatform> {
		const child = fork(join(__dirname, 'platformChild.ts'), [JSON.stringify(options)], {
			execArgv: ['--import', 'tsx'],
		});
		const address = await new Promise<PlatformAddress>((resolve, reject) => {
			const deadline = setTimeout(() => reject(new Error('The platform did not start.')), START_DEADLINE_MS);
			child.once('message', (message) => {
				clearTimeout(deadline);
				resolve(message as PlatformAddress);
			});
			child.once('exit', () => reject(new Error('The platform ended while it started.')));
		});
		return new BenchPlatform(child, address);
	}

	async newCustomer(name: string): Promise<Customer> {
		const { apiKey } = await this.admin<{ apiKey: string }>('POST', 'owners', { name });
		return { name, apiKey, workflowId: await this.host(apiKey) };
	}

	/** Returns the owner of the first key. */
	async customer(): Promise<Customer> {
		return { name: 'default', apiKey: this.apiKey, workflowId: await this.host(this.apiKey) };
	}

	async books(): Promise<Books> {
		return await this.admin<Books>('GET', 'books');
	}

	async resetBooks(): Promise<void> {
		await this.admin('DELETE', 'books');
	}

	async failSomeRequests(rate: number, seed: number): Promise<void> {
		await this.admin('POST', 'faults/campaign', { rate, seed });
	}

	/** Refuses this share of all requests because of load, however many there are. */
	async refuseSomeRequests(probability: number): Promise<void> {
		await this.admin('POST', 'faults', { on: 'any', kind: '429', probability });
	}

	async failNone(): Promise<void> {
		await this.admin('DELETE', 'faults');
	}

	async close(): Promise<void> {
		if (this.child.exitCode !== null || this.child.signalCode !== null) return;
		const ended = new Promise((resolve) => this.child.once('exit', resolve));
		this.child.kill('SIGKILL');
		await ended;
	}

	private async host(apiKey: string): Promise<string> {
		const hosted = await this.admin<{ workflowId: string }>('POST', 'workflows', {
			export: textToImage,
			apiKey,
		});
		return hosted.workflowId;
	}

	private async admin<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
		const response = await fetch(`${this.apiUrl}/admin/${path}`, {
			method,
			// The platform may close an idle connection at the moment in which it is used again.
			headers: { connection: 'close', ...(body !== undefined && { 'content-type': 'application/json' }) },
			body: body === undefined ? undefined : JSON.stringify(body),
		});
		const text = await response.text();
		if (!response.ok) throw new Error(`${method} /admin/${path}: ${response.status} ${text}`);
		return (text === '' ? undefined : JSON.parse(text)) as Answer;
	}
}
