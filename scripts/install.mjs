// Installs a folder's dependencies if they are missing or out of date. Plain JavaScript for Node 20 without packages,
// so that `npm test` and `npm run demo` work in a fresh clone.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)));

const HEARTBEAT_MS = 15_000;
const REASON_LINES = 40;

/**
 * npm writes `node_modules/.package-lock.json` only when an install succeeds, so the file shows whether an install is
 * complete and up to date. Optional packages may be absent: they are builds for other platforms.
 *
 * @param {string} dir
 */
export function isInstalled(dir) {
	const wanted = readPackages(join(dir, 'package-lock.json'));
	const present = readPackages(join(dir, 'node_modules', '.package-lock.json'));
	if (!wanted || !present) return false;
	return Object.entries(wanted).every(([path, entry]) => {
		if (path === '') return true;
		const found = present[path];
		if (!found) return entry.optional === true;
		return found.version === entry.version && found.integrity === entry.integrity;
	});
}

/** @param {string} file */
function readPackages(file) {
	if (!existsSync(file)) return undefined;
	try {
		/** @type {{ packages?: Record<string, { version?: string, integrity?: string, optional?: boolean }> }} */
		const lock = JSON.parse(readFileSync(file, 'utf8'));
		return lock.packages;
	} catch {
		// A truncated lock file means the same as none: install again.
		return undefined;
	}
}

/**
 * Installs what the package-lock.json in `dir` lists and, in this package's own folder, its Node 24.
 *
 * @param {{ dir: string, label?: string, onProgress?: (line: string) => void }} options `onProgress` gets whole
 *   sentences for a person (default: standard output).
 * @returns {Promise<void>}
 */
export async function ensureInstalled({ dir, label = dir, onProgress = console.log }) {
	if (!isInstalled(dir)) await install(dir, label, onProgress);
	if (dir === packageRoot) await ensureNode(dir);
}

/**
 * @param {string} dir
 * @param {string} label
 * @param {(line: string) => void} onProgress
 */
async function install(dir, label, onProgress) {
	const started = Date.now();
	onProgress(`${label}: installing dependencies (npm ci, once; this takes a minute or more) …`);
	const heartbeat = setInterval(() => {
		onProgress(`${label}: still installing, ${secondsSince(started)} s`);
	}, HEARTBEAT_MS);
	try {
		await run('npm', ['ci', '--no-audit', '--no-fund'], dir);
	} finally {
		clearInterval(heartbeat);
	}
	onProgress(`${label}: installed in ${secondsSince(started)} s`);
}

/**
 * Fetches the binary of the package "node" in `dir`, unless it is there: npm installs the package without it, because
 * .npmrc allows no install scripts.
 *
 * @param {string} dir
 * @returns {Promise<string>} The package's folder.
 */
export async function ensureNode(dir) {
	const folder = join(dir, 'node_modules', 'node');
	const isFetched = () => ['node', 'node.exe'].some((name) => existsSync(join(folder, 'bin', name)));
	if (!isFetched()) await run('npm', ['rebuild', '--ignore-scripts=false', 'node'], dir);
	if (!isFetched()) throw new Error(`npm has fetched no Node into ${folder}.`);
	return folder;
}

/** @param {number} started */
const secondsSince = (started) => Math.round((Date.now() - started) / 1000);

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<void>}
 */
function run(command, args, cwd) {
	return new Promise((resolve, reject) => {
		// Only Windows needs a shell: its npm is a .cmd file.
		const shell = process.platform === 'win32';
		const child = spawn(command, args, { cwd, shell, stdio: ['ignore', 'pipe', 'pipe'] });
		let output = '';
		/** @param {Buffer} chunk */
		const collect = (chunk) => {
			output += chunk.toString();
		};
		child.stdout.on('data', collect);
		child.stderr.on('data', collect);
		child.on('error', (error) => reject(new Error(`"${command}" could not be started: ${error.message}`)));
		child.on('close', (code) => {
			if (code === 0) return resolve();
			// npm prints what went wrong first, then its usage; most warnings do not matter.
			const lines = output.split('\n').filter((line) => !line.startsWith('npm warn'));
			const reason = lines.slice(0, REASON_LINES).join('\n').trimEnd();
			reject(new Error(`"${command} ${args.join(' ')}" failed in ${cwd} (exit ${code}):\n${reason}`));
		});
	});
}

/**
 * The environment in which `node` is the Node 24 that this package installs for itself (its devDependency
 * "node"), regardless of the machine's own.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {NodeJS.ProcessEnv}
 */
export function withNode24(env = process.env) {
	// Windows spells it "Path", and a plain object does not fold case as process.env does.
	const pathKey = Object.keys(env).find((key) => key.toLowerCase() === 'path') ?? 'PATH';
	const bin = join(packageRoot, 'node_modules', '.bin');
	return { ...env, [pathKey]: [bin, env[pathKey]].filter(Boolean).join(delimiter) };
}
