// The servers here have dependencies of their own, which `npm run test:wires` installs.
const root = `${__dirname}/../..`;

module.exports = {
	...require(`${root}/jest.config.js`),
	rootDir: root,
	roots: ['<rootDir>/test/wires'],
	testPathIgnorePatterns: ['/node_modules/'],
	modulePathIgnorePatterns: ['<rootDir>/test/e2e/', '<rootDir>/test/wires/node_modules/.*/package.json'],
};
