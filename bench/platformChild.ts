// The local platform as a process of its own, so that its work is in no figure of n8n's and does not hold up the bench.
// node --import tsx platformChild.ts <options as JSON>
import { startPlatform, type PlatformOptions } from '../test/platform';

/** What the parent is told once the platform listens. */
export interface PlatformAddress {
	readonly apiUrl: string;
	readonly wsUrl: string;
	readonly fileUrl: string;
	readonly apiKey: string;
	readonly agentToken: string;
}

async function main(): Promise<void> {
	const options = JSON.parse(process.argv[2] ?? '{}') as PlatformOptions;
	const { apiUrl, wsUrl, fileUrl, apiKey, agentToken } = await startPlatform(options);
	const address: PlatformAddress = { apiUrl, wsUrl, fileUrl, apiKey, agentToken };
	process.send?.(address);
	// The parent is gone, however it ended.
	process.once('disconnect', () => process.exit(0));
}

main().catch((error: unknown) => {
	console.error(error);
	process.exit(1);
});
