import type { Delivery } from '../../../nodes/FlowTask/tasks/engine';
import { readTaskInfo, type TaskInfo } from '../../../nodes/FlowTask/api/taskInfo';
import type { Json } from '../../../nodes/shared/text/json';

/** A task info like those of the platform, read by the reader under test. */
export function taskInfo(taskId: string, fields: Readonly<Record<string, Json>> = {}): TaskInfo {
	const info = readTaskInfo({
		flow_task_id: taskId,
		status: 2,
		queue_size: 0,
		current_position: 0,
		errMsg: '',
		files: {},
		final_files: [],
		progress_num: 0,
		...fields,
	});
	if (!info) throw new Error('the fields make no task info');
	return info;
}

export function succeeded(
	taskId: string,
	links: readonly string[] = [`https://files.example/${taskId}.png`],
): TaskInfo {
	return taskInfo(taskId, {
		status: 3,
		progress_num: 100,
		files: { '9': [...links] },
		final_files: [...links],
	});
}

/** How a task is output of which only the links are wanted. */
export const LINKS_ONLY: Delivery = {
	form: 'urls',
	binaryField: 'data',
	simplify: true,
	mayBeEmpty: true,
	files: 'finalFiles',
};
