// Finds every test/**/*.test.ts except those of test/e2e and test/wires, which have their own dependencies and configs.
module.exports = {
	rootDir: __dirname,
	roots: ['<rootDir>/test'],
	testMatch: ['**/*.test.ts'],
	testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/e2e/', '<rootDir>/test/wires/'],
	modulePathIgnorePatterns: ['<rootDir>/test/e2e/', '<rootDir>/test/wires/'],
	testEnvironment: 'node',
	transform: { '^.+\\.[cm]?[jt]s$': '<rootDir>/scripts/jest-transform.js' },
	// These are published as ES modules, which jest does not load, so they are transformed like our own code.
	transformIgnorePatterns: ['/node_modules/(?!(p-limit|yocto-queue|eventsource-parser|valibot)/)'],
	maxWorkers: 2,
	// A worker that has nothing left to do still needs over half a second, the default, to free its 900 MB on a busy
	// machine; jest would take that for a leak. One that keeps a socket or a timer is still reported.
	workerGracefulExitTimeout: 10_000,
	// Far longer than any test takes, so that a test does not fail because the machine is busy with other work.
	testTimeout: 120_000,
	restoreMocks: true,
	coverageProvider: 'v8',
	collectCoverageFrom: ['nodes/**/*.ts', 'credentials/**/*.ts'],
};
