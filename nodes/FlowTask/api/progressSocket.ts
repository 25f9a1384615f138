import { isJsonObject, parseJson } from '../../shared/text/json';
import { redactJson, redactor, type Redact } from '../../shared/text/redact';
import type { SocketEvents } from '../../shared/http/webSocket';
import { readTaskInfo, type TaskInfo } from './taskInfo';

export interface ProgressEvents {
	/** A message about the task; its links are valid for only ten minutes (§6.1). */
	onInfo(info: TaskInfo): void;
	/** The socket was refused or is gone: the task must be polled. */
	onLost(): void;
}

/** `onLost` is not called once it is closed. */
export interface ProgressSocket {
	close(): void;
}

/** The progress WebSockets of one node run (§4.4, §5.2, §6.1). A lost one never fails a task. */
export interface ProgressSockets {
	/** False once both path forms were refused: it is useless to try again in this run. */
	readonly available: boolean;
	open(taskId: string, promptToken: string, events: ProgressEvents): ProgressSocket;
}

/**
 * @param paths the path forms in the order to try, because deployments differ. The form that brought a frame
 *   is kept for the run.
 */
export function createProgressSockets(
	wsBaseUrl: string,
	paths: readonly string[],
	openSocket: (url: string, events: SocketEvents) => { close(): unknown },
): ProgressSockets {
	let proven: string | undefined;
	let refusedForGood = false;

	return {
		get available() {
			return !refusedForGood;
		},
		open: (taskId, token, events) => {
			const authorization = encodeURIComponent(token.toWellFormed());
			const untried = [...paths];
			const openNext = (): { close(): unknown } | undefined => {
				const path = proven ?? untried.shift();
				if (path === undefined) {
					refusedForGood = true;
					events.onLost();
					return undefined;
				}
				return openSocket(`${wsBaseUrl}${path}?authorization=${authorization}`, {
					// Opening proves nothing: a proxy accepts any path.
					onOpen: () => undefined,
					onText: (text) => {
						const info = readMessage(text);
						if (!info) return;
						proven ??= path;
						if (info.taskId === taskId) events.onInfo(info);
					},
					onEnd: () => {
						// A form that brought a frame is right, so it is this socket that is gone.
						if (proven === path) events.onLost();
						else current = openNext();
					},
				});
			};
			let current = openNext();
			return {
				close: () => {
					current?.close();
				},
			};
		},
	};
}

/** A message contains one task info (§6.1); anything else is ignored. */
function readMessage(text: string): TaskInfo | undefined {
	const message = parseJson(text);
	return isJsonObject(message) ? readTaskInfo(message.flow_task_info) : undefined;
}

/**
 * Hides a task's prompt token, which opens its socket for a day (§5.2): a platform that repeats it in a link or an
 * error text must not get it into an item.
 */
export function tokenHider(promptToken: string | undefined): Redact['known'] {
	if (promptToken === undefined) return (text) => text;
	const inJson = JSON.stringify(promptToken).slice(1, -1);
	return redactor([promptToken, inJson]).known;
}

/** A task's report as it may be shown. Hiding may break a link, so downloads use the original ones. */
export function withoutToken(info: TaskInfo, promptToken: string | undefined): TaskInfo {
	if (promptToken === undefined) return info;
	const hide = tokenHider(promptToken);
	return {
		...info,
		errorMessage: hide(info.errorMessage),
		files: Object.fromEntries(Object.entries(info.files).map(([nodeId, urls]) => [nodeId, urls.map(hide)])),
		finalFiles: info.finalFiles.map(hide),
		raw: redactJson(info.raw, hide),
	};
}
