import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

export const DRIVER_TYPE = 'n8n-nodes-ledgerdriver.ledgerDriver';

/** Bundles the driver node into a package of its own and packs it; the tarball is written into `folder`. */
export async function packDriver(folder: string): Promise<string> {
	const content = join(folder, 'driver', 'package');
	await mkdir(content, { recursive: true });
	await build({
		entryPoints: [join(__dirname, 'LedgerDriver.node.ts')],
		outfile: join(content, 'LedgerDriver.node.js'),
		bundle: true,
		external: ['n8n-workflow'],
		format: 'cjs',
		platform: 'node',
		target: 'node22',
	});
	const manifest = {
		name: 'n8n-nodes-ledgerdriver',
		version: '1.0.0',
		keywords: ['n8n-community-node-package'],
		n8n: { n8nNodesApiVersion: 1, credentials: [], nodes: ['LedgerDriver.node.js'] },
	};
	await writeFile(join(content, 'package.json'), JSON.stringify(manifest));
	const tarball = join(folder, 'driver.tgz');
	await promisify(execFile)('tar', ['-czf', tarball, '-C', join(folder, 'driver'), 'package']);
	return tarball;
}
