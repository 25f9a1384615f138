// Looks inside a running n8n through the protocol of Node's inspector.
import type { ProcessLog } from '../test/e2e/runner/processLog';

/** The environment of an n8n that can be inspected. It uses any free port, because its task runner inherits it too. */
export const INSPECTED: NodeJS.ProcessEnv = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

interface Reply {
	id?: number;
	result?: unknown;
	error?: { message: string };
}

export interface CallFrame {
	readonly functionName: string;
	readonly url: string;
}

/** A profile as `node --cpu-prof` writes it. */
export interface CpuProfile {
	readonly nodes: ReadonlyArray<{
		readonly id: number;
		readonly callFrame: CallFrame;
		readonly children?: readonly number[];
	}>;
	readonly samples: readonly number[];
	/** Microseconds since the previous sample. */
	readonly timeDeltas: readonly number[];
}

export class Inspector {
	private readonly waiting = new Map<number, (reply: Reply) => void>();
	private lastId = 0;

	private constructor(private readonly socket: WebSocket) {
		socket.addEventListener('message', ({ data }) => {
			const reply = JSON.parse(String(data)) as Reply;
			if (reply.id === undefined) return;
			this.waiting.get(reply.id)?.(reply);
			this.waiting.delete(reply.id);
		});
	}

	/** Connects to an n8n that was started with INSPECTED; n8n's own process is the first to log its port. */
	static async of({ log }: { readonly log: ProcessLog }): Promise<Inspector> {
		const url = /Debugger listening on (ws:\S+)/.exec(log.text())?.[1];
		if (url === undefined) throw new Error('n8n was not started with an inspector.');
		const socket = new WebSocket(url);
		await new Promise<void>((resolve, reject) => {
			socket.addEventListener('open', () => resolve());
			socket.addEventListener('error', () => reject(new Error(`No inspector at ${url}`)));
		});
		return new Inspector(socket);
	}

	async collectGarbage(): Promise<void> {
		await this.call('HeapProfiler.enable');
		await this.call('HeapProfiler.collectGarbage');
		await this.call('HeapProfiler.disable');
	}

	async startProfile(): Promise<void> {
		await this.call('Profiler.enable');
		await this.call('Profiler.start');
	}

	async stopProfile(): Promise<CpuProfile> {
		const { profile } = (await this.call('Profiler.stop')) as { profile: CpuProfile };
		return profile;
	}

	close(): void {
		this.socket.close();
	}

	private async call(method: string, params: object = {}): Promise<unknown> {
		const id = ++this.lastId;
		const reply = await new Promise<Reply>((resolve) => {
			this.waiting.set(id, resolve);
			this.socket.send(JSON.stringify({ id, method, params }));
		});
		if (reply.error) throw new Error(`${method}: ${reply.error.message}`);
		return reply.result;
	}
}
