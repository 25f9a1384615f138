import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlatformOptions } from '../test/platform';
import { killEveryN8n, packTarball, startN8n, type RunningN8n } from '../test/e2e/runner';
import type { Figure } from './figures';
import { BenchPlatform } from './platform';

const packageRoot = join(__dirname, '..');

/** Stores files on disk, as n8n does in production. */
const BENCH_ENV = {
	N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
	N8N_AVAILABLE_BINARY_DATA_MODES: 'filesystem',
};

/** A line of the "Performance" table, or several that are measured together. */
export interface Row {
	/** The name for `--only`. */
	readonly name: string;
	/** Whether the row has counts worth checking at each push. */
	readonly isQuick?: boolean;
	measure(stage: Stage): Promise<Figure[]>;
}

/** The stage on which rows are measured: a real n8n with the packed package, and local platforms. */
export class Stage {
	private readonly platforms: BenchPlatform[] = [];
	private shared: RunningN8n | undefined;
	private started = 0;

	private constructor(
		readonly isQuick: boolean,
		private readonly folder: string,
		private readonly tarball: string,
	) {}

	static async open(isQuick: boolean): Promise<Stage> {
		const home = join(packageRoot, '.e2e');
		await mkdir(home, { recursive: true });
		const folder = await mkdtemp(join(home, 'bench-'));
		return new Stage(isQuick, folder, await packTarball(folder));
	}

	/** The n8n that most rows share. */
	async n8n(): Promise<RunningN8n> {
		return (this.shared ??= await this.freshN8n());
	}

	/** Starts an n8n for figures that earlier work would distort, such as memory. */
	async freshN8n(env: NodeJS.ProcessEnv = {}): Promise<RunningN8n> {
		const userFolder = join(this.folder, `n8n-${++this.started}`);
		return await startN8n({ userFolder, tarball: this.tarball, env: { ...BENCH_ENV, ...env } });
	}

	async withFreshN8n<T>(work: (n8n: RunningN8n) => Promise<T>, env?: NodeJS.ProcessEnv): Promise<T> {
		const n8n = await this.freshN8n(env);
		try {
			return await work(n8n);
		} finally {
			await n8n.kill();
		}
	}

	async withPlatform<T>(options: PlatformOptions, work: (platform: BenchPlatform) => Promise<T>): Promise<T> {
		const platform = await BenchPlatform.start({ images: 'prepared', ...options });
		this.platforms.push(platform);
		try {
			return await work(platform);
		} finally {
			await platform.close();
		}
	}

	/** How often something is measured. */
	times(full: number): number {
		return this.isQuick ? 1 : full;
	}

	async close(): Promise<void> {
		await killEveryN8n();
		await Promise.all(this.platforms.map((platform) => platform.close()));
		await rm(this.folder, { recursive: true, force: true, maxRetries: 3 });
	}
}
