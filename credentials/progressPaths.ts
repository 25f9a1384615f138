/** The paths of the progress WebSocket; §4.4 does not say which one a deployment uses. */
export const PROGRESS_PATHS: readonly [string, string] = [
	'/mass/api/flow_task_api/get_task_progress',
	'/api/mass/flow_task_api/get_task_progress',
];
