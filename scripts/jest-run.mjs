// Runs jest, and then repeats the test files that failed, one at a time. The tests use real sockets, timers and
// processes, so on a busy machine one of them misses a deadline now and then; what is broken fails twice. Tests that
// pass only on the second try are listed: fix those that appear repeatedly.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot, withNode24 } from './install.mjs';

/** If more files than this fail, it is not by chance. */
const MOST_SECOND_TRIES = 4;

/**
 * @param {string[]} args For jest.
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<{ passed: number, failed: number }>} Numbers of tests; a run that died, or a file that does not
 *   load, counts as one failure.
 */
export async function runJest(args, env) {
	const scratch = mkdtempSync(join(tmpdir(), 'flowtask-jest-'));
	try {
		const first = await runOnce(args, env, join(scratch, 'first.json'));
		const files = first.failedFiles;
		if (files.length === 0 || files.length > MOST_SECOND_TRIES) return first;
		console.log(`\n▶ second try of ${files.length} file(s), one at a time`);
		const config = args.filter(
			(argument, index) => argument === '--config' || args[index - 1] === '--config',
		);
		const again = ['--runInBand', ...config, '--runTestsByPath', ...files];
		const second = await runOnce(again, env, join(scratch, 'second.json'));
		const stillFailing = new Set(second.failedTests);
		for (const name of first.failedTests) {
			if (!stillFailing.has(name)) console.log(`passed only on the second try: ${name}`);
		}
		return { passed: first.passedElsewhere + second.passed, failed: second.failed };
	} finally {
		rmSync(scratch, { recursive: true, force: true });
	}
}

/**
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv | undefined} env
 * @param {string} resultFile
 */
async function runOnce(args, env, resultFile) {
	const isGreen = await succeeds('jest', ['--json', `--outputFile=${resultFile}`, ...args], { env });
	const result = readResult(resultFile);
	// Jest can fail for other reasons than a test, e.g. a teardown that throws.
	return { ...result, failed: Math.max(result.failed, isGreen ? 0 : 1) };
}

/**
 * Runs a command in the package's folder to its end.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ env?: NodeJS.ProcessEnv, write?: (text: string) => void }} [options] `write` receives what the command
 *   prints; without it, the output goes to the terminal.
 * @returns {Promise<boolean>}
 */
export function succeeds(command, args, { env = withNode24(), write } = {}) {
	return new Promise((resolve) => {
		// Only Windows needs a shell: its installed commands are .cmd files.
		const shell = process.platform === 'win32';
		const stdio = write ? 'pipe' : 'inherit';
		const child = spawn(command, args, { cwd: packageRoot, env, stdio, shell });
		for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', write);
		child.on('error', () => resolve(false));
		child.on('close', (code) => resolve(code === 0));
	});
}

/** @param {string} resultFile What jest's --json wrote. */
function readResult(resultFile) {
	try {
		const result = JSON.parse(readFileSync(resultFile, 'utf8'));
		const failedFiles = result.testResults.filter(({ status }) => status === 'failed');
		const tests = failedFiles.flatMap(({ assertionResults }) => assertionResults);
		return {
			passed: result.numPassedTests,
			passedElsewhere: result.numPassedTests - tests.filter(({ status }) => status === 'passed').length,
			failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
			failedFiles: failedFiles.map(({ name }) => name),
			failedTests: tests.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
		};
	} catch {
		return { passed: 0, passedElsewhere: 0, failed: 1, failedFiles: [], failedTests: [] };
	}
}
