// node load.mjs <folder>: prints what n8n-core's own loader finds in an installed package. It is a separate process,
// because the loader evaluates each file in a context of its own, as in n8n, but not under jest.
import 'reflect-metadata';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PackageDirectoryLoader } from 'n8n-core';

const [dir] = process.argv.slice(2);
const loader = new PackageDirectoryLoader(dir);
await loader.loadAll();

const packageName = loader.packageJson.name;
/** n8n serves icons under icons/<package>/<path>; an icon whose file is missing has no such address. */
const iconFiles = ({ iconUrl }) =>
	Object.values(typeof iconUrl === 'string' ? { light: iconUrl } : (iconUrl ?? {})).map((url) =>
		join(dir, url.replace(`icons/${packageName}/`, '')),
	);
const describe = (entry) => ({
	name: entry.name,
	icons: iconFiles(entry).length,
	missingIcons: iconFiles(entry).filter((file) => !existsSync(file)),
});

console.log(
	JSON.stringify({
		nodes: loader.types.nodes.map((node) => ({
			...describe(node),
			version: node.version,
			categories: node.codex?.categories ?? [],
			credentials: (node.credentials ?? []).map(({ name }) => name),
			usableAsTool: Boolean(node.usableAsTool),
			folder: dirname(loader.known.nodes[node.name].sourcePath),
		})),
		credentials: loader.types.credentials.map((credential) => ({
			...describe(credential),
			supportedNodes: loader.known.credentials[credential.name].supportedNodes ?? [],
		})),
	}),
);
