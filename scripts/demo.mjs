// npm run demo: builds the package and runs test/demo/demo.ts; works in a fresh clone. Plain JavaScript for Node 20,
// because it runs before anything is installed.
import { ensureInstalled, packageRoot } from './install.mjs';
import { succeeds } from './jest-run.mjs';

try {
	await ensureInstalled({ dir: packageRoot, label: 'n8n-nodes-flowtask' });
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	process.exit(1);
}

console.log('Building the nodes …');
const isDone =
	(await succeeds('gulp', ['--silent', 'bundle'])) && (await succeeds('tsx', ['test/demo/demo.ts']));
process.exitCode = isDone ? 0 : 1;
