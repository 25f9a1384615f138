// npm test: everything that does not need a real n8n, from a fresh clone on. Plain JavaScript for Node 20, because
// it runs before anything is installed; each step then runs under this package's own Node 24.
import { spawn } from 'node:child_process';
import { ensureInstalled, packageRoot, withNode24 } from './install.mjs';
import { runJest } from './jest-run.mjs';

/**
 * @param {string} command
 * @param {string[]} args
 * @returns {Promise<boolean>}
 */
function succeeds(command, args) {
	return new Promise((resolve) => {
		// A shell is needed on Windows only, where installed commands are .cmd files.
		const shell = process.platform === 'win32';
		const child = spawn(command, args, { cwd: packageRoot, env: withNode24(), stdio: 'inherit', shell });
		child.on('error', () => resolve(false));
		child.on('close', (code) => resolve(code === 0));
	});
}

/**
 * @param {string} name
 * @param {string} command
 */
async function gate(name, command) {
	console.log(`\n▶ ${name}: ${command}`);
	const started = Date.now();
	const [program = '', ...args] = command.split(' ');
	const ok = await succeeds(program, args);
	console.log(`${ok ? '✔' : '✘'} ${name} ${((Date.now() - started) / 1000).toFixed(1)} s`);
	return ok;
}

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
	withNode24();
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	console.log('\n0 passed, 1 failed');
	process.exit(1);
}

// Every gate runs even if one before it failed: one run shows all there is to mend.
let failedGates = 0;
if (!(await gate('types', 'npm run --silent typecheck'))) failedGates++;
if (!(await gate('lint', 'npm run --silent lint'))) failedGates++;
const isBuilt = await gate('build', 'gulp --silent bundle');
if (!isBuilt) failedGates++;

// Half of the tests load dist/; after a failed build they would judge an older one.
console.log('\n▶ tests');
const tests = await runJest(succeeds, isBuilt ? [] : ['test/unit']);

const failed = failedGates + tests.failed;
console.log(`\n${tests.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
