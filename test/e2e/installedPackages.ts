import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { N8nClient } from './runner';

const BUSY_MS = 10_000;

/** The description of a node type that n8n serves to its editor. */
export interface NodeType {
	name: string;
	displayName: string;
	version: number | number[];
	iconUrl: { light: string; dark: string };
}

interface InstalledManifest {
	name: string;
	version: string;
	author: { name: string; email: string };
	n8n: { nodes: string[] };
}

/** The folder of the package in n8n's home. */
const installedIn = (userFolder: string, packageName: string) =>
	join(userFolder, '.n8n', 'nodes', 'node_modules', packageName);

function readJson<Content>(file: string): Content {
	return JSON.parse(readFileSync(file, 'utf8')) as Content;
}

export function installedManifest(userFolder: string, packageName: string): InstalledManifest {
	return readJson(join(installedIn(userFolder, packageName), 'package.json'));
}

/** Reads from the codex files by which words each node should be found, by node type. */
export function installedAliases(userFolder: string, packageName: string): Map<string, string[]> {
	const { n8n } = installedManifest(userFolder, packageName);
	const codexFiles = n8n.nodes.map((file) => file.replace(/\.js$/, '.json'));
	const codexes = codexFiles.map((file) =>
		readJson<{ node: string; alias: string[] }>(join(installedIn(userFolder, packageName), file)),
	);
	return new Map(codexes.map(({ node, alias }) => [node, alias]));
}

/** Lists the package's nodes as n8n has loaded them, without the tools that n8n derives from them. */
export async function loadedNodes(client: N8nClient, packageName: string): Promise<NodeType[]> {
	const types = await client.call<NodeType[]>('GET', '/types/nodes.json');
	return types.filter(({ name }) => name.startsWith(`${packageName}.`) && !name.endsWith('Tool'));
}

/**
 * Carries out the last step of n8n's own installer, after the files exist and the nodes are loaded: it writes the
 * package into n8n's database (persistPackageWithNodes in its installed-packages.repository.js). n8n loads the packages
 * in its folder without this, but the screen of the community nodes lists only those in the database. n8n writes it only
 * for packages from its own registry; another registry needs a licence.
 */
export async function recordInstalledPackage(
	client: N8nClient,
	userFolder: string,
	packageName: string,
): Promise<void> {
	const { version, author } = installedManifest(userFolder, packageName);
	const nodes = await loadedNodes(client, packageName);
	const database = new DatabaseSync(join(userFolder, '.n8n', 'database.sqlite'), { timeout: BUSY_MS });
	try {
		const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
		database
			.prepare(
				`INSERT INTO installed_packages
				(packageName, installedVersion, authorName, authorEmail, createdAt, updatedAt) VALUES (?, ?, ?, ?, ?, ?)`,
			)
			.run(packageName, version, author.name, author.email, now, now);
		const addNode = database.prepare(
			'INSERT INTO installed_nodes (name, type, latestVersion, package) VALUES (?, ?, ?, ?)',
		);
		for (const node of nodes) {
			addNode.run(node.displayName, node.name, [node.version].flat().at(-1) ?? 1, packageName);
		}
	} finally {
		database.close();
	}
}
