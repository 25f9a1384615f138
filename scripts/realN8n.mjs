// npm run demo:n8n, chaos, bench: a TypeScript program that needs a real n8n; works in a fresh clone. Plain JavaScript for
// Node 20, because it runs before anything is installed.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ensureN8nInstalled } from '../test/e2e/install.mjs';
import { ensureInstalled, packageRoot, withNode24 } from './install.mjs';

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
	await ensureN8nInstalled();
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	process.exit(1);
}

const [path = '', ...options] = process.argv.slice(2);
const program = join(packageRoot, path);
const child = spawn('node', ['--import', 'tsx', program, ...options], {
	cwd: packageRoot,
	env: withNode24(),
	stdio: 'inherit',
});
// The terminal sends Ctrl-C to the program, too, so this process only waits for it to end. A plain kill reaches only
// this process and must be passed on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('error', (error) => {
	console.error(`The program could not be started: ${error.message}`);
	process.exitCode = 1;
});
child.on('close', (code) => {
	process.exitCode = code ?? 1;
});
