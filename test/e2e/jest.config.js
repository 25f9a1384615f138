// Each end-to-end test file starts a real n8n; two run at a time, which takes about 20 minutes on 2 cores. `npm run
// test:e2e` installs what they need.
const root = `${__dirname}/../..`;

module.exports = {
	rootDir: root,
	roots: ['<rootDir>/test/e2e'],
	testMatch: ['**/*.e2e.test.ts'],
	testPathIgnorePatterns: ['/node_modules/'],
	modulePathIgnorePatterns: ['<rootDir>/test/e2e/(nodeCli/)?node_modules/.*/package.json'],
	testEnvironment: 'node',
	transform: { '^.+\\.[cm]?[jt]s$': '<rootDir>/scripts/jest-transform.js' },
	globalSetup: '<rootDir>/test/e2e/packOnce.ts',
	maxWorkers: 2,
	testTimeout: 180_000,
};
