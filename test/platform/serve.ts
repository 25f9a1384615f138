import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { SAMPLE_WORKFLOWS, startPlatform } from './index';
import type { LocalPlatform, PlatformOptions } from './index';

const DEFAULT_PORT = 4010;

const HELP = `Starts the local platform.

  --port <n>                    port of the API (default ${DEFAULT_PORT}; 0: a free one)
  --file-port <n>               port of the file host (default ${DEFAULT_PORT + 1}; 0: a free one)
  --api-key <sk-…>              key of the owner "default" (default: a new one)
  --agent-token <agt_…>         token of the agent "default" (default: a new one)
  --runners <n>                 tasks that run at once (4)
  --task-ms <n>                 run time of every task (5 for each sampler step)
  --requests-per-second <n>     request-frequency limit of each key
  --seed <n>                    for everything random
  --fault-rate <0..1>           so many of all requests fail
  --workflow <file>             host this export too, under its file name (may be repeated)
`;

const options = {
	port: { type: 'string' },
	'file-port': { type: 'string' },
	'api-key': { type: 'string' },
	'agent-token': { type: 'string' },
	runners: { type: 'string' },
	'task-ms': { type: 'string' },
	'requests-per-second': { type: 'string' },
	seed: { type: 'string' },
	'fault-rate': { type: 'string' },
	workflow: { type: 'string', multiple: true },
	help: { type: 'boolean' },
} as const;

function numberOf(flag: string, text: string | undefined): number | undefined {
	if (text === undefined) return undefined;
	const number = Number(text);
	if (text.trim() === '' || !(number >= 0)) throw new Error(`--${flag} must be a number, got "${text}".`);
	return number;
}

type Flags = ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];

function platformOptions(flags: Flags): PlatformOptions {
	return {
		port: numberOf('port', flags.port) ?? DEFAULT_PORT,
		filePort: numberOf('file-port', flags['file-port']) ?? DEFAULT_PORT + 1,
		apiKey: flags['api-key'],
		agentToken: flags['agent-token'],
		runners: numberOf('runners', flags.runners),
		taskMs: numberOf('task-ms', flags['task-ms']),
		requestsPerSecond: numberOf('requests-per-second', flags['requests-per-second']),
		seed: numberOf('seed', flags.seed),
	};
}

async function hostAll(platform: LocalPlatform, files: readonly string[]): Promise<string[]> {
	const exports = new Map<string, unknown>(Object.entries(SAMPLE_WORKFLOWS));
	for (const file of files) exports.set(basename(file, '.json'), await readFile(file, 'utf8'));
	for (const [workflowId, exported] of exports) await platform.hostWorkflow(exported, { workflowId });
	return [...exports.keys()];
}

function describePlatform(platform: LocalPlatform, workflowIds: readonly string[]): string {
	const body = JSON.stringify({
		workflow_id: 'text-to-image',
		prompt: { 3: { inputs: { seed: 7 } }, 6: { inputs: { text: 'a golden fox by the sea' } } },
	});
	return `The local platform is ready.

  API         ${platform.apiUrl}
  WebSocket   ${platform.wsUrl}
  Files       ${platform.fileUrl}
  API key     ${platform.apiKey}
  Agent token ${platform.agentToken}
  Workflows   ${workflowIds.join(', ')}
  Books       ${platform.apiUrl}/admin/books

Submit a task:

  curl ${platform.apiUrl}/api/maas/flow_task_api/prompt \\
    -H 'Authorization: Bearer ${platform.apiKey}' \\
    -H 'Content-Type: application/json' -H 'Accept: application/json' \\
    -d '${body}'
`;
}

async function main(): Promise<void> {
	const { values: flags } = parseArgs({ options });
	if (flags.help === true) {
		process.stdout.write(HELP);
		return;
	}
	const faultRate = numberOf('fault-rate', flags['fault-rate']);
	const platform = await startPlatform(platformOptions(flags));
	const stop = (): void => {
		void platform.close();
	};
	process.once('SIGINT', stop);
	process.once('SIGTERM', stop);
	try {
		const workflowIds = await hostAll(platform, flags.workflow ?? []);
		if (faultRate !== undefined) platform.faults.campaign({ rate: faultRate });
		process.stdout.write(describePlatform(platform, workflowIds));
	} catch (error) {
		await platform.close();
		throw error;
	}
}

main().catch((error: unknown) => {
	process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
	process.exitCode = 1;
});
