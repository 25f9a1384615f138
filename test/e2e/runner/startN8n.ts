import { GIVEN_N8N, useGivenN8n } from './givenN8n';
import { freePorts, LOOPBACK } from './loopback';
import { N8nClient, OWNER } from './n8nClient';
import type { Login } from './n8nClient';
import { spawnN8n, untilReady } from './n8nProcess';
import type { N8nProcess } from './n8nProcess';
import { installPackage } from './packageInstall';
import { refuseSecretsIn } from './secretHunt';

export interface N8nOptions {
	/** n8n's home, with its database, encryption key, binary data and installed packages, which a second start finds again. */
	userFolder: string;
	/** A packed package to install first. */
	tarball?: string;
	/** The port; any free one by default. */
	port?: number;
	/** Settings in addition to our own, such as those for queue mode. */
	env?: NodeJS.ProcessEnv;
}

export interface RunningN8n extends N8nProcess {
	readonly url: string;
	readonly login: Login;
	/** A client that is logged in. */
	readonly client: N8nClient;
}

const START_TRIES = 3;

/** Starts n8n as a person does, with the package installed and its owner logged in, or uses the given one. */
export async function startN8n(options: N8nOptions): Promise<RunningN8n> {
	if (GIVEN_N8N !== undefined) return useGivenN8n(GIVEN_N8N, options);
	const { userFolder, tarball, port, env = {} } = options;
	if (tarball !== undefined) await installPackage(userFolder, tarball);
	for (let tries = 1; ; tries++) {
		const [anyPort = 0, brokerPort = 0] = await freePorts(2);
		const usedPort = port ?? anyPort;
		const url = `http://${LOOPBACK}:${usedPort}`;
		const n8n = spawnN8n('start', userFolder, {
			N8N_PORT: String(usedPort),
			N8N_RUNNERS_BROKER_PORT: String(brokerPort),
			WEBHOOK_URL: `${url}/`,
			N8N_EDITOR_BASE_URL: url,
			...env,
		});
		try {
			await untilReady(n8n, async () => await answersItsEditor(url));
		} catch (error) {
			// Another process may take a free port before n8n listens on it.
			const isTaken = /already in use|EADDRINUSE/.test(n8n.log.text());
			if (isTaken && port === undefined && tries < START_TRIES) continue;
			throw error;
		}
		const client = new N8nClient(url, userFolder);
		try {
			await client.signIn(OWNER);
		} catch (error) {
			await n8n.kill();
			throw error;
		}
		const stop = async (): Promise<void> => {
			await n8n.stop();
			await refuseSecretsIn(userFolder);
		};
		return { ...n8n, stop, url, login: OWNER, client };
	}
}

/** Whether the editor is ready: before, n8n answers /healthz, but "n8n is starting up" to everything else. */
async function answersItsEditor(url: string): Promise<boolean> {
	const readiness = await fetch(`${url}/healthz/readiness`);
	await readiness.arrayBuffer();
	if (!readiness.ok) return false;
	const settings = await fetch(`${url}/rest/settings`);
	const isJson = settings.headers.get('content-type')?.includes('application/json') ?? false;
	await settings.arrayBuffer();
	return settings.ok && isJson;
}

/** Starts a worker of queue mode, which shares the main instance's database and key by `env` and has its own packages. */
export async function startWorker({
	userFolder,
	tarball,
	env = {},
}: Omit<N8nOptions, 'port'>): Promise<N8nProcess> {
	if (tarball !== undefined) await installPackage(userFolder, tarball);
	for (let tries = 1; ; tries++) {
		const [healthPort = 0, brokerPort = 0] = await freePorts(2);
		const n8n = spawnN8n('worker', userFolder, {
			QUEUE_HEALTH_CHECK_ACTIVE: 'true',
			QUEUE_HEALTH_CHECK_PORT: String(healthPort),
			N8N_WORKER_SERVER_ADDRESS: LOOPBACK,
			N8N_RUNNERS_BROKER_PORT: String(brokerPort),
			...env,
		});
		try {
			await untilReady(n8n, async () => {
				const readiness = await fetch(`http://${LOOPBACK}:${healthPort}/healthz/readiness`);
				await readiness.arrayBuffer();
				return readiness.ok;
			});
			return n8n;
		} catch (error) {
			// Workers that start at the same time may have got the same free port.
			const isTaken = /already in use|EADDRINUSE/.test(n8n.log.text());
			if (!isTaken || tries >= START_TRIES) throw error;
		}
	}
}
