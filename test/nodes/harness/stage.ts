import { startPlatform, type LocalPlatform, type PlatformOptions } from '../../platform';
import { createHarness, type Harness, type HarnessOptions, type HarnessRun, type ItemInput } from '.';

/** A local platform, and n8n-core with the built nodes, connected by real sockets. */
export interface PlatformStage {
	readonly platform: LocalPlatform;
	readonly harness: Harness;
	close(): Promise<void>;
}

export async function openPlatform(
	options: PlatformOptions = {},
	nodes: HarnessOptions['nodes'] = [],
): Promise<PlatformStage> {
	// The harness is created first, because it also controls the platform's time.
	const harness = await createHarness({ nodes });
	const platform = await startPlatform({ pictures: 'prepared', seed: 1, ...options });
	return {
		platform,
		harness,
		close: async () => {
			await harness.close();
			await platform.close();
		},
	};
}

/** Items with the field `say`. */
export function sayings(...texts: string[]): ItemInput[] {
	return texts.map((say) => ({ json: { say } }));
}

/** All text of an execution: items, errors, hints, logs and chunks. */
export function everythingSaid(run: HarnessRun): string {
	return JSON.stringify([run.stored, run.raw.data.resultData, run.error, run.logs, run.chunks]);
}
