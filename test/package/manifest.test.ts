import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { INodeProperties } from 'n8n-workflow';
import { sublimeSearch } from '@n8n/utils/search/sublime-search';
import { describedNode, findFiles, packageRoot, readManifest } from './packageFiles';

const manifest = readManifest();
const BUNDLE = 'dist/bundle.js';
const BROUGHT = new Set(['n8n-workflow', '@n8n/ai-node-sdk', 'crypto']);
const dist = findFiles(['dist/**/*.js']);
const read = (path: string) => readFileSync(join(packageRoot, path), 'utf8');

describe('package.json', () => {
	it('lists all nodes and credentials that are built, and no others', () => {
		const built = (suffix: string) => dist.filter((path) => path.endsWith(suffix));
		expect([...manifest.n8n.nodes].sort()).toEqual(built('.node.js'));
		expect([...manifest.n8n.credentials].sort()).toEqual(built('.credentials.js'));
		const sources = findFiles(['nodes/**/*.node.ts', 'credentials/**/*.credentials.ts']);
		const loaded = sources.map((path) => `dist/${path.replace(/\.ts$/, '.js')}`);
		expect(dist).toEqual([...loaded, BUNDLE].sort());
	});

	it('requires nothing at runtime except the packages of n8n', () => {
		for (const field of ['dependencies', 'optionalDependencies', 'bundledDependencies', 'overrides']) {
			expect(manifest).not.toHaveProperty(field);
		}
		expect(manifest.peerDependencies).toEqual({ '@n8n/ai-node-sdk': '*', 'n8n-workflow': '*' });
	});

	it('pins the packages that it is built and tested with', () => {
		const loose = Object.entries(manifest.devDependencies).filter(([, version]) => !/^\d/.test(version));
		expect(loose).toEqual([]);
	});

	it('names only scripts whose files exist', () => {
		const files = Object.values(manifest.scripts).flatMap(
			(script) => script.match(/\b[\w/-]+\.(mjs|ts)\b/g) ?? [],
		);
		expect(files.filter((file) => findFiles([file]).length === 0)).toEqual([]);
	});

	it('has every script that the documents name, and README those of the first minutes', () => {
		const namedIn = (path: string) =>
			[...read(path).matchAll(/\bnpm (?:run ([\w:]+)|(test)\b)/g)].map(([, run, test]) => run ?? test ?? '');
		const documents = [
			'README.md',
			...findFiles(['CONTRIBUTING.md', '*/README.md', 'docs/**/*.md', 'test/*/README.md']),
		];
		const missing = documents.flatMap((path) =>
			namedIn(path).flatMap((name) => (name in manifest.scripts ? [] : [`${path}: ${name}`])),
		);
		expect(missing).toEqual([]);
		expect(namedIn('README.md')).toEqual(expect.arrayContaining(['test', 'demo', 'demo:n8n']));
	});

	it('comes with a README and pages of at most 17,000 words together', () => {
		const pages = ['README.md', ...findFiles(['docs/**/*.md'])];
		const words = pages.flatMap((path) => read(path).match(/\S+/g) ?? []);
		expect(words.length).toBeGreaterThan(10_000);
		expect(words.length).toBeLessThanOrEqual(17_000);
	});

	it('has a version that the changelog lists', () => {
		expect(read('CHANGELOG.md')).toMatch(
			new RegExp(`^## \\[${manifest.version.replaceAll('.', '\\.')}\\]`, 'm'),
		);
	});
});

describe('package-lock.json', () => {
	it('names no registry that only one machine can reach', () => {
		const hosts = [...read('package-lock.json').matchAll(/"resolved": "https?:\/\/([^/"]+)/g)].map(
			([, host]) => host,
		);
		expect(hosts.filter((host) => host !== 'registry.npmjs.org')).toEqual([]);
	});
});

function requiredIn(paths: readonly string[]): { path: string; name: string }[] {
	return paths.flatMap((path) =>
		[...read(path).matchAll(/\b(?:require|import)\(["']([^"']+)["']\)/g)].map(([, name = '']) => ({
			path,
			name,
		})),
	);
}

describe('dist', () => {
	// n8n reads the whole package at each start, which may take 60 ms. The code is not minified, so reviewers can read it.
	const BUDGET_BYTES = 970 * 1024;
	// A line may be as long as a sentence of a form.
	const LONGEST_LINE_CHARS = 2000;

	it('stays within its size budget', () => {
		const bytes = dist.reduce((sum, path) => sum + Buffer.byteLength(read(path)), 0);
		expect(bytes).toBeGreaterThan(0);
		expect(bytes).toBeLessThanOrEqual(BUDGET_BYTES);
	});

	it('is readable: names as in the source, short lines, and the source file above each part', () => {
		const bundle = read(BUNDLE);
		const sources = findFiles(['{nodes,credentials}/**/*.node.ts', 'credentials/*.credentials.ts']);
		expect(sources.filter((path) => !bundle.includes(`\n// ${path}\n`))).toEqual([]);
		expect(bundle).toContain('\nfunction optionsCollection(');
		expect(bundle.split('\n').filter((line) => line.length > LONGEST_LINE_CHARS)).toEqual([]);
	});

	it('requires only the packages of n8n', () => {
		const others = requiredIn(dist).filter(({ name }) => !name.startsWith('.') && !BROUGHT.has(name));
		expect(others).toEqual([]);
	});

	it('has one file with the code, and one for each class that n8n loads', () => {
		const wanted = requiredIn(dist)
			.filter(({ name }) => name.startsWith('.'))
			.map(({ path, name }) => posix.join(posix.dirname(path), name));
		expect(wanted).toEqual(Array.from({ length: dist.length - 1 }, () => BUNDLE));
	});

	it('contains no path of the machine that built it and no source map', () => {
		const files = findFiles(['dist/**/*.{js,json,svg,txt}']);
		const suspicious = new RegExp(
			`${packageRoot.replaceAll(/[\\.]/g, '\\$&')}|/(home|root|Users|tmp|work)/|sourceMappingURL`,
		);
		expect(files.filter((path) => suspicious.test(read(path)))).toEqual([]);
	});

	it('contains the licences of the bundled libraries', () => {
		const imported = findFiles(['{nodes,credentials}/**/*.ts']).flatMap((path) =>
			[...read(path).matchAll(/^(?:import(?! type)|\} from) .*?'([^'./][^']*)';$/gm)].map(
				([, name = '']) => name,
			),
		);
		const bundled = new Set(imported.filter((name) => !BROUGHT.has(name)));
		const wanted = ['@cfworker/json-schema', 'jmespath', 'p-limit', 'valibot'];
		expect([...bundled].sort()).toEqual(wanted);
		const licences = read('dist/THIRD-PARTY-LICENSES.txt');
		expect([...bundled].filter((name) => !licences.includes(`${name} `))).toEqual([]);
	});
});

function isCollection(field: object): field is INodeProperties {
	return 'type' in field && field.type === 'collection';
}

it('no form shows more than twelve options in one list', () => {
	/** The lists among fields, and those within them. */
	const listsIn = (fields: readonly object[], node: string): Array<{ list: string; count: number }> =>
		fields.filter(isCollection).flatMap(({ displayName, options = [] }) => [
			{
				list: `${node}: ${displayName}`,
				// The others appear once the option that they belong to has been added.
				count: options.filter((option) => !('displayOptions' in option && option.displayOptions?.show))
					.length,
			},
			...listsIn(options, node),
		]);
	const lists = manifest.n8n.nodes.flatMap((path) => {
		const { displayName, properties } = describedNode(path);
		return listsIn(properties, displayName);
	});
	expect(lists.length).toBeGreaterThan(12);
	expect(lists.filter(({ count }) => count > 12)).toEqual([]);
});

describe('the search of the editor', () => {
	interface Codex {
		readonly alias: string[];
	}
	const nodes = manifest.n8n.nodes.map((path) => ({
		properties: {
			displayName: describedNode(path).displayName,
			codex: JSON.parse(read(path.replace(/\.js$/, '.json'))) as Codex,
		},
	}));

	// The editor's search looks for a phrase within one name or one alias, never across two.
	it.each([
		['generate image', 'Flow Task'],
		['text to image', 'Flow Task'],
		['image to image', 'Flow Task'],
		['chat completion', 'Chat Completion'],
		['reasoning', 'Chat Completion'],
		['agent session', 'Agent Invoke'],
		['websocket', 'Agent Bridge (WebSocket)'],
		['language model', 'FlowPlatform Chat Model'],
	])('finds "%s": %s', (phrase, name) => {
		const found = sublimeSearch(phrase, nodes).map(({ item }) => item.properties.displayName);
		expect(found).toContain(name);
	});

	it('puts the node that asks an agent before the bridge', () => {
		const byName = nodes.toSorted((one, other) =>
			one.properties.displayName.localeCompare(other.properties.displayName),
		);
		const found = sublimeSearch('agent', byName).map(({ item }) => item.properties.displayName);
		expect(found[0]).toBe('Agent Invoke');
	});

	// n8n lists both as one entry, whichever of them it finds.
	it("finds the bridge's action by its trigger's words, and vice versa", () => {
		const [words, wordsOfTrigger] = ['AgentBridge', 'AgentBridgeTrigger'].map((name) => {
			const codex = JSON.parse(read(`nodes/AgentBridge/${name}.node.json`)) as { alias: string[] };
			return codex.alias.sort();
		});
		expect(words).toEqual(wordsOfTrigger);
		expect(words).toEqual(expect.arrayContaining(['listen', 'reply', 'request', 'send', 'trigger']));
	});
});
