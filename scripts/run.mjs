// Runs a command of this package's own tools under its own Node, after installing both if they are missing:
// node scripts/run.mjs tsx test/platform/serve.ts
import { spawn } from 'node:child_process';
import { ensureInstalled, packageRoot, withNode24 } from './install.mjs';

const [command, ...args] = process.argv.slice(2);
if (!command) {
	console.error('Usage: node scripts/run.mjs <command> [arguments]');
	process.exit(2);
}

await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
const child = spawn(command, args, {
	stdio: 'inherit',
	env: withNode24(),
	// Only Windows needs a shell: its installed commands are .cmd files.
	shell: process.platform === 'win32',
});
// The terminal sends Ctrl+C to the child, too; a plain kill reaches only this process and must be passed on.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
	console.error(`"${command}" could not be started: ${error.message}`);
	process.exitCode = 1;
});
child.on('close', (code) => {
	process.exitCode = code ?? 1;
});
