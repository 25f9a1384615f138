import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const TOKEN = 'agt_real_server_0123456789';
export const LIMITED_TOKEN = 'agt_real_limited_0123456789';

const START_MS = 60_000;
const TAIL_CHARACTERS = 2_000;

interface Told {
	readonly port?: number;
	readonly ran?: string;
}

/** A server of another maker, as a process of its own, because it is killed and started again. */
export class RealServer {
	/** What the agent was run with, in order, since the last `reset`. */
	ran: string[] = [];
	private child: ChildProcess | undefined;
	private port = 0;

	private constructor(
		private readonly program: string,
		private readonly options: readonly string[],
	) {}

	static async start(program: string, options: readonly string[] = []): Promise<RealServer> {
		const server = new RealServer(program, options);
		await server.startAgain();
		return server;
	}

	get baseUrl(): string {
		return `http://127.0.0.1:${this.port}`;
	}

	get isAlive(): boolean {
		return this.child?.exitCode === null && this.child.signalCode === null;
	}

	/** Waits until it has died by itself. */
	async died(): Promise<void> {
		if (this.child && this.isAlive) await once(this.child, 'exit');
	}

	reset(): void {
		this.ran = [];
	}

	/** Starts it at the same address, without anything that it knew. */
	async startAgain(): Promise<void> {
		await this.stop();
		// Some write what they know into their folder. It is removed from here, because a killed process removes nothing.
		const cwd = mkdtempSync(join(tmpdir(), `flowtask-${this.program}-`));
		const child = fork(join(__dirname, 'servers', `${this.program}.mjs`), [...this.options], {
			env: { PATH: process.env.PATH, TMPDIR: cwd, PORT: String(this.port) },
			cwd,
			execArgv: [],
			stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
		});
		this.child = child;
		child.on('exit', () => rmSync(cwd, { recursive: true, force: true }));
		let output = '';
		for (const stream of [child.stdout, child.stderr])
			stream?.on('data', (chunk: Buffer) => {
				output = (output + chunk.toString()).slice(-TAIL_CHARACTERS);
			});
		child.on('message', ({ ran }: Told) => {
			if (ran !== undefined) this.ran.push(ran);
		});
		this.port = await new Promise<number>((resolve, reject) => {
			const late = setTimeout(() => reject(new Error(`${this.program} did not start: ${output}`)), START_MS);
			child.on('message', ({ port }: Told) => {
				if (port === undefined) return;
				clearTimeout(late);
				resolve(port);
			});
			child.on('exit', () => {
				clearTimeout(late);
				reject(new Error(`${this.program} ended: ${output}`));
			});
		});
	}

	async stop(): Promise<void> {
		if (!this.child || !this.isAlive) return;
		const ended = once(this.child, 'exit');
		this.child.kill('SIGKILL');
		await ended;
	}
}
