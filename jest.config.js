// Discovers every test/**/*.test.ts but the end-to-end ones, which have their own dependencies and config.
module.exports = {
	rootDir: __dirname,
	roots: ['<rootDir>/test'],
	testMatch: ['**/*.test.ts'],
	testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/e2e/'],
	modulePathIgnorePatterns: ['<rootDir>/test/e2e/'],
	testEnvironment: 'node',
	transform: { '^.+\\.[cm]?[jt]s$': '<rootDir>/scripts/jest-transform.js' },
	// These are published as ES modules, which jest does not load: they are transformed like our own code.
	transformIgnorePatterns: ['/node_modules/(?!(p-limit|yocto-queue|eventsource-parser|valibot)/)'],
	maxWorkers: 2,
	// Far above what any test takes: a machine that is busy with other work is no failure.
	testTimeout: 120_000,
	restoreMocks: true,
	coverageProvider: 'v8',
	collectCoverageFrom: ['nodes/**/*.ts', 'credentials/**/*.ts'],
};
