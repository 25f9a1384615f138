/**
 * A browser on two busy cores misses a deadline now and then. A test of n8n's editor that fails is tried once more, and
 * the closing lines of the run name it: one that comes up there again and again is to be mended, not to be lived with.
 */
export function tryTwice(): void {
	jest.retryTimes(1, { logErrorsBeforeRetry: true });
}
