// Runs jest, and then repeats the test files that failed, one at a time. The tests use real sockets, timers and
// processes, so on a busy machine one of them misses a deadline now and then; what is broken fails twice. Tests that
// pass only on the second try are listed: fix those that appear repeatedly.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** If more files than this fail, it is not by chance. */
const MOST_SECOND_TRIES = 4;

/**
 * @param {(command: string, args: string[]) => Promise<boolean>} succeeds Runs a command to its end.
 * @param {string[]} args For jest.
 * @returns {Promise<{ passed: number, failed: number }>} Numbers of tests; a run that died, or a file that does not
 *   load, counts as one failure.
 */
export async function runJest(succeeds, args) {
	const scratch = mkdtempSync(join(tmpdir(), 'flowtask-jest-'));
	try {
		const first = await runOnce(succeeds, args, join(scratch, 'first.json'));
		const files = first.failedFiles;
		if (files.length === 0 || files.length > MOST_SECOND_TRIES) return first;
		console.log(`\n▶ second try of ${files.length} file(s), one at a time`);
		const config = args.filter(
			(argument, index) => argument === '--config' || args[index - 1] === '--config',
		);
		const again = ['--runInBand', ...config, '--runTestsByPath', ...files];
		const second = await runOnce(succeeds, again, join(scratch, 'second.json'));
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
 * @param {(command: string, args: string[]) => Promise<boolean>} succeeds
 * @param {string[]} args
 * @param {string} resultFile
 */
async function runOnce(succeeds, args, resultFile) {
	const isGreen = await succeeds('jest', ['--json', `--outputFile=${resultFile}`, ...args]);
	const result = readResult(resultFile);
	// Jest can fail for other reasons than a test, e.g. a teardown that throws.
	return { ...result, failed: Math.max(result.failed, isGreen ? 0 : 1) };
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
