import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { LOOPBACK } from '../runner';

/** The part of n8n's own driver that is used here; the driver has no types. */
interface Connection {
	connect(): Promise<void>;
	query<Row>(statement: string, values?: unknown[]): Promise<{ rows: Row[] }>;
	end(): Promise<void>;
}
const { Client } = createRequire(__filename)('pg') as {
	Client: new (options: object) => Connection;
};

const SERVER = { host: LOOPBACK, port: 5432, user: 'postgres', connectionTimeoutMillis: 2_000 };

/** Whether a PostgreSQL on this machine accepts us without a password; checked before tests are declared. */
export function postgresIsThere(): boolean {
	const probe = `const { Client } = require(${JSON.stringify(require.resolve('pg'))});
		const client = new Client(${JSON.stringify({ ...SERVER, database: 'postgres' })});
		client.connect().then(() => client.end(), () => process.exit(1));`;
	try {
		execFileSync(process.execPath, ['-e', probe], { stdio: 'ignore' });
		return true;
	} catch {
		return false;
	}
}

/** Creates a database of our own. */
export async function ownDatabase(name: string) {
	await onServer(`CREATE DATABASE "${name}"`);
	return {
		env: {
			DB_TYPE: 'postgresdb',
			DB_POSTGRESDB_HOST: SERVER.host,
			DB_POSTGRESDB_PORT: String(SERVER.port),
			DB_POSTGRESDB_USER: SERVER.user,
			DB_POSTGRESDB_DATABASE: name,
		},
		/** Finds those of `texts` that any cell of any table contains. */
		find: async (texts: readonly string[]) => await find(name, texts),
		drop: async () => await onServer(`DROP DATABASE "${name}" WITH (FORCE)`),
	};
}

/** The environment of n8n's processes in queue mode, with a Redis on this machine. @param name that no other run uses */
export function queueMode(name: string, { env }: Awaited<ReturnType<typeof ownDatabase>>) {
	return {
		...env,
		EXECUTIONS_MODE: 'queue',
		QUEUE_BULL_REDIS_HOST: LOOPBACK,
		QUEUE_BULL_PREFIX: name,
		// n8n stores its webhooks in Redis too, and would find those of an earlier run there.
		N8N_REDIS_KEY_PREFIX: name,
		N8N_ENCRYPTION_KEY: randomBytes(16).toString('hex'),
	};
}

async function onServer(statement: string): Promise<void> {
	await inDatabase('postgres', async (client) => await client.query(statement));
}

async function find(name: string, texts: readonly string[]): Promise<string[]> {
	return await inDatabase(name, async (client) => {
		const { rows: tables } = await client.query<{ tablename: string }>(
			"SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
		);
		const found = new Set<string>();
		for (const { tablename } of tables) {
			for (const text of texts) {
				const { rows } = await client.query(
					`SELECT 1 FROM "${tablename}" AS part WHERE strpos(part::text, $1) > 0 LIMIT 1`,
					[text],
				);
				if (rows.length > 0) found.add(text);
			}
		}
		return texts.filter((text) => found.has(text));
	});
}

async function inDatabase<Result>(
	database: string,
	work: (client: Connection) => Promise<Result>,
): Promise<Result> {
	const client = new Client({ ...SERVER, database });
	await client.connect();
	try {
		return await work(client);
	} finally {
		await client.end();
	}
}
