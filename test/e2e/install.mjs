// Installs the real n8n in which the end-to-end tests, the demo and the bench run. It is plain JavaScript for Node 20,
// like the launchers that call it, and needs the package's own dependencies, which include Node 24.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ensureInstalled, packageRoot, withNode24 } from '../../scripts/install.mjs';

const e2eFolder = dirname(fileURLToPath(import.meta.url));

// n8n's database and its expression sandbox; n8n needs no other module with an install script here.
const NATIVE_MODULES = ['sqlite3', 'isolated-vm'];

const HEARTBEAT_MS = 15_000;
const TAIL_LINES = 40;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/**
 * Installs the n8n of the lock file and builds its native modules for this Node, unless both are up to date.
 *
 * @param {{ onProgress?: (line: string) => void }} [options]
 * @returns {Promise<void>}
 */
export async function ensureN8nInstalled({ onProgress = console.log } = {}) {
	if (!existsSync(markerOf(e2eFolder))) {
		onProgress('n8n: not installed yet. This takes 3 to 5 minutes and 2.2 GB, once.');
	}
	await ensureInstalled({ dir: e2eFolder, label: 'n8n', onProgress });
	await ensureNativeModules({ folder: e2eFolder, env: withNode24(), nodeFolder: ownNode, onProgress });
}

const ownNode = join(packageRoot, 'node_modules', 'node');

/** @param {string} folder */
const markerOf = (folder) => join(folder, 'node_modules', '.native-modules-built');

/**
 * Builds the native modules of an installed n8n for the Node that will run it, unless that has been done.
 *
 * @param {{ folder: string, env: NodeJS.ProcessEnv, nodeFolder: string, onProgress?: (line: string) => void }} options
 *   `nodeFolder` is that of the package "node" whose binary comes first in the PATH of `env`.
 * @returns {Promise<void>}
 */
export async function ensureNativeModules({ folder, env, nodeFolder, onProgress = console.log }) {
	const marker = markerOf(folder);
	const wanted = builtFor(folder, nodeFolder);
	if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return;
	const headers = nodeHeaders(nodeFolder);
	await buildNativeModules(folder, headers ? { ...env, npm_config_nodedir: headers } : env, onProgress);
	// The marker is written last, so an interrupted build is repeated.
	writeFileSync(marker, wanted);
}

/**
 * Describes what a build of the native modules is valid for: other versions, another Node or machine need a new build.
 *
 * @param {string} folder
 * @param {string} nodeFolder
 */
function builtFor(folder, nodeFolder) {
	const lock = createHash('sha256')
		.update(readFileSync(join(folder, 'package-lock.json')))
		.digest('hex');
	const node = JSON.parse(readFileSync(join(nodeFolder, 'package.json'), 'utf8'));
	return `lock ${lock}, node ${node.version}, ${process.platform} ${process.arch}\n`;
}

/**
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env
 * @param {(line: string) => void} onProgress
 */
async function buildNativeModules(folder, env, onProgress) {
	const started = Date.now();
	const seconds = () => Math.round((Date.now() - started) / 1000);
	onProgress(`n8n: building ${NATIVE_MODULES.join(' and ')} (about a minute) …`);
	const heartbeat = setInterval(() => onProgress(`n8n: still building, ${seconds()} s`), HEARTBEAT_MS);
	try {
		await npm(['rebuild', '--ignore-scripts=false', ...NATIVE_MODULES], folder, env);
	} finally {
		clearInterval(heartbeat);
	}
	onProgress(`n8n: built in ${seconds()} s`);
}

/**
 * Finds the C headers of the package "node", without which node-gyp would download them.
 *
 * @param {string} nodeFolder
 */
function nodeHeaders(nodeFolder) {
	// They are next to the package if npm flattens the tree, and inside it if the install script fetched them.
	const places = [join(nodeFolder, 'node_modules'), dirname(nodeFolder)];
	return places
		.filter((place) => existsSync(place))
		.flatMap((place) => readdirSync(place).map((name) => join(place, name)))
		.find((candidate) => existsSync(join(candidate, 'include', 'node', 'node.h')));
}

/**
 * Runs npm; an error contains the end of its output.
 *
 * @param {string[]} args
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env
 */
export async function npm(args, cwd, env) {
	// Only Windows needs a shell: its npm is a .cmd file.
	const shell = process.platform === 'win32';
	try {
		return await promisify(execFile)('npm', args, { cwd, env, shell, maxBuffer: MAX_OUTPUT_BYTES });
	} catch (error) {
		const output = `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message;
		const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
		throw new Error(`"npm ${args.join(' ')}" failed in ${cwd}:\n${tail}`, { cause: error });
	}
}
