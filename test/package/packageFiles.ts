import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INodeTypeDescription } from 'n8n-workflow';

export const packageRoot = join(__dirname, '../..');

/** Finds files and returns their paths: relative to the package, with forward slashes, sorted. */
export function findFiles(patterns: string[], cwd = packageRoot): string[] {
	return globSync(patterns, { cwd })
		.map((path) => path.replaceAll('\\', '/'))
		.sort();
}

export interface Manifest {
	readonly name: string;
	readonly version: string;
	readonly scripts: Record<string, string>;
	readonly engines: { readonly node: string };
	readonly files: string[];
	readonly n8n: {
		readonly nodes: string[];
		readonly credentials: string[];
		readonly aiNodeSdkVersion?: number;
	};
	readonly peerDependencies: Record<string, string>;
	readonly devDependencies: Record<string, string>;
}

export function readManifest(): Manifest {
	return JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
}

/** Creates an instance of the class in a built node's or credential's file. */
export function builtInstance(path: string): object {
	const className = path.split('/').at(-1)!.split('.')[0]!;
	// eslint-disable-next-line @typescript-eslint/no-require-imports -- as n8n loads it
	const loaded = require(join(packageRoot, path)) as Record<string, new () => object>;
	return new loaded[className]!();
}

export function describedNode(path: string): INodeTypeDescription {
	return (builtInstance(path) as { description: INodeTypeDescription }).description;
}

export interface Installed {
	/** A folder like the one that n8n installs community packages into. */
	readonly home: string;
	/** The unpacked package in that folder. */
	readonly dir: string;
	/** The files in the tarball, relative to the package. */
	readonly files: string[];
	readonly tarball: string;
	/** The output of the script that packs. */
	readonly printed: string;
}

/** Packs the package as a release does, and unpacks it as n8n does in its own folder. */
export function packAndUnpack(): Installed {
	const home = mkdtempSync(join(tmpdir(), 'flowtask-pack-'));
	const printed = execFileSync(process.execPath, [join(packageRoot, 'scripts/pack.mjs'), home], {
		encoding: 'utf8',
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	const [filename = ''] = findFiles(['*.tgz'], home);
	const listed = execFileSync('tar', ['-tzf', filename], { cwd: home, encoding: 'utf8' }).trim().split('\n');
	execFileSync('tar', ['-xzf', filename], { cwd: home });
	const modules = join(home, 'node_modules');
	mkdirSync(modules);
	const dir = join(modules, 'n8n-nodes-flowtask');
	renameSync(join(home, 'package'), dir);
	// When n8n installs a package, it strips the peer dependencies, so that the package finds n8n's own copy.
	symlinkSync(join(packageRoot, 'node_modules/n8n-workflow'), join(modules, 'n8n-workflow'), 'junction');
	const files = listed.map((path) => path.replace(/^package\//, '')).sort();
	return { home, dir, files, tarball: join(home, filename), printed };
}

/** Runs a script of the folder n8n/ in a separate process and reads the JSON that it prints last. */
export function runScript(script: string, args: string[]): unknown {
	const output = execFileSync(process.execPath, [join(__dirname, 'n8n', script), ...args], {
		cwd: packageRoot,
		// n8n's lint rules and its loader behave differently if NODE_ENV is "test", which jest sets.
		env: { ...process.env, NODE_ENV: 'production' },
		encoding: 'utf8',
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '');
}
