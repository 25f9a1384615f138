// gulp build: types checked by tsc, then all nodes and credentials bundled by esbuild into one file of dist/, with a
// file for each class that n8n loads, and icons, codex files and output schemas next to them.
// gulp bundle: the same without the type check. gulp watch: bundle after each change.
const { execFile } = require('node:child_process');
const { glob, mkdir, readFile, rm, writeFile } = require('node:fs/promises');
const { basename, dirname, join, posix, relative } = require('node:path');
const { promisify } = require('node:util');
const esbuild = require('esbuild');
const gulp = require('gulp');
const ts = require('typescript');
const { repository, version } = require('./package.json');

const root = __dirname;
/** Where to build; `npm run dev` builds into an n8n. */
const dist = process.env.FLOWTASK_DIST ?? join(root, 'dist');

const ENTRIES = ['nodes/**/*.node.ts', 'credentials/**/*.credentials.ts'];
const BUNDLE = 'bundle.js';
const ASSETS = [
	'{nodes,credentials}/**/*.{svg,png}',
	'nodes/**/*.node.json',
	'nodes/**/__schema__/**/*.json',
];
const BANNER = `// Bundled by esbuild from ${repository.url.replace(/^git\+|\.git$/g, '')}, version ${version}.
// A comment above each part names its source file, which has the comments. Licences of the libraries: THIRD-PARTY-LICENSES.txt.`;
// Packages of n8n; all others are bundled, because an installed community node may have no dependencies.
const PROVIDED_BY_N8N = ['n8n-workflow', '@n8n/ai-node-sdk'];

/** Finds paths relative to the package, with forward slashes on every platform. */
async function find(patterns) {
	const found = [];
	for (const pattern of patterns) {
		for await (const path of glob(pattern, { cwd: root })) found.push(path.replaceAll('\\', '/'));
	}
	return found.sort();
}

async function types() {
	const tsc = require.resolve('typescript/bin/tsc');
	try {
		await promisify(execFile)(process.execPath, [tsc, '--noEmit'], { cwd: root });
	} catch (error) {
		throw new Error(`tsc found errors:\n${error.stdout || error.message}`, { cause: error });
	}
}

/** n8n finds a class by the name of its file. */
const classOf = (entry) => basename(entry).split('.')[0];

async function bundle() {
	const files = new Map();
	const entries = await find(ENTRIES);
	const { outputFiles, metafile } = await esbuild.build({
		absWorkingDir: root,
		stdin: {
			contents: entries.map((path) => `export { ${classOf(path)} } from './${path}';`).join('\n'),
			resolveDir: root,
		},
		outfile: join(dist, BUNDLE),
		bundle: true,
		write: false,
		metafile: true,
		external: PROVIDED_BY_N8N,
		format: 'cjs',
		platform: 'node',
		target: 'node22',
		// The packages of n8n are found by require alone, because they are on NODE_PATH, which import() ignores.
		supported: { 'dynamic-import': false },
		charset: 'utf8',
		// People who verify the package read the published code. Minified, it would load only a few ms sooner.
		minify: false,
		legalComments: 'inline',
		logLevel: 'warning',
	});
	for (const path of entries) {
		const name = classOf(path);
		const loaded = path.replace(/\.ts$/, '.js');
		const bundlePath = posix.relative(posix.dirname(loaded), BUNDLE);
		files.set(join(dist, loaded), `'use strict';\nexports.${name} = require('${bundlePath}').${name};\n`);
	}
	for (const file of outputFiles) files.set(file.path, `${BANNER}\n${slimmed(file.text)}`);
	for (const path of await find(ASSETS)) files.set(join(dist, path), await readFile(join(root, path)));
	const licences = await thirdPartyLicences(Object.keys(metafile.inputs));
	if (licences) files.set(join(dist, 'THIRD-PARTY-LICENSES.txt'), Buffer.from(licences));
	await replaceDist(files);
}

/**
 * Makes esbuild's output a tenth smaller. It is indented by tabs, as in the source; lines within texts stay. Comments are
 * left out, because esbuild keeps only some of them, and the source file, which is named above each part, has them all.
 * Licences stay.
 */
function slimmed(code) {
	const source = ts.createSourceFile(BUNDLE, code, ts.ScriptTarget.Latest);
	const lines = code.split('\n');
	const lineAt = (position) => source.getLineAndCharacterOfPosition(position).line;
	const withinText = new Set();
	const dropped = new Set();
	const visit = (node) => {
		if (ts.isTemplateLiteralToken(node)) {
			for (let line = lineAt(node.end); line > lineAt(node.getStart(source)); line--) withinText.add(line);
		}
		for (const { pos, end } of ts.getLeadingCommentRanges(code, node.pos) ?? []) {
			if (!isSuperfluous(code.slice(pos, end))) continue;
			const [first, last] = [lineAt(pos), lineAt(end)];
			const isAlone =
				lines[first].trim() === code.slice(pos, end) ||
				(lines[first].trimStart().startsWith('/**') && lines[last].trimEnd().endsWith('*/'));
			for (let line = first; isAlone && line <= last; line++) dropped.add(line);
		}
		ts.forEachChild(node, visit);
	};
	visit(source);
	const indented = (line, index) =>
		withinText.has(index)
			? line
			: line
					.replace(/^(?: {2})+/, ({ length }) => '\t'.repeat(length / 2))
					.replaceAll('/* @__PURE__ */ ', '');
	const kept = lines.map(indented).filter((_, index) => !dropped.has(index));
	return kept.join('\n');
}

/** Whether a comment neither names a source file nor concerns its licence. */
const isSuperfluous = (text) =>
	!/^\/\/ (?:nodes|credentials|node_modules)\/|^\/[/*]!|@license|@preserve/.test(text);

/** Collects the licences of the bundled libraries, which require their text in every copy. */
async function thirdPartyLicences(bundledPaths) {
	const packages = new Set();
	for (const path of bundledPaths) {
		const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path);
		if (match) packages.add(match[1]);
	}
	const texts = [];
	for (const path of [...packages].sort()) {
		const { name, version } = JSON.parse(await readFile(join(root, path, 'package.json'), 'utf8'));
		// A package that names its licence, but does not contain it, has its text in scripts/licences.
		const [licence] = await find([
			`${path}/{LICENSE,LICENCE,license}{,.md,.txt}`,
			`scripts/licences/${name.replace('/', '+')}.txt`,
		]);
		if (!licence) throw new Error(`${name} is bundled, but no licence file was found in ${path}`);
		const text = await readFile(join(root, licence), 'utf8');
		texts.push(`${name} ${version}\n\n${text.trim()}\n`);
	}
	return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

/** Overwrites dist/ and removes leftovers last, so that a process that loads dist/ meanwhile never finds it empty. */
async function replaceDist(files) {
	for (const [path, contents] of files) {
		await mkdir(dirname(path), { recursive: true });
		await writeFile(path, contents);
	}
	for await (const path of glob('**/*', { cwd: dist })) {
		const absolute = join(dist, path);
		const isNeeded = [...files.keys()].some((file) => !relative(absolute, file).startsWith('..'));
		if (!isNeeded) await rm(absolute, { recursive: true, force: true });
	}
}

exports.types = types;
exports.bundle = bundle;
exports.build = gulp.series(types, bundle);
exports.watch = () => gulp.watch(['nodes/**/*', 'credentials/**/*'], bundle);
exports.default = exports.build;
