// People copy docs/docker-compose.queue.yml, so Docker and n8n must understand it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { findFiles, packageRoot } from './packageFiles';

interface Service {
	readonly image: string;
	readonly command?: string;
	readonly environment?: Readonly<Record<string, string>>;
	readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
	readonly volumes?: readonly string[];
	readonly healthcheck?: { readonly test: readonly string[] };
}

interface ComposeFile {
	readonly services: Readonly<Record<string, Service>>;
	readonly volumes: Readonly<Record<string, unknown>>;
}

const read = (path: string) => readFileSync(join(packageRoot, path), 'utf8');
const document = parseDocument(read('docs/docker-compose.queue.yml'), { merge: true, uniqueKeys: true });
const { services, volumes }: ComposeFile = document.toJS();

/** Variables that other packages of n8n read; all others have a class in @n8n/config. */
const READ_ELSEWHERE = ['OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS'];

it('is valid YAML', () => {
	expect([...document.errors, ...document.warnings]).toEqual([]);
	expect(Object.keys(services).sort()).toEqual(['main', 'postgres', 'redis', 'worker']);
});

it('names services, conditions and volumes that exist', () => {
	for (const service of Object.values(services)) {
		for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
			expect(condition).toBe('service_healthy');
			expect(services[name]?.healthcheck?.test).not.toHaveLength(0);
		}
		for (const mount of service.volumes ?? []) expect(volumes).toHaveProperty(mount.split(':')[0]!);
	}
});

it('gives main and workers the same n8n and the same settings', () => {
	const { main, worker } = services;
	const { N8N_WEBHOOK_URL: webhookUrl, ...shared } = main?.environment ?? {};
	expect(webhookUrl).toBeDefined();
	expect(worker?.environment).toEqual(shared);
	expect(worker?.image).toBe(main?.image);
	expect(worker?.command).toMatch(/^worker\b/);
	// Workers load the packages that the main instance has installed.
	expect(worker?.volumes).toEqual(main?.volumes);
	expect(worker?.depends_on).toHaveProperty('main');
	expect(shared).toMatchObject({ EXECUTIONS_MODE: 'queue', DB_TYPE: 'postgresdb' });
	expect(services.postgres?.environment?.POSTGRES_PASSWORD).toBe(shared.DB_POSTGRESDB_PASSWORD);
});

it('uses the version of n8n that the tests run on', () => {
	const { dependencies } = JSON.parse(read('test/e2e/package.json')) as {
		dependencies: Record<string, string>;
	};
	expect(services.main?.image.split(':').at(-1)).toBe(dependencies.n8n);
});

it('sets only what n8n reads', () => {
	const known = findFiles(['node_modules/@n8n/config/dist/**/*.js']).map(read).join('\n');
	const names = Object.keys(services.main?.environment ?? {});
	expect(names.filter((name) => !known.includes(`'${name}'`) && !READ_ELSEWHERE.includes(name))).toEqual([]);
});

it('contains no secrets', () => {
	const secrets = Object.values(services).flatMap(({ environment = {} }) =>
		Object.entries(environment).filter(([name]) => /KEY|PASSWORD/.test(name)),
	);
	expect(secrets.length).toBeGreaterThan(2);
	expect(secrets.filter(([, value]) => !/^\$\{\w+:\?[^}]+\}$/.test(value))).toEqual([]);
});
