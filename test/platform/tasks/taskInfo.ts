import type { Agenda } from '../agenda';
import type { FileLinks } from '../files/links';
import { outputsReady, progressOf } from './task';
import type { Task } from './task';
import type { TaskDesk } from './taskDesk';

/** The interface's task info item. */
export interface TaskInfo {
	flow_task_id: string;
	status: number;
	queue_size: number;
	current_position: number;
	errMsg: string;
	files: Record<string, string[]>;
	final_files: string[];
	progress_num: number;
}

/** Describes a task at this moment. The links are valid for `linkSeconds`; below 0, they have expired. */
export function taskInfo(
	task: Task,
	desk: TaskDesk,
	links: FileLinks,
	agenda: Agenda,
	linkSeconds: number,
): TaskInfo {
	const now = agenda.now();
	const untilSeconds = Math.ceil(now / 1000 + linkSeconds);
	const files: Record<string, string[]> = {};
	const finalFiles: string[] = [];
	for (const output of outputsReady(task, now)) {
		const urls = output.names.map((name) =>
			links.link(`/files/${task.id}/${output.nodeId}/${name}`, untilSeconds),
		);
		files[output.nodeId] = urls;
		// Those of a running task are not all there yet; only progress 100 says that they are (§6.1).
		if (output.final) finalFiles.push(...urls);
	}
	return {
		flow_task_id: task.id,
		status: task.status,
		queue_size: desk.queueSize(),
		current_position: desk.positionOf(task),
		errMsg: task.errMsg,
		files,
		final_files: finalFiles,
		progress_num: progressOf(task, now),
	};
}
