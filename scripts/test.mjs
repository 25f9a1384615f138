// npm test: everything that needs no real n8n; works in a fresh clone. Plain JavaScript for Node 20, because
// it runs before anything is installed; each step then runs under this package's own Node 24.
import { ensureInstalled, packageRoot } from './install.mjs';
import { runJest, succeeds } from './jest-run.mjs';

/**
 * Gates run at the same time, so each prints when it is done.
 * @param {string} name
 * @param {string} command
 */
async function gate(name, command) {
	const started = Date.now();
	const [program = '', ...args] = command.split(' ');
	let printed = '';
	const write = (/** @type {string} */ text) => {
		printed += text;
	};
	const ok = await succeeds(program, args, { write });
	const seconds = ((Date.now() - started) / 1000).toFixed(1);
	console.log(`${ok ? '✔' : '✘'} ${name} (${command}) ${seconds} s`);
	if (!ok || printed.trim()) console.log(printed.trimEnd());
	return ok;
}

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	console.log('\n0 passed, 1 failed');
	process.exit(1);
}

// Every gate runs, even after a failed one, so that one run shows everything to fix.
console.log('\n▶ lint, types, format, build');
const [isBuilt, ...others] = await Promise.all([
	gate('build', 'gulp --silent bundle'),
	gate('lint', 'eslint . --max-warnings 0'),
	gate('types', 'tsc --noEmit'),
	gate('format', 'prettier --check --log-level warn .'),
]);
const failedGates = [isBuilt, ...others].filter((ok) => !ok).length;

// Half of the tests load dist/; after a failed build they would test an older one.
console.log('\n▶ tests');
const tests = await runJest(isBuilt ? [] : ['test/unit']);

const failed = failedGates + tests.failed;
console.log(`\n${tests.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
