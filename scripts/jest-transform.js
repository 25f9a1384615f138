// esbuild compiles a file for jest in about a millisecond. `tsc` checks the types (npm run typecheck).
const { createHash } = require('node:crypto');
const { transformSync, version } = require('esbuild');

const options = {
	format: 'cjs',
	platform: 'node',
	target: 'node22',
	sourcemap: 'inline',
	sourcesContent: false,
};

module.exports = {
	process(source, path) {
		const loader = path.endsWith('ts') ? 'ts' : 'js';
		return { code: transformSync(source, { ...options, loader, sourcefile: path }).code };
	},
	getCacheKey(source, path) {
		return createHash('sha256')
			.update(JSON.stringify([version, options, path, source]))
			.digest('hex');
	},
};
