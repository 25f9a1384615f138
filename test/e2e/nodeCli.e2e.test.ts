// Runs n8n's own command line for authors on a clone: what docs/verification.md says of it.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../until';
import { loadedNodes } from './installedPackages';
import { killEveryN8n, RELOADING, startN8n } from './runner';

const packageRoot = join(__dirname, '..', '..');
const n8nNode = join(__dirname, 'nodeCli', 'node_modules', '@n8n', 'node-cli', 'bin', 'n8n-node.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'node-cli-'));
/** A clone without its tests: lint and types of these are checked by `npm test`. */
const clone = join(scratch, 'clone');
const CLONED = ['nodes', 'credentials', 'package.json', 'tsconfig.json', 'eslint.config.mjs'];
const modules = join(packageRoot, 'node_modules');
const env = {
	...process.env,
	PATH: [join(modules, '.bin'), process.env.PATH].join(delimiter),
	// n8n's lint rules and its loader behave differently if this is "test", which jest sets.
	NODE_ENV: 'production',
};
const DEADLINE_MS = 300_000;

const { n8n: lists } = manifestOf(packageRoot);

function manifestOf(folder: string): { n8n: { strict: boolean; nodes: string[]; credentials: string[] } } {
	return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as ReturnType<typeof manifestOf>;
}

const runNodeCli = async (...args: string[]) =>
	await promisify(execFile)(process.execPath, [n8nNode, ...args], { cwd: clone, env });

const isBuilt = () => [...lists.nodes, ...lists.credentials].every((path) => existsSync(join(clone, path)));

beforeAll(() => {
	if (!existsSync(n8nNode))
		throw new Error('@n8n/node-cli is not installed: "npm run test:e2e" installs it.');
	for (const path of CLONED) cpSync(join(packageRoot, path), join(clone, path), { recursive: true });
	symlinkSync(modules, join(clone, 'node_modules'), 'junction');
});

afterAll(async () => {
	await killEveryN8n();
	rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
});

it(
	'builds what n8n loads: every node and credential that package.json lists, with icons and codex',
	async () => {
		await runNodeCli('build');
		expect(isBuilt()).toBe(true);
		const loader = join(packageRoot, 'test', 'package', 'n8n', 'load.mjs');
		const { stdout } = await promisify(execFile)(process.execPath, [loader, clone], {
			cwd: packageRoot,
			env,
		});
		const loaded = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Record<
			'nodes' | 'credentials',
			Array<{ missingIcons: string[]; categories?: string[] }>
		>;
		expect(loaded.nodes).toHaveLength(lists.nodes.length);
		expect(loaded.credentials).toHaveLength(lists.credentials.length);
		for (const one of [...loaded.nodes, ...loaded.credentials]) expect(one.missingIcons).toEqual([]);
		for (const { categories } of loaded.nodes) expect(categories).not.toEqual([]);
	},
	DEADLINE_MS,
);

it(
	'lints without a finding, but would refuse this configuration in strict mode',
	async () => {
		await runNodeCli('lint');
		const manifest = manifestOf(clone);
		const strict = { ...manifest, n8n: { ...manifest.n8n, strict: true } };
		const asItWas = readFileSync(join(clone, 'package.json'));
		writeFileSync(join(clone, 'package.json'), JSON.stringify(strict));
		const refusal: unknown = await runNodeCli('lint').catch((error: unknown) => error);
		writeFileSync(join(clone, 'package.json'), asItWas);
		expect(refusal).toMatchObject({ code: 1, stdout: expect.stringContaining('Strict mode violation') });
	},
	DEADLINE_MS,
);

it(
	'gives the nodes to an n8n that runs elsewhere, which reloads them after a change',
	async () => {
		rmSync(join(clone, 'dist'), { recursive: true });
		const userFolder = join(scratch, 'n8n');
		const args = ['dev', '--external-n8n', '--custom-user-folder', userFolder];
		const dev = spawn(process.execPath, [n8nNode, ...args], { cwd: clone, env, stdio: 'ignore' });
		const devEnded = once(dev, 'close');
		await until(isBuilt, 'the first build', { withinMs: DEADLINE_MS, everyMs: 200 });
		const n8n = await startN8n({ userFolder, env: RELOADING });
		const names = async () =>
			(await loadedNodes(n8n.client, 'CUSTOM')).map(({ displayName }) => displayName).sort();
		expect(await names()).toHaveLength(lists.nodes.length);

		const source = join(clone, 'nodes', 'FlowTask', 'FlowTask.node.ts');
		const code = readFileSync(source, 'utf8');
		writeFileSync(source, code.replace("displayName: 'Flow Task'", "displayName: 'Flow Task, changed'"));
		// While n8n writes its list of nodes anew, it serves a part of it.
		const namesNow = async (): Promise<string[]> => await names().catch(() => []);
		await until(async () => (await namesNow()).includes('Flow Task, changed'), 'the change in n8n', {
			withinMs: DEADLINE_MS,
			everyMs: 500,
		});
		dev.kill('SIGTERM');
		await devEnded;
		await n8n.stop();
	},
	DEADLINE_MS,
);
