import { member, parseJson } from '../../shared/text/json';
import { redactJson, redactor, type Redact } from '../../shared/text/redact';
import type { SocketEvents } from '../../shared/http/webSocket';
import { readTaskInfo, type TaskInfo } from './taskInfo';

interface ProgressEvents {
	/** A message about the task; its links are valid for only ten minutes (§6.1). */
	onInfo(info: TaskInfo): void;
	/** The socket was refused or is lost, so the task must be polled. */
	onLost(): void;
}

type OpenSocket = (url: string, events: SocketEvents) => { close(): unknown };

/** The progress WebSockets of one node run (§4.4, §5.2, §6.1). A lost socket never fails a task. */
export class ProgressSockets {
	private provenPath: string | undefined;
	/** False once every path has been tried without getting a report. */
	available = true;

	/** @param paths tried in this order, because deployments differ; one that works is kept for the run */
	constructor(
		private readonly wsBaseUrl: string,
		private readonly paths: readonly string[],
		private readonly openSocket: OpenSocket,
	) {}

	/** @returns `close`, after which `onLost` is not called */
	open(taskId: string, promptToken: string, events: ProgressEvents): { close(): void } {
		const query = `?authorization=${encodeURIComponent(promptToken.toWellFormed())}`;
		const untried = [...this.paths];
		let current: ReturnType<OpenSocket> | undefined;
		const openNext = (): void => {
			const path = this.provenPath ?? untried.shift();
			if (path === undefined) {
				this.available = false;
				events.onLost();
				return;
			}
			current = this.openSocket(`${this.wsBaseUrl}${path}${query}`, {
				// An open socket proves nothing, because some proxies accept any path.
				onOpen: () => undefined,
				onText: (text) => {
					// Anything but one task info (§6.1) is ignored.
					const info = readTaskInfo(member(parseJson(text), 'flow_task_info'));
					if (!info) return;
					this.provenPath ??= path;
					if (info.taskId === taskId) events.onInfo(info);
				},
				onEnd: () => {
					// If the path is known to work, only this socket is lost.
					if (this.provenPath === path) events.onLost();
					else openNext();
				},
			});
		};
		openNext();
		return { close: () => void current?.close() };
	}
}

/** Hides a task's prompt token, which opens its socket for a day (§5.2), in a link or an error text. */
export function tokenHider(promptToken: string | undefined): Redact['known'] {
	if (promptToken === undefined) return (text) => text;
	return redactor([promptToken]).known;
}

/** A task's report without the token. Hiding may break a link, so downloads use the original ones. */
export function withoutToken(info: TaskInfo, promptToken: string | undefined): TaskInfo {
	if (promptToken === undefined) return info;
	const hide = tokenHider(promptToken);
	return {
		...info,
		errorMessage: hide(info.errorMessage),
		files: new Map([...info.files].map(([nodeId, urls]) => [nodeId, urls.map(hide)])),
		finalFiles: info.finalFiles.map(hide),
		raw: redactJson(info.raw, hide),
	};
}
