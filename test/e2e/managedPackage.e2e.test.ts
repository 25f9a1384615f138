// Installs the package as README and the compose file do: with an environment variable, in an n8n that allows no
// unverified packages and whose page installs none at all.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadedNodes } from './installedPackages';
import { packedTarball } from './packOnce';
import { startRegistry } from './packageRegistry';
import type { PackageRegistry } from './packageRegistry';
import { killEveryN8n, startN8n } from './runner';

const userFolder = mkdtempSync(join(tmpdir(), 'managed-package-'));
/** The deadline for a start of n8n and a nested run of the tests. */
const COMPAT_DEADLINE_MS = 400_000;
const packageRoot = join(__dirname, '..', '..');
const CLOSED = 'Community packages are managed via environment variables';

let registry: PackageRegistry;

beforeAll(async () => {
	registry = await startRegistry(packedTarball(), join(userFolder, 'npm'));
});

afterAll(async () => {
	await killEveryN8n();
	await registry.close();
	rmSync(userFolder, { recursive: true, force: true, maxRetries: 3 });
});

const startWith = async (packages: readonly object[]) =>
	await startN8n({
		userFolder,
		env: {
			...registry.env,
			N8N_UNVERIFIED_PACKAGES_ENABLED: 'false',
			N8N_COMMUNITY_PACKAGES_MANAGED_BY_ENV: 'true',
			N8N_COMMUNITY_PACKAGES: JSON.stringify(packages),
		},
	});

it('does not let n8n start without the checksum', async () => {
	const { name, version } = registry.entry;
	const refusal = `no checksum available for '${name}@${version}' and unverified packages are disabled`;
	await expect(startWith([{ name, version }])).rejects.toThrow(refusal);
});

it(
	'is installed with the checksum, and the page installs nothing else',
	async () => {
		const { name, version } = registry.entry;
		const n8n = await startWith([registry.entry]);
		expect(await loadedNodes(n8n.client, name)).toHaveLength(6);
		expect(await n8n.client.call('GET', '/rest/community-packages')).toEqual([
			expect.objectContaining({ packageName: name, installedVersion: version, failedLoading: false }),
		]);
		const another = n8n.client.call('POST', '/rest/community-packages', { name: 'n8n-nodes-another' });
		await expect(another).rejects.toThrow(CLOSED);

		// The tests treat this n8n as one that runs elsewhere, which they leave as it was.
		const { email: FLOWTASK_N8N_EMAIL, password: FLOWTASK_N8N_PASSWORD } = n8n.login;
		const compat = (...args: string[]) =>
			promisify(execFile)(process.execPath, ['scripts/compat.mjs', n8n.url, ...args], {
				cwd: packageRoot,
				env: { ...process.env, FLOWTASK_N8N_EMAIL, FLOWTASK_N8N_PASSWORD },
			});
		const { stdout } = await compat('flowtask');
		expect(stdout).toContain(`at ${n8n.url}, ${name} ${version}: 1 passed, 0 failed`);
		for (const path of ['workflows', 'credentials'])
			expect(await n8n.client.call('GET', `/rest/${path}`)).toEqual([]);
		await expect(compat('suspend')).rejects.toThrow('Not possible in an n8n that runs elsewhere: suspend.');
		await n8n.stop();
	},
	COMPAT_DEADLINE_MS,
);

it('is removed when it is no longer listed', async () => {
	const n8n = await startWith([]);
	expect(n8n.log.text()).toContain(`Removed community package '${registry.entry.name}'`);
	expect(await loadedNodes(n8n.client, registry.entry.name)).toEqual([]);
	await n8n.stop();
});
