// An npm registry with one package, for n8n's own installer. n8n passes npm the address of the public registry, and
// accepts another only with a licence, so the npm that it finds here appends ours.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { LOOPBACK } from './runner';

export interface PackageRegistry {
	/** The entry for N8N_COMMUNITY_PACKAGES. */
	readonly entry: { readonly name: string; readonly version: string; readonly checksum: string };
	/** Variables with which n8n installs from here and reaches nothing outside this machine. */
	readonly env: Record<string, string>;
	close(): Promise<void>;
}

/** Serves `tarball`; `folder` receives the npm that uses this registry, and its cache. */
export async function startRegistry(tarball: string, folder: string): Promise<PackageRegistry> {
	const content = readFileSync(tarball);
	const packed = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' });
	const manifest = JSON.parse(packed) as { name: string; version: string };
	const { name, version } = manifest;
	const checksum = `sha512-${createHash('sha512').update(content).digest('base64')}`;

	const server = createServer((request, response) => {
		if (request.url === `/${name}/file.tgz`) return void response.end(content);
		if (request.url !== `/${name}`) return void response.writeHead(404).end('{}');
		const dist = { tarball: `${url}/${name}/file.tgz`, integrity: checksum };
		const versions = { [version]: { ...manifest, dist } };
		response.setHeader('content-type', 'application/json');
		response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
	});
	await new Promise<void>((resolve) => server.listen(0, LOOPBACK, resolve));
	const url = `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`;
	return {
		entry: { name, version, checksum },
		env: { ...NOBODY_ELSE, ...npmThatAsks(url, folder) },
		close: async () => {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** A proxy that does not exist, so that requests of n8n itself fail at once. */
const NOBODY_ELSE = {
	HTTPS_PROXY: `http://${LOOPBACK}:9`,
	NO_PROXY: LOOPBACK,
};

function npmThatAsks(registry: string, folder: string): Record<string, string> {
	const bin = join(folder, 'bin');
	mkdirSync(bin, { recursive: true });
	const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
	writeFileSync(join(bin, 'npm'), `#!/bin/sh\nexec '${npm}' "$@" '--registry=${registry}'\n`, {
		mode: 0o755,
	});
	return {
		PATH: [bin, dirname(process.execPath), process.env.PATH].filter(Boolean).join(delimiter),
		npm_config_cache: join(folder, 'cache'),
	};
}
