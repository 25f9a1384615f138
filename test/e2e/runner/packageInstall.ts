import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { n8nEnvironment } from './n8nProcess';

const packageRoot = join(__dirname, '..', '..', '..');

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Builds this package and packs it as npm publishes it, into a tarball in `folder`. */
export async function packTarball(folder: string): Promise<string> {
	const gulp = join(packageRoot, 'node_modules', 'gulp', 'bin', 'gulp.js');
	await run(process.execPath, [gulp, 'bundle'], packageRoot);
	await mkdir(folder, { recursive: true });
	const scratch = await mkdtemp(join(folder, 'pack-'));
	await run('npm', ['pack', '--quiet', '--ignore-scripts', '--pack-destination', scratch], packageRoot);
	const [name] = await readdir(scratch);
	if (name === undefined) throw new Error(`npm pack wrote nothing into ${scratch}`);
	const tarball = join(folder, name);
	await rename(join(scratch, name), tarball);
	await rm(scratch, { recursive: true });
	return tarball;
}

/**
 * Installs a packed package into `<userFolder>/.n8n/nodes` by the steps of n8n's own installer (downloadPackage in its
 * community-packages.service.js), without the download. npm is kept offline, so a runtime dependency would fail here.
 */
export async function installPackage(userFolder: string, tarball: string): Promise<string> {
	const nodesFolder = join(userFolder, '.n8n', 'nodes');
	await mkdir(join(nodesFolder, 'node_modules'), { recursive: true });
	const unpacked = await mkdtemp(join(nodesFolder, 'unpack-'));
	await run('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1'], nodesFolder);
	const manifest = await readManifest(join(unpacked, 'package.json'));

	const target = join(nodesFolder, 'node_modules', manifest.name);
	await rm(target, { recursive: true, force: true });
	await mkdir(dirname(target), { recursive: true });
	await rename(unpacked, target);
	// n8n removes these, because it provides the peers itself.
	const { devDependencies, peerDependencies, optionalDependencies, ...installed } = manifest;
	await writeFile(join(target, 'package.json'), JSON.stringify(installed, null, 2));
	await run('npm', ['install', '--offline', ...INSTALL_FLAGS], target);

	await recordDependency(join(nodesFolder, 'package.json'), manifest);
	return manifest.name;
}

const INSTALL_FLAGS = [
	...['--audit=false', '--fund=false', '--bin-links=false', '--install-strategy=shallow'],
	...['--ignore-scripts=true', '--package-lock=false'],
];

interface Manifest {
	name: string;
	version: string;
	[field: string]: unknown;
}

async function readManifest(file: string): Promise<Manifest> {
	return JSON.parse(await readFile(file, 'utf8')) as Manifest;
}

/** Adds the package to n8n's list of what is installed in that folder. */
async function recordDependency(file: string, { name, version }: Manifest): Promise<void> {
	interface Ledger {
		name: string;
		private: boolean;
		dependencies: Record<string, string>;
	}
	const ledger: Ledger = existsSync(file)
		? (JSON.parse(await readFile(file, 'utf8')) as Ledger)
		: { name: 'installed-nodes', private: true, dependencies: {} };
	ledger.dependencies[name] = version;
	await writeFile(file, JSON.stringify(ledger, null, 2));
}

async function run(command: string, args: string[], cwd: string): Promise<void> {
	// Under `npm run`, the environment contains the outer npm's settings, which an inner npm must not inherit.
	const env = n8nEnvironment({});
	// Only Windows needs a shell: its npm is a .cmd file.
	const shell = process.platform === 'win32' && command === 'npm';
	try {
		await promisify(execFile)(command, args, { cwd, env, shell, maxBuffer: MAX_OUTPUT_BYTES });
	} catch (error) {
		const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
		const output = `${stdout}${stderr}`.trim();
		throw new Error(`"${command} ${args.join(' ')}" failed in ${cwd}:\n${output}`, { cause: error });
	}
}
