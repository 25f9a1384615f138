// npm test: everything that needs no real n8n; works in a fresh clone. Plain JavaScript for Node 20, because
// it runs before anything is installed; each step then runs under this package's own Node 24.
import { ensureInstalled, packageRoot } from './install.mjs';
import { runJest, succeeds } from './jest-run.mjs';

/** What the gates printed. @type {string[]} */
const reports = [];

/**
 * @param {string} name
 * @param {string} command
 * @returns {Promise<boolean>}
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
	// At the end, because what other checks print would bury it.
	if (!ok || printed.trim()) reports.push(`▶ ${name}\n${printed.trimEnd()}`);
	return ok;
}

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	console.log('\n0 passed, 1 failed');
	process.exit(1);
}

// Every check runs, even after a failed one, so that one run shows everything to fix. The others run at the same time as
// the tests, which leave a core idle now and then. Half of the tests load dist/: after a failed build they would test an
// older one.
console.log('\n▶ build, then lint, types, format and tests');
const isBuilt = await gate('build', 'gulp --silent bundle');
const [tests, ...others] = await Promise.all([
	runJest(isBuilt ? [] : ['test/unit']),
	gate('lint', 'eslint . --max-warnings 0'),
	gate('types', 'tsc -p test'),
	gate('format', 'prettier --check --log-level warn .'),
]);
for (const report of reports) console.log(`\n${report}`);

const failed = [isBuilt, ...others].filter((ok) => !ok).length + tests.failed;
console.log(`\n${tests.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
