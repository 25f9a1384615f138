/** The address on which servers of tests listen; for an n8n on another machine, it must be reachable from there. */
export const TEST_HOST = process.env.FLOWTASK_TEST_HOST ?? '127.0.0.1';
