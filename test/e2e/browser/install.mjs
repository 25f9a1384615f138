// Finds the Chromium that the browser tests drive, and installs it if that can be done without asking. It is plain
// JavaScript for Node 20, like the launcher that calls it.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

/** The variable that names the browser for the tests; a person may set it to any other one. */
const CHROMIUM_VARIABLE = 'FLOWTASK_E2E_CHROMIUM';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const APPLICATIONS = [
	'/Applications/Chromium.app/Contents/MacOS/Chromium',
	'/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
	String.raw`C:\Program Files\Google\Chrome\Application\chrome.exe`,
];

const VERSION_DEADLINE_MS = 20_000;
const TAIL_LINES = 20;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/**
 * Sets the environment variable that names the browser; installs one first if there is none and the process is root on
 * Debian or Ubuntu.
 *
 * @param {{ onProgress?: (line: string) => void }} [options]
 * @returns {Promise<void>}
 */
export async function ensureChromium({ onProgress = console.log } = {}) {
	const wished = process.env[CHROMIUM_VARIABLE];
	if (wished) {
		if (await starts(wished)) return;
		throw new Error(`${CHROMIUM_VARIABLE} names "${wished}", which does not start.`);
	}
	let path = await findChromium();
	if (path === undefined && canInstall()) {
		onProgress('Chromium: not installed yet, getting it (apt-get install chromium; 300 MB, once) …');
		await apt(['update']);
		await apt(['install', '-y', 'chromium']);
		path = await findChromium();
	}
	if (path === undefined) {
		throw new Error(
			`The browser tests need Chromium or Chrome, and none was found. Install it (Debian: "apt-get install chromium" as root) or name one in ${CHROMIUM_VARIABLE}.`,
		);
	}
	process.env[CHROMIUM_VARIABLE] = path;
}

async function findChromium() {
	const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
	const candidates = [...NAMES.flatMap((name) => folders.map((dir) => join(dir, name))), ...APPLICATIONS];
	for (const path of candidates) {
		if (existsSync(path) && (await starts(path))) return path;
	}
	return undefined;
}

/**
 * Checks that a browser starts. A file alone proves nothing: on Ubuntu it may be a stub that only says where to get it.
 *
 * @param {string} path
 */
async function starts(path) {
	// Chrome for Windows opens a window if it is asked for its version.
	if (process.platform === 'win32') return existsSync(path);
	try {
		await promisify(execFile)(path, ['--version'], { timeout: VERSION_DEADLINE_MS });
		return true;
	} catch {
		return false;
	}
}

function canInstall() {
	return process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
}

/** @param {string[]} args */
async function apt(args) {
	const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
	try {
		await promisify(execFile)('apt-get', args, { env, maxBuffer: MAX_OUTPUT_BYTES });
	} catch (error) {
		const output = `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message;
		const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
		throw new Error(`Chromium could not be installed: "apt-get ${args.join(' ')}" failed:\n${tail}`, {
			cause: error,
		});
	}
}
