// npm run test:wires: Agent Invoke against agent servers of other makers; works in a fresh clone. Plain JavaScript for
// Node 20, because it runs before anything is installed. Arguments go to jest: npm run test:wires -- -t Mastra
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

console.log('▶ build');
const isBuilt = await succeeds('gulp', ['--silent', 'bundle']);

console.log('▶ the descriptions in docs/wires against the servers that they are for');
const tests = await runJest(['--config', 'test/wires/jest.config.js', ...process.argv.slice(2)]);

const failed = (isBuilt ? 0 : 1) + tests.failed;
console.log(`\n${tests.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
