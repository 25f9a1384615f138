import { spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LIKE_N8N_3 } from './likeN8n3';
import { LOOPBACK } from './loopback';
import { ProcessLog } from './processLog';

/** The n8n of the lock file, or the one that `npm run compat` has installed, with a Node of its own. */
export const N8N_MODULES = join(process.env.FLOWTASK_N8N_FOLDER ?? join(__dirname, '..'), 'node_modules');
const n8nBinary = join(N8N_MODULES, 'n8n', 'bin', 'n8n');
const ownNode = join(N8N_MODULES, 'node', 'bin', 'node');
const nodeBinary = existsSync(ownNode) ? ownNode : process.execPath;

const START_DEADLINE_MS = 180_000;
// n8n gives its own executions 30 s to end.
const STOP_DEADLINE_MS = 45_000;
const LOOK_EVERY_MS = 200;

/** The only variables that n8n inherits, because npm, jest or a person's own n8n set others that n8n reads. */
const INHERITED = [
	...['PATH', 'Path', 'HOME', 'USERPROFILE', 'APPDATA', 'LOCALAPPDATA', 'SystemRoot', 'ComSpec'],
	...['TMPDIR', 'TEMP', 'TMP', 'LANG', 'LC_ALL', 'TZ'],
];

/** Settings of an n8n as a person uses it, without any requests to other machines. */
const QUIET: NodeJS.ProcessEnv = {
	NODE_ENV: 'production',
	N8N_LOG_FORMAT: 'json',
	N8N_LISTEN_ADDRESS: LOOPBACK,
	N8N_HOST: LOOPBACK,
	// This allows a login over plain HTTP from a name other than "localhost".
	N8N_SECURE_COOKIE: 'false',
	N8N_DIAGNOSTICS_ENABLED: 'false',
	N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
	N8N_VERSION_NOTIFICATIONS_WHATS_NEW_ENABLED: 'false',
	N8N_TEMPLATES_ENABLED: 'false',
	N8N_PERSONALIZATION_ENABLED: 'false',
	N8N_HIRING_BANNER_ENABLED: 'false',
	N8N_DYNAMIC_BANNERS_ENABLED: 'false',
	N8N_VERIFIED_PACKAGES_ENABLED: 'false',
	N8N_UNVERIFIED_PACKAGES_ENABLED: 'true',
	N8N_LICENSE_AUTO_RENEW_ENABLED: 'false',
	// This module calls api.n8n.io at every start.
	N8N_DISABLED_MODULES: 'mcp-registry',
};

/** Settings with which n8n reloads custom nodes when their files change: it does so in development only. */
export const RELOADING: NodeJS.ProcessEnv = { N8N_DEV_RELOAD: 'true', NODE_ENV: 'development' };

export function n8nEnvironment(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
	const env: NodeJS.ProcessEnv = {};
	for (const name of INHERITED) if (process.env[name] !== undefined) env[name] = process.env[name];
	const pathName = env.Path === undefined ? 'PATH' : 'Path';
	// n8n starts its task runner by the name "node", which must be the Node that runs n8n itself.
	env[pathName] = [dirname(nodeBinary), env[pathName]].filter(Boolean).join(delimiter);
	const next = process.env.FLOWTASK_LIKE_N8N_3 ? LIKE_N8N_3 : {};
	return { ...env, ...QUIET, ...next, ...own };
}

/** The processes that have not ended yet. */
const running = new Set<N8nProcess>();

// An n8n must not outlive the program that started it, however that one ends.
process.once('exit', () => {
	for (const { pid } of running) if (pid > 0) process.kill(pid, 'SIGKILL');
});

/** Ends every n8n that this program started, even one that is still starting. */
export async function killEveryN8n(): Promise<void> {
	await Promise.all([...running].map((n8n) => n8n.kill()));
}

export interface N8nProcess {
	readonly pid: number;
	readonly log: ProcessLog;
	/** Settles when the process has ended, for whatever reason. */
	readonly ended: Promise<void>;
	readonly hasEnded: () => boolean;
	/** Stops n8n as an operator does: running executions may finish. Also waits for an n8n that is already stopping (Ctrl-C). */
	stop(): Promise<void>;
	/** Ends n8n at once, as a crash does. Its task runner notices and ends within two seconds. */
	kill(): Promise<void>;
}

/** Starts `n8n <command>`; its output is collected and also written to `<userFolder>/n8n-<command>.log`. */
export function spawnN8n(
	command: 'start' | 'worker' | 'webhook',
	userFolder: string,
	env: NodeJS.ProcessEnv,
): N8nProcess {
	if (!existsSync(n8nBinary)) {
		throw new Error('n8n is not installed in test/e2e: run "npm run test:e2e" or "npm run demo" first.');
	}
	// All files that n8n writes stay in its folder.
	const temporary = join(userFolder, 'tmp');
	mkdirSync(temporary, { recursive: true });
	const child = spawn(nodeBinary, [n8nBinary, command], {
		// n8n reads a .env file in its working directory.
		cwd: userFolder,
		env: n8nEnvironment({
			N8N_USER_FOLDER: userFolder,
			...{ TMPDIR: temporary, TEMP: temporary, TMP: temporary },
			...env,
		}),
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	const log = new ProcessLog();
	const file = createWriteStream(join(userFolder, `n8n-${command}.log`), { flags: 'a' });
	for (const stream of ['stdout', 'stderr'] as const) {
		child[stream].setEncoding('utf8');
		child[stream].on('data', (chunk: string) => {
			log.add(stream, chunk);
			file.write(chunk);
		});
	}
	let isRunning = true;
	const ended = new Promise<void>((resolve) => {
		const finish = () => {
			isRunning = false;
			running.delete(n8n);
			log.end();
			file.end();
			resolve();
		};
		child.once('error', (error) => {
			log.add('stderr', `${error.message}\n`);
			finish();
		});
		child.once('close', finish);
	});
	const kill = async () => {
		if (isRunning) child.kill('SIGKILL');
		await ended;
	};
	const stop = async () => {
		if (isRunning) child.kill('SIGTERM');
		const deadline = new AbortController();
		const late = sleep(STOP_DEADLINE_MS, true, { signal: deadline.signal }).catch(() => false);
		const isLate = await Promise.race([ended.then(() => false), late]);
		deadline.abort();
		if (isLate) {
			await kill();
			throw new Error(`n8n did not stop within ${STOP_DEADLINE_MS / 1000} s:\n${log.tail()}`);
		}
	};
	const n8n: N8nProcess = { pid: child.pid ?? -1, log, ended, hasEnded: () => !isRunning, stop, kill };
	running.add(n8n);
	return n8n;
}

/** Waits until `isReady` returns true; if n8n ends or the deadline passes, the error shows the end of its log. */
export async function untilReady(n8n: N8nProcess, isReady: () => Promise<boolean>): Promise<void> {
	const deadline = Date.now() + START_DEADLINE_MS;
	while (!(await isReady().catch(() => false))) {
		if (n8n.hasEnded()) throw new Error(`n8n ended while it started:\n${n8n.log.tail()}`);
		if (Date.now() > deadline) {
			await n8n.kill();
			throw new Error(`n8n was not ready within ${START_DEADLINE_MS / 1000} s:\n${n8n.log.tail()}`);
		}
		await sleep(LOOK_EVERY_MS);
	}
}
