import { SAMPLE_WORKFLOWS, startPlatform } from '../../platform';
import type { LocalPlatform, PlatformOptions } from '../../platform';
import { Client } from './client';

/** Runs a test against a fresh platform with the sample workflows. */
export async function withPlatform(
	options: PlatformOptions,
	test: (client: Client, platform: LocalPlatform) => Promise<void>,
): Promise<void> {
	const platform = await startPlatform(options);
	try {
		for (const [workflowId, exported] of Object.entries(SAMPLE_WORKFLOWS)) {
			await platform.hostWorkflow(exported, { workflowId });
		}
		await test(new Client(platform), platform);
	} finally {
		await platform.close();
	}
}
