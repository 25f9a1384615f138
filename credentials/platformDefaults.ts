/** Codes and words that mean "too many requests" in an answer whose HTTP status is a success. */
export const DEFAULT_BUSY_CODES =
	'429, too frequent, too many requests, rate limit, system busy, system is busy, server is busy, queue is full, queue_maxed, 请求过于频繁, 系统繁忙';

/** The paths of the progress WebSocket; §4.4 does not say which one a deployment uses. */
export const PROGRESS_PATHS: readonly [string, string] = [
	'/mass/api/flow_task_api/get_task_progress',
	'/api/mass/flow_task_api/get_task_progress',
];
