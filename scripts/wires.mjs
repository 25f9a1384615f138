// npm run test:wires: the ready descriptions of an agent's wire against the servers that they are for; works in a fresh
// clone. Plain JavaScript for Node 20, because it runs before anything is installed. Arguments go to jest:
// npm run test:wires -- -t Mastra
import { join } from 'node:path';
import { ensureInstalled, packageRoot } from './install.mjs';
import { runJest, succeeds } from './jest-run.mjs';

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
	await ensureInstalled({ dir: join(packageRoot, 'test', 'wires'), label: 'agent servers' });
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	console.log('\n0 passed, 1 failed');
	process.exit(1);
}

// The tests drive the built node.
const isBuilt = await succeeds('gulp', ['--silent', 'bundle']);
const tests = isBuilt
	? await runJest(['--config', 'test/wires/jest.config.js', ...process.argv.slice(2)])
	: { passed: 0, failed: 1 };
console.log(`\n${tests.passed} passed, ${tests.failed} failed`);
process.exitCode = tests.failed === 0 ? 0 : 1;
