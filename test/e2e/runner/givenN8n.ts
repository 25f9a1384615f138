import type { Login } from './n8nClient';
import { N8nClient } from './n8nClient';
import { ProcessLog } from './processLog';
import type { N8nOptions, RunningN8n } from './startN8n';

/** The URL of an n8n that is already running, if `npm run compat` was given one. */
export const GIVEN_N8N = process.env.FLOWTASK_N8N_URL;

/** The session that `npm run compat` has opened there. n8n accepts five logins a minute, and there are more test files. */
const session = process.env.FLOWTASK_N8N_SESSION ?? '';

/** The login of that n8n's owner. */
const login: Login = {
	email: process.env.FLOWTASK_N8N_EMAIL ?? '',
	password: process.env.FLOWTASK_N8N_PASSWORD ?? '',
};

/**
 * Uses that n8n in the session that is open there. It cannot be started, stopped or configured from here, nor can its
 * log be read.
 */
export function useGivenN8n(url: string, { userFolder, tarball, env }: N8nOptions): RunningN8n {
	if (tarball === undefined || Object.keys(env ?? {}).length > 0) {
		throw new Error(`These tests restart or configure n8n, which the one at ${url} does not allow.`);
	}
	const client = new N8nClient(url, userFolder, session);
	return {
		...{ url, login, client, pid: -1, log: new ProcessLog() },
		ended: new Promise(() => undefined),
		hasEnded: () => false,
		stop: () => client.removeCreated(),
		kill: () => Promise.reject(new Error(`The n8n at ${url} cannot be killed from here.`)),
	};
}
