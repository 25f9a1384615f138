// node scripts/pack.mjs [folder]: packs dist/ into the file that a release publishes, and checks it with npm's dry run
// and n8n's scanner. The last line is the entry for N8N_COMMUNITY_PACKAGES. Run npm run build first.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from './install.mjs';

/** The files of a published package that n8n's scanner reads. */
const SCANNED = ['**/*.js', 'package.json'];

const scratch = mkdtempSync(join(tmpdir(), 'flowtask-release-'));
try {
	if (!existsSync(join(packageRoot, 'dist'))) throw new Error('There is no dist/: run "npm run build" first');
	const [folder = scratch] = process.argv.slice(2);
	mkdirSync(folder, { recursive: true });
	const { tarball, name, version, files } = await pack(resolve(folder));
	for (const { path, size } of files) console.log(`${String(size).padStart(9)}  ${path}`);
	console.log(await dryRun(tarball));
	console.log(await scan(tarball));
	console.log(await whoPublishes());
	console.log(JSON.stringify({ name, version, checksum: integrityOf(tarball) }));
} catch (error) {
	console.error(error instanceof Error ? error.message : error);
	process.exitCode = 1;
} finally {
	rmSync(scratch, { recursive: true, force: true });
}

/**
 * @param {string} folder
 * @returns {Promise<{ tarball: string, name: string, version: string, files: { path: string, size: number }[] }>}
 */
async function pack(folder) {
	const { stdout } = await npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder]);
	const [{ filename, name, version, files }] = JSON.parse(stdout);
	return { tarball: join(folder, filename), name, version, files };
}

/**
 * npm's checksum of a file, as its registry states it and n8n compares it.
 *
 * @param {string} tarball
 */
function integrityOf(tarball) {
	return `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
}

/**
 * Runs the publish command of a release, without the identity that only a release has.
 *
 * @param {string} tarball
 */
async function dryRun(tarball) {
	const { stdout } = await npm([
		...['publish', tarball, '--dry-run', '--offline'],
		...['--ignore-scripts', '--access', 'public'],
	]);
	return `npm would publish ${stdout.trim()}`;
}

/** What still forbids to publish; packing is allowed, because tests and reviews need no publisher. */
async function whoPublishes() {
	const check = promisify(execFile)(process.execPath, [join(packageRoot, 'scripts', 'identity.mjs')], {
		cwd: packageRoot,
	});
	return await check.then(
		() => 'Its address and author are filled in',
		({ stderr }) => stderr.trim(),
	);
}

/** @param {string} tarball */
async function scan(tarball) {
	const unpacked = join(scratch, 'unpacked');
	mkdirSync(unpacked);
	await promisify(execFile)('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1']);
	const scanner = join(packageRoot, 'test', 'package', 'n8n', 'scan.mjs');
	const { stdout } = await promisify(execFile)(process.execPath, [scanner, unpacked, ...SCANNED], {
		cwd: packageRoot,
		// Under jest, which sets "test", the scanner would apply other rules.
		env: { ...process.env, NODE_ENV: 'production' },
	});
	const { passed, message, details } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
	if (!passed) throw new Error(`n8n's scanner rejects the package: ${message}\n${details}`);
	return "n8n's scanner accepts it";
}

/** @param {string[]} args */
async function npm(args) {
	// Only Windows needs a shell: its npm is a .cmd file.
	return await promisify(execFile)('npm', args, { cwd: packageRoot, shell: process.platform === 'win32' });
}
