/**
 * What n8n 3 has announced, as far as n8n 2 can be set to it. Loopback, where the local platform listens, is among the
 * addresses that n8n 3 blocks, so it is allowed here as an operator allows a host of theirs.
 */
export const LIKE_N8N_3 = {
	N8N_UNVERIFIED_PACKAGES_ENABLED: 'false',
	N8N_SSRF_PROTECTION_ENABLED: 'true',
	N8N_SSRF_BLOCKED_IP_RANGES: 'default,100.64.0.0/10,64:ff9b::/96,2002::/16',
	N8N_SSRF_ALLOWED_IP_RANGES: '127.0.0.0/8,::1/128',
	N8N_RUNNERS_TASK_TIMEOUT: '60',
	N8N_PRE_EXECUTE_ERROR_CREATES_EXECUTION: 'false',
	N8N_CONCURRENCY_PRODUCTION_LIMIT: '20',
	// Of queue mode.
	OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true',
};
