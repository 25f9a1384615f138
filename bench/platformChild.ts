// Runs the local platform as a process of its own, so that its work neither counts as n8n's nor delays the bench.
// node --import tsx platformChild.ts <options as JSON>
import { startPlatform, type PlatformOptions } from '../test/platform';

/** The message to the parent once the platform is listening. */
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
	// The parent has ended, in whatever way.
	process.once('disconnect', () => process.exit(0));
}

main().catch((error: unknown) => {
	console.error(error);
	process.exit(1);
});
