import { join } from 'node:path';

/**
 * The announced settings of n8n 3, as far as n8n 2 has them. n8n 3 blocks loopback, where the local platform listens, so
 * it is allowed here as an operator would allow a host.
 */
export const LIKE_N8N_3 = {
	N8N_UNVERIFIED_PACKAGES_ENABLED: 'false',
	N8N_SSRF_PROTECTION_ENABLED: 'true',
	N8N_SSRF_BLOCKED_IP_RANGES: 'default,100.64.0.0/10,64:ff9b::/96,2002::/16',
	N8N_SSRF_ALLOWED_IP_RANGES: '127.0.0.0/8,::1/128',
	N8N_RUNNERS_TASK_TIMEOUT: '60',
	N8N_PRE_EXECUTE_ERROR_CREATES_EXECUTION: 'false',
	N8N_CONCURRENCY_PRODUCTION_LIMIT: '20',
	// This setting is for queue mode.
	OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true',
	// n8n 2 has no setting for what this does.
	NODE_OPTIONS: `--require=${JSON.stringify(join(__dirname, 'denyAnyCaller.js'))}`,
};
