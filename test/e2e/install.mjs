// Installs the real n8n that the end-to-end tests, the demo and the bench run in. Plain JavaScript for Node 20,
// like the launchers that call it. Needs the package's own dependencies: they bring Node 24.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ensureInstalled, packageRoot, withNode24 } from '../../scripts/install.mjs';

const e2eFolder = dirname(fileURLToPath(import.meta.url));

// n8n's database and its expression sandbox. Of the others that have install scripts n8n needs none here.
const NATIVE_MODULES = ['sqlite3', 'isolated-vm'];

const HEARTBEAT_MS = 15_000;
const TAIL_LINES = 40;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/**
 * Brings n8n to the state of the lock file, and its native modules to this Node; does nothing if that is so already.
 *
 * @param {{ onProgress?: (line: string) => void }} [options]
 * @returns {Promise<void>}
 */
export async function ensureN8nInstalled({ onProgress = console.log } = {}) {
	const marker = join(e2eFolder, 'node_modules', '.native-modules-built');
	const wanted = builtFor();
	if (!existsSync(marker)) {
		onProgress('n8n: not installed yet. This takes 3 to 5 minutes and 2.2 GB, once.');
	}
	await ensureInstalled({ dir: e2eFolder, label: 'n8n', onProgress });
	if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return;
	await buildNativeModules(onProgress);
	// Written last: an interrupted build is made again.
	writeFileSync(marker, wanted);
}

/** What a build of the native modules is good for: other versions, another Node or machine ask for another. */
function builtFor() {
	const lock = createHash('sha256')
		.update(readFileSync(join(e2eFolder, 'package-lock.json')))
		.digest('hex');
	const node = JSON.parse(readFileSync(join(packageRoot, 'node_modules', 'node', 'package.json'), 'utf8'));
	return `lock ${lock}, node ${node.version}, ${process.platform} ${process.arch}\n`;
}

/** @param {(line: string) => void} onProgress */
async function buildNativeModules(onProgress) {
	const started = Date.now();
	const seconds = () => Math.round((Date.now() - started) / 1000);
	onProgress(`n8n: building ${NATIVE_MODULES.join(' and ')} (about a minute) …`);
	const heartbeat = setInterval(() => onProgress(`n8n: still building, ${seconds()} s`), HEARTBEAT_MS);
	try {
		await npm(['rebuild', '--ignore-scripts=false', ...NATIVE_MODULES]);
	} finally {
		clearInterval(heartbeat);
	}
	onProgress(`n8n: built in ${seconds()} s`);
}

/** The C headers that the package "node" brings with its binary; without them node-gyp would download them. */
function nodeHeaders() {
	const binaries = join(packageRoot, 'node_modules', 'node', 'node_modules');
	if (!existsSync(binaries)) return undefined;
	return readdirSync(binaries)
		.map((name) => join(binaries, name))
		.find((folder) => existsSync(join(folder, 'include', 'node', 'node.h')));
}

/** @param {string[]} args */
async function npm(args) {
	const env = withNode24();
	const headers = nodeHeaders();
	if (headers) env.npm_config_nodedir = headers;
	// A shell is needed on Windows only, where npm is a .cmd file.
	const shell = process.platform === 'win32';
	try {
		await promisify(execFile)('npm', args, { cwd: e2eFolder, env, shell, maxBuffer: MAX_OUTPUT_BYTES });
	} catch (error) {
		const output = `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message;
		const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
		throw new Error(`"npm ${args.join(' ')}" failed in ${e2eFolder}:\n${tail}`, { cause: error });
	}
}
