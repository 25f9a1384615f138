// npm run test:e2e: the tests in a real n8n; works in a fresh clone. Plain JavaScript for Node 20, because it runs
// before anything is installed. Arguments go to jest: npm run test:e2e -- flowtask
import { join } from 'node:path';
import { ensureChromium } from '../test/e2e/browser/install.mjs';
import { ensureN8nInstalled } from '../test/e2e/install.mjs';
import { ensureInstalled, packageRoot } from './install.mjs';
import { runJest, succeeds } from './jest-run.mjs';

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
	await ensureN8nInstalled();
	await ensureChromium();
	await ensureInstalled({ dir: join(packageRoot, 'test', 'e2e', 'nodeCli'), label: "n8n's command line" });
	await ensureInstalled({ dir: join(packageRoot, 'test', 'wires'), label: 'agent servers' });
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	console.log('\n0 passed, 1 failed');
	process.exit(1);
}

// `npm test` leaves these types out, because what they import is installed only now.
console.log('▶ types of test/e2e');
const hasTypes = await succeeds('tsc', ['-p', 'test/e2e']);

console.log('▶ tests in a real n8n (each file starts its own, about 10 s)');
const tests = await runJest(['--config', 'test/e2e/jest.config.js', ...process.argv.slice(2)]);

const failed = (hasTypes ? 0 : 1) + tests.failed;
console.log(`\n${tests.passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
