import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import {
	findFiles,
	type Installed,
	packageRoot,
	packAndUnpack,
	readManifest,
	runScript,
} from './packageFiles';

const manifest = readManifest();
let installed: Installed;

beforeAll(() => {
	installed = packAndUnpack();
});
afterAll(() => rmSync(installed.home, { recursive: true, force: true }));

it('contains dist, the documents, the templates and five other files, nothing else', () => {
	const outside = installed.files.filter((path) => !/^(dist|docs|templates)\//.test(path));
	expect(outside).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'index.js', 'package.json']);
	const kinds = new Set(installed.files.filter((path) => path.startsWith('dist/')).map(kindOf));
	expect(
		[...kinds].filter((kind) => !['js', 'node.json', 'svg', 'png', 'schema', 'licences'].includes(kind)),
	).toEqual([]);
	const read = installed.files.filter((path) => /^(docs|templates)\//.test(path)).map(kindOf);
	expect([...new Set(read)].sort()).toEqual(['json', 'md', 'png', 'svg', 'yml']);
});

it('contains what its documents link to, except what is for contributors', () => {
	const missing = installed.files
		.filter((path) => path.endsWith('.md'))
		.flatMap((path) => linksIn(path).map(({ target }) => posix.join(posix.dirname(path), target)))
		.filter((path) => !installed.files.includes(path));
	expect([...new Set(missing)].sort()).toEqual([
		'CONTRIBUTING.md',
		'bench/README.md',
		'test/platform/README.md',
	]);
});

it('says in words what its pictures show, for readers who cannot load them', () => {
	const pictures = installed.files
		.filter((path) => path.endsWith('.md'))
		.flatMap((path) => linksIn(path).filter(({ isPicture }) => isPicture));
	expect(pictures.length).toBeGreaterThan(10);
	expect(pictures.filter(({ words }) => words.split(' ').length < 3)).toEqual([]);
});

/** The links of a document to other files of the repository. */
function linksIn(path: string) {
	const text = readFileSync(join(installed.dir, path), 'utf8');
	return [...text.matchAll(/(!?)\[([^\]]*)\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(
		([, mark, words = '', target = '']) => ({ isPicture: mark === '!', words, target }),
	);
}

function kindOf(path: string): string {
	if (path.includes('/__schema__/')) return 'schema';
	if (path === 'dist/THIRD-PARTY-LICENSES.txt') return 'licences';
	return /(node\.json|[^.]+)$/.exec(path)?.[0] ?? path;
}

it('can be required by its name', () => {
	const script = "JSON.stringify(require('n8n-nodes-flowtask'))";
	expect(
		execFileSync(process.execPath, ['-p', script], { cwd: installed.home, encoding: 'utf8' }).trim(),
	).toBe('{}');
});

describe("n8n's official scanner", () => {
	const clean = { passed: true };

	it('accepts the source', () => {
		// SOURCE_FILE_PATTERNS of the scanner
		const patterns = ['package.json', '{nodes,credentials}/**/*.{js,ts,json}'];
		expect(runScript('scan.mjs', [packageRoot, ...patterns])).toEqual(clean);
	});

	it('accepts the tarball, but not with a timer in it', () => {
		expect(installed.printed).toContain("n8n's scanner accepts it");
		const intruder = join(installed.dir, 'dist/intruder.js');
		writeFileSync(intruder, 'setTimeout(() => {}, 1);');
		expect(runScript('scan.mjs', [installed.dir, '**/*.js', 'package.json'])).toMatchObject({
			passed: false,
			details: expect.stringContaining('setTimeout'),
		});
		rmSync(intruder);
	});
});

describe("n8n's own loader", () => {
	interface Loaded {
		readonly nodes: Array<{
			name: string;
			icons: number;
			missingIcons: string[];
			categories: string[];
			credentials: string[];
			usableAsTool: boolean;
		}>;
		readonly credentials: Array<{ name: string; icons: number; missingIcons: string[] }>;
	}
	let loaded: Loaded;

	beforeAll(() => {
		loaded = runScript('load.mjs', [installed.dir]) as Loaded;
	});

	it('finds every node and credential', () => {
		const names = (paths: string[]) =>
			paths
				.map((path) => path.split('/').at(-1)!.split('.')[0]!)
				.map(camelCase)
				.sort();
		expect(loaded.nodes.map(({ name }) => name).sort()).toEqual(names(manifest.n8n.nodes));
		expect(loaded.credentials.map(({ name }) => name).sort()).toEqual(names(manifest.n8n.credentials));
	});

	const camelCase = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);

	it('finds an icon for each theme', () => {
		for (const entry of [...loaded.nodes, ...loaded.credentials]) {
			expect(entry).toMatchObject({ icons: 2, missingIcons: [] });
		}
	});

	it('finds a codex file for each node and only credentials that exist', () => {
		const known = loaded.credentials.map(({ name }) => name);
		for (const node of loaded.nodes) {
			expect(node.categories).not.toEqual([]);
			expect(known).toEqual(expect.arrayContaining(node.credentials));
		}
	});

	it('offers every node except triggers as a tool', () => {
		const notTools = loaded.nodes.filter(({ usableAsTool }) => !usableAsTool).map(({ name }) => name);
		expect(notTools.filter((name) => !name.endsWith('Trigger') && !name.startsWith('lm'))).toEqual([]);
	});
});

it('leaves nothing behind in the package', () => {
	expect(findFiles(['*.tgz'])).toEqual([]);
});
