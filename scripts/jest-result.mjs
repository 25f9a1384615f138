// How a jest run that wrote --json ended, for the closing line "N passed, N failed".
import { readFileSync } from 'node:fs';

/** @param {string} resultFile What jest's --json wrote; a run that died before it counts as one failure. */
export function readJestResult(resultFile) {
	try {
		const result = JSON.parse(readFileSync(resultFile, 'utf8'));
		// A file that does not even load counts once: it has no tests to count.
		return {
			passed: result.numPassedTests,
			failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
			secondTries: secondTries(result),
		};
	} catch {
		return { passed: 0, failed: 1, secondTries: [] };
	}
}

/** Tests that passed only when they were tried again. */
function secondTries({ testResults }) {
	const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
	return tests
		.filter(({ status, invocations }) => status === 'passed' && invocations > 1)
		.map(({ fullName }) => fullName);
}
