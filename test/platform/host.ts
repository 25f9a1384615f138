/** The address of this machine on which servers of tests listen: another one for an n8n that runs elsewhere. */
export const TEST_HOST = process.env.FLOWTASK_TEST_HOST ?? '127.0.0.1';
